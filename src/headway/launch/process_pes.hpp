/// The PEs of one process, whoever has started it and however frames travel: their threads, and how each begins and ends.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <headway/report/process_record.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <vector>

namespace headway::launch {

class ProcessPes {
 public:
  ProcessPes(const ProcessPes&) = delete;
  ProcessPes& operator=(const ProcessPes&) = delete;

  /// Whether this process is inside a run now, or was forked by one that is.
  static bool inside();

 protected:
  explicit ProcessPes(const std::function<int(Pe&)>& body);
  virtual ~ProcessPes();

  /// Where the boards, reports and frames of this process's PEs are: numbers `first` to `last` - 1 there. Once, before
  /// anything else; `inside` from now on.
  void enter(local::Segment& segment, std::size_t first, std::size_t last);

  /// Runs the PEs, each in a thread, the first in this one. Does not return when one failed.
  void run_threads();
  /// Runs one PE in this thread.
  void run_pe(Endpoint& endpoint, std::size_t pe, am::EngineOptions options) noexcept;

  report::PeBoard& board(std::size_t pe) { return report::board_of(*memory_, pe); }
  /// Makes a failure known, and ends this process, and with it the run. `what` and `why` are put together without
  /// allocating: memory may be what is missing.
  [[noreturn]] void fail(std::size_t pe, report::FailureKind kind, const char* what, const char* why = "");

  virtual std::unique_ptr<Endpoint> make_endpoint(std::size_t pe) = 0;
  /// What a PE does first when it has nothing to do.
  virtual am::Idle idle() const = 0;
  /// Called now and then while a PE waits.
  virtual void while_waiting() = 0;
  /// A failure is on that PE's board; what has been thrown may still be caught by the program.
  virtual void after_failure(std::size_t /* pe */) {}
  /// The failure on that PE's board ends the run.
  [[noreturn]] virtual void end_failed(std::size_t pe) = 0;

  std::size_t first_ = 0, last_ = 0;
  pid_t pid_;

 private:
  struct PeThread;

  void run_pe(std::size_t pe) noexcept;
  void bind(std::size_t pe);

  const std::function<int(Pe&)>* body_;
  local::Segment* memory_ = nullptr;  // of boards, reports and frames
  std::vector<int> processors_;  // those allowed before any PE was bound
  AggregationSettings aggregation_ = AggregationSettings::from_environment();
  TransferSettings transfer_ = TransferSettings::from_environment();
  CollectiveStrategy collectives_ = collective_strategy_from_environment();
  SizeConstants sizes_ = size_constants_from_environment();
};

/// What is on its way to files is written, and the process ends without anything else of it running.
[[noreturn]] void end_process(int status);

/// For what lies in a board: as much of the text as fits, and a 0.
template <std::size_t N>
void copy_text(char (&to)[N], const std::string& text) {
  const std::size_t length = text.copy(to, N - 1);
  to[length] = 0;
}

}  // namespace headway::launch
