// SPDX-License-Identifier: BSD-3-Clause
/// One process of a run under a supervisor: attaches to the shared memory, meets the others, runs its PEs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/launch/process_pes.hpp>
#include <headway/report/report_signals.hpp>
#include <headway/transport/local/segment.hpp>
#include <optional>
#include <string>

namespace headway::launch {

/// The descriptors and the number that a process gets from the supervisor.
struct Attachment {
  int segment = -1;
  int lifeline = -1;
  std::size_t process = 0;

  /// Parses the supervisor's text. Throws SettingError.
  static Attachment parse(const std::string& text);
};

class ProcessRun final : public ProcessPes {
 public:
  /// Attaches, and waits for the other processes. Throws SettingError, SystemError. Ends this process if the
  /// processes cannot form a run.
  ProcessRun(const Attachment& attachment, const std::function<int(Pe&)>& body);
  ~ProcessRun() override;

  /// Runs this process's PEs. Returns the status of the lowest failing PE of the run, the same in every process. Does
  /// not return when a PE failed: it records the failure for the supervisor, and the process ends.
  int run();
  Pe& open() override;
  int close(int status) override;

 private:
  std::unique_ptr<transport::Endpoint> make_endpoint(std::size_t pe) override;
  am::Idle idle() const override { return have_cores_ ? am::Idle::spin : am::Idle::yield; }
  void while_waiting() override { check_lifeline(); }
  [[noreturn]] void end_failed(std::size_t pe) override;

  void attach();
  void meet(std::atomic<std::uint64_t>& count, std::uint64_t generation);
  void refuse_other_builds();
  void check_lifeline();
  int leave();
  void run_simulation();

  Attachment attachment_;
  local::Segment segment_;
  const bool have_cores_;  // determined before PEs are bound: a bound PE sees one core
  transport::SharedByProcess shared_;
  std::uint64_t lifeline_inode_ = 0;
  std::optional<report::ReportSignals> signals_;
};

}  // namespace headway::launch
