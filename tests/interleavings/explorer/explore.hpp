// SPDX-License-Identifier: BSD-3-Clause
/// Explores all executions of a small program of a few threads over explored memory (shared.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "search.hpp"

namespace headway::explore {

/// Made anew for each execution; its members are the shared memory. A record for the check must belong to one
/// thread. Objects on a thread's stack must own nothing: a thread that dies is never unwound.
class Program {
 public:
  virtual ~Program() = default;
  virtual unsigned threads() const = 0;
  virtual void thread(unsigned id) = 0;
  /// When all threads have ended, or can never go on. May look into the shared memory.
  virtual void check() {}
};

struct Options {
  /// One of these threads may die before any one of its steps, in each execution. What waits for it then waits in vain:
  /// futexes time out, wait_for_news() returns false.
  ThreadSet mortal = 0;
  /// A standstill is a lost wake-up: no thread can go on, some wait, and none died. If it is not a failure, the waits
  /// end in vain.
  bool standstill_fails = true;
  /// How often a compare_exchange_weak may fail for no reason, per thread and execution.
  unsigned spurious_failures_max = 0;
  int preemptions_max = Search::unbounded;
  /// An execution of more steps is a failure: some thread does not terminate.
  std::size_t steps_max = 500;
  /// The search ends here, incomplete.
  std::uint64_t executions_max = 2'000'000;
  /// Only this execution, with its trace, as a failure gave it.
  std::vector<unsigned> repeat = {};
};

struct Result {
  std::uint64_t executions = 0;  // interleavings explored to their end
  std::uint64_t cut_short = 0;   // executions left where all that follows was explored in another order
  std::uint64_t steps = 0;       // of all of them
  std::uint64_t deaths = 0;      // executions in which a thread died
  bool complete = false;         // nothing is left to explore
  double seconds = 0;
  std::string failure;  // what went wrong first; empty if nothing did
  std::string trace;    // of that execution: its steps, and the choices that repeat it
  std::vector<unsigned> choices;
};

Result explore(const Options& options, const std::function<std::unique_ptr<Program>()>& make);

// --- for programs

/// Ends the execution as a failure unless `condition` holds.
void check(bool condition, std::string_view what);

/// Waits until one of the atomic locations that the thread has looked at since it last called this holds a newer store,
/// which it then sees. For loops that look again and again. False if there will never be one.
[[nodiscard]] bool wait_for_news();

/// In Program::check(): whether the thread died, and whether it was killed or still waits.
bool died(unsigned thread);

}  // namespace headway::explore
