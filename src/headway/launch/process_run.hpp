/// One process's part of one run: attaches to the shared memory, meets the others, runs its PEs.
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

/// How a process reaches the run it is part of: descriptors, and its number.
struct Attachment {
  int segment = -1;
  int lifeline = -1;
  std::size_t process = 0;

  /// Reads what the supervisor wrote. Throws SettingError.
  static Attachment parse(const std::string& text);
};

class ProcessRun final : public ProcessPes {
 public:
  /// Attaches and waits for the other processes. Throws SettingError, SystemError; ends this process when the run
  /// cannot be.
  ProcessRun(const Attachment& attachment, const std::function<int(Pe&)>& body);
  ~ProcessRun() override;

  /// Runs this process's PEs. Returns the status of the run's lowest failing PE, the same in every process. Does not
  /// return when a PE failed: the failure is recorded where the supervisor finds it, and the process ends.
  int run();

 private:
  std::unique_ptr<Endpoint> make_endpoint(std::size_t pe) override;
  am::Idle idle() const override { return have_cores_ ? am::Idle::spin : am::Idle::yield; }
  void while_waiting() override { check_lifeline(); }
  [[noreturn]] void end_failed(std::size_t pe) override;

  void attach();
  void meet(std::atomic<std::uint64_t>& count, std::uint64_t generation);
  void refuse_other_builds();
  void check_lifeline();
  void run_simulation();

  Attachment attachment_;
  local::Segment segment_;
  const bool have_cores_;  // found before PEs are bound: one that is bound sees a single core
  SharedByProcess shared_;
  std::uint64_t lifeline_inode_ = 0;
  std::optional<report::ReportSignals> signals_;
};

}  // namespace headway::launch
