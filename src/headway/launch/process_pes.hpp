// SPDX-License-Identifier: BSD-3-Clause
/// The PEs of one process, for every way to start it and every transport: their threads, begin and end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/counts_setting.hpp>
#include <headway/base/dial_settings.hpp>
#include <headway/launch/counted_run.hpp>
#include <headway/launch/traced_run.hpp>
#include <headway/report/process_record.hpp>
#include <headway/report/report_signals.hpp>
#include <headway/transport/dial/endpoint.hpp>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headway::launch {

class ProcessPes {
 public:
  ProcessPes(const ProcessPes&) = delete;
  ProcessPes& operator=(const ProcessPes&) = delete;
  virtual ~ProcessPes();

  /// Whether this process is inside a run, or was forked by one.
  static bool inside();

  // For attach(), in place of the run() of a derived class. All calls come from one thread.

  /// Makes the one PE of this process. From then on a failure ends the process at once: there is no body to unwind.
  virtual Pe& open() = 0;
  /// Ends the PE with this status. Collective. Returns the status of the run. Throws UsageError where the caller may
  /// not wait; nothing has changed then.
  virtual int close(int status) = 0;
  /// Ends the run, because the program has ended in the middle of it.
  [[noreturn]] void end_program(const char* why) { fail(first_, report::FailureKind::failed, why); }

 protected:
  explicit ProcessPes(const std::function<int(Pe&)>& body);

  /// Sets the segment of this process's PEs, numbers `first` to `last` - 1 there. Called once, before the calls
  /// below; inside() is true from then on.
  void enter(local::Segment& segment, std::size_t first, std::size_t last);

  /// Runs each PE in a thread, the first in the calling one. Does not return when one failed.
  void run_threads();
  /// Runs one PE in this thread. `pass_time` is for a simulated one: dial::Options.
  void run_pe(transport::Endpoint& endpoint, std::size_t pe, am::EngineOptions options,
              std::function<void(std::int64_t ns)> pass_time = {}) noexcept;
  Pe& open_pe();
  void close_pe(int status);

  report::PeBoard& board(std::size_t pe) { return report::board_of(*memory_, pe); }
  /// Records a failure on the board, and ends this process and the run. Does not allocate: memory may be exhausted.
  /// The text is `what` followed by `why`.
  [[noreturn]] void fail(std::size_t pe, report::FailureKind kind, const char* what, const char* why = "");

  virtual std::unique_ptr<transport::Endpoint> make_endpoint(std::size_t pe) = 0;
  /// How an idle PE waits before it sleeps.
  virtual am::Idle idle() const = 0;
  /// Called repeatedly while a PE waits.
  virtual void while_waiting() = 0;
  /// Called after a failure was recorded on that PE's board. The program may still catch the exception.
  virtual void after_failure(std::size_t /* pe */) {}
  /// Ends the run for the failure on that PE's board.
  [[noreturn]] virtual void end_failed(std::size_t pe) = 0;

  std::size_t first_ = 0, last_ = 0;
  pid_t pid_;

 private:
  struct PeThread;

  /// The PE between open_pe() and close_pe().
  struct OpenPe {
    report::ThreadOfPe thread;
    std::unique_ptr<transport::Endpoint> endpoint;
    std::optional<dial::DialledEndpoint> dialled;
    std::optional<TracedRun> traced;
    std::optional<CountedRun> counted;
    std::optional<am::Engine> engine;
  };

  void run_pe(std::size_t pe) noexcept;
  void complete(am::EngineOptions& options, std::size_t pe);
  void bind(std::size_t pe);
  void warn_of_dials() const;
  void warn_of_delays(std::size_t pe, const dial::DialledEndpoint::Kept& kept) const;
  transport::Endpoint& apply_dials(std::optional<dial::DialledEndpoint>& dialled, transport::Endpoint& endpoint,
                                   std::function<void(std::int64_t ns)> pass_time) const;

  const std::function<int(Pe&)>* body_;
  local::Segment* memory_ = nullptr;  // segment of boards, reports and frames
  std::unique_ptr<OpenPe> open_;
  std::vector<int> processors_;  // processors allowed before any PE was bound
  base::AggregationSettings aggregation_ = base::AggregationSettings::from_environment();
  base::TransferSettings transfer_ = base::TransferSettings::from_environment();
  base::CollectiveStrategy collectives_ = base::collective_strategy_from_environment();
  std::optional<base::DialSettings> dials_ = base::DialSettings::from_environment();
  std::string counts_file_ = base::counts_file(), trace_folder_ = base::trace_folder();
  base::SizeConstants sizes_ = base::size_constants_from_environment();
};

/// Flushes output buffers and ends the process, without destructors or exit handlers.
[[noreturn]] void end_process(int status);

/// Copies text into a fixed array: as much as fits, and a terminating 0.
template <std::size_t N>
void copy_text(char (&to)[N], const std::string& text) {
  const std::size_t length = text.copy(to, N - 1);
  to[length] = 0;
}

}  // namespace headway::launch
