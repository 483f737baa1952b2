// SPDX-License-Identifier: BSD-3-Clause
/// Starts a program's PEs.
#pragma once

#include <functional>
#include <headway/am/pe.hpp>
#include <type_traits>
#include <utility>

namespace headway {

namespace launch {
int run(int argc, char** argv, const std::function<int(Pe&)>& body);
}

/// Runs `body` on every PE, and returns the program's exit status once all have finished.
///
/// `body` is called as body(Pe&), once per PE, and returns nothing or an exit status. The run ends with a quiesce().
/// Aggregators local to `body` are destroyed by then, so `body` calls quiesce() itself before it returns. Globals,
/// and variables captured by reference, are private to each process, and shared by the PEs of one process
/// (HEADWAY_PES_PER_PROCESS).
///
/// Started as ./program, this process forks the others and watches them. It is not a PE, and does not see what PEs
/// change in memory. PEs never return from run(). Under `headway run` and launchers every process has PEs, and run()
/// returns in each. Code before run() thus executes once, or once per process.
///
/// Settings come from the environment (HEADWAY_PES and others). Returns the status of the lowest failing PE, or 120
/// for unusable settings, 121 when a PE died or a handler threw, 122 for a stalled run, 123 for undelivered messages.
/// Prints the reason to standard error. Refuses with 120 if other threads run or MPI is initialised, because this
/// process then cannot fork: start it with `headway run`. May be called again after it has returned.
template <class Body>
int run(int argc, char** argv, Body body) {
  constexpr bool callable = std::is_invocable_v<Body&, Pe&>;
  static_assert(callable, "headway: run() calls its body as body(Pe&)");
  if constexpr (callable) {
    using Result = std::invoke_result_t<Body&, Pe&>;
    constexpr bool good_result = std::is_void_v<Result> || std::is_same_v<Result, int>;
    static_assert(good_result, "headway: the body of run() returns nothing or an int, its exit status (0: success)");
    if constexpr (good_result) {
      return launch::run(argc, argv, [&body](Pe& pe) -> int {
        if constexpr (std::is_same_v<Result, int>) {
          return body(pe);
        } else {
          body(pe);
          return 0;
        }
      });
    }
  }
  return 0;
}

}  // namespace headway
