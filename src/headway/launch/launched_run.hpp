// SPDX-License-Identifier: BSD-3-Clause
/// One process of a run that a launcher has started: the wire to other processes, and this process's PEs.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <headway/base/settings.hpp>
#include <headway/launch/host_group.hpp>
#include <headway/launch/launched_watch.hpp>
#include <headway/launch/process_pes.hpp>
#include <headway/report/report_signals.hpp>
#include <headway/transport/wire/communication_thread.hpp>
#include <headway/transport/wire/lifelines.hpp>
#include <headway/transport/wire/loader.hpp>
#include <headway/transport/wire/port.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headway::launch {

/// The launcher owns the processes and forwards their output. There is no supervisor: a PE that fails prints the
/// reason and ends all processes, and process 0 asks the others whether the run has stalled.
class LaunchedRun final : public ProcessPes {
 public:
  /// Meets the other processes. Throws SettingError in all of them if they cannot form a run.
  LaunchedRun(const base::Settings& settings, const std::function<int(Pe&)>& body);
  ~LaunchedRun() override;

  /// Runs this process's PEs. Returns the status of the lowest failing PE of the run, the same in every process. Does
  /// not return when a PE failed: all processes end.
  int run();
  Pe& open() override;
  int close(int status) override;

 private:
  /// The data that processes exchange when they meet.
  struct Introduction {
    std::uint64_t pes, pes_per_process, budget_bytes, cores, shares, eager_bytes;
    char build_identity[64];
    char host[128];
    char boot_id[40];  // of the host's kernel
    char program[512];
    char given[1024];  // settings of the environment, one per line, cut to fit
  };

  std::unique_ptr<transport::Endpoint> make_endpoint(std::size_t pe) override;
  am::Idle idle() const override;
  void while_waiting() override;
  void after_failure(std::size_t pe) override;
  [[noreturn]] void end_failed(std::size_t pe) override;

  std::vector<Introduction> meet();
  void refuse_others(const std::vector<Introduction>& all) const;
  void join_segment(const std::vector<Introduction>& all);
  std::unique_ptr<local::Segment> make_segment(HostGroup group) const;
  void share_costs();
  void set_up_pes();
  bool has_thread() const { return settings_.progress != base::Progress::polling; }
  const char* thread_setting() const;
  void start_communication();
  void connect_lifelines(const std::vector<Introduction>& all);
  void handle_loss(const wire::Lifelines::Loss& loss);
  std::string pes_of(HostGroup processes) const;
  std::size_t number_of(std::size_t pe) const { return segment_->header().first_pe + pe; }
  void check(int result, const char* call) const;
  int status_of_all();
  int leave();
  void print_message(const std::string& text) const;
  void claim_end();
  [[noreturn]] void end_all(int status);
  void watch_exit();
  static void forget_exit();
  static void on_exit(int status, void* self);

  base::Settings settings_;
  bool simulated_;  // see Launcher
  wire::Started wire_;
  std::size_t process_, processes_;
  Introduction self_{};
  std::vector<std::string> hosts_;  // by process
  bool several_hosts_ = false, have_cores_ = false, have_pools_ = false;
  std::size_t budget_bytes_min_ = 0;  // of all processes
  std::size_t eager_bytes_min_ = 0;   // minimum of all processes; 0: unknown
  transport::SharedByProcess shared_;
  HostGroup group_;
  std::vector<std::size_t> leaders_;      // first processes of the groups, ascending
  std::vector<std::size_t> host_firsts_;  // the first PE of each group
  std::unique_ptr<local::Segment> segment_;
  std::optional<wire::Port> port_;
  std::optional<wire::CommunicationThread> driver_;
  std::optional<LaunchedWatch> watch_;
  std::optional<report::ReportSignals> signals_;
  std::atomic<bool> ending_{false}, left_{false};
  std::optional<wire::Lifelines> lifelines_;
};

}  // namespace headway::launch
