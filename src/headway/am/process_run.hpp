/// One process's part of one run: attaches to the shared memory, meets the others, runs its PEs.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/attendance.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/am/report_signals.hpp>
#include <headway/transport/local/segment.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headway::am {

/// How a process reaches the run it is part of: descriptors, and its number.
struct Attachment {
  int segment = -1;
  int lifeline = -1;
  std::size_t process = 0;

  /// Reads what the supervisor wrote. Throws SettingError.
  static Attachment parse(const std::string& text);
};

class ProcessRun {
 public:
  /// Attaches and waits for the other processes. Throws SettingError, SystemError; ends this process when the run
  /// cannot be.
  ProcessRun(const Attachment& attachment, const std::function<int(Pe&)>& body);
  ProcessRun(const ProcessRun&) = delete;
  ProcessRun& operator=(const ProcessRun&) = delete;
  ~ProcessRun();

  /// Runs this process's PEs. Returns the status of the run's lowest failing PE, the same in every process. Does not
  /// return when a PE failed: the failure is recorded where the supervisor finds it, and the process ends.
  int run();

  /// Whether this process is inside a run now, or was forked by one that is.
  static bool inside();

 private:
  struct PeThread;

  PeBoard& board(std::size_t pe) { return board_of(segment_, pe); }
  void attach();
  void meet(std::atomic<std::uint64_t>& count, std::uint64_t generation);
  void refuse_other_builds();
  void check_lifeline();
  [[noreturn]] void fail(std::size_t pe, FailureKind kind, const char* what, const char* why = "");
  void bind(std::size_t pe);
  void run_threads();
  void run_simulation();
  void run_pe(std::size_t pe) noexcept;
  void run_pe(Endpoint& endpoint, EngineOptions options) noexcept;

  Attachment attachment_;
  local::Segment segment_;
  const std::function<int(Pe&)>* body_;
  SharedByProcess shared_;
  std::size_t first_ = 0, last_ = 0;
  pid_t pid_;
  std::uint64_t lifeline_inode_ = 0;
  std::vector<int> processors_;  // those allowed before any PE was bound
  AggregationSettings aggregation_ = AggregationSettings::from_environment();
  std::optional<ReportSignals> signals_;
};

}  // namespace headway::am
