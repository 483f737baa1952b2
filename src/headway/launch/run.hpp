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
/// `body` is called as body(Pe&), once per PE, and returns nothing or an exit status. The run ends with a quiesce()
/// after `body` has returned everywhere. At that time the aggregators in `body` do not exist any more, so `body` must
/// call quiesce() before it returns. Each process has its own globals and its own variables that `body` captures by
/// reference. The PEs of a process share them (HEADWAY_PES_PER_PROCESS).
///
/// Where code before and after run() executes depends on the start:
///
///     ./program                  In the first process alone. It forks the other processes and watches them. It is not
///                                a PE, and does not see changes that PEs make to memory. PEs exit inside run().
///     headway run, launchers     In every process. Each of them has PEs, and run() returns in each.
///
/// Settings come from the environment (HEADWAY_PES and others). Returns the status of the failed PE with the lowest
/// number, or 120 for unusable settings, 121 when a PE died or a handler threw, 122 for a stalled run, 123 for
/// undelivered messages, else 0. Prints the reason to standard error. Started as ./program, returns 120 if other
/// threads run or MPI is initialised, because fork is not safe then; `headway run ./program` starts such a program. May
/// be called again after it has returned.
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
