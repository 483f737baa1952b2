/// Starting a program's PEs.
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
/// `body` is called as body(Pe&), once per PE, and returns nothing or an exit status. The run ends with a quiesce();
/// aggregators local to `body` are gone by then, so it calls quiesce() itself while they live. Globals and captures by
/// reference are private to each process, and shared by the PEs that are threads of one (HEADWAY_PES_PER_PROCESS).
///
/// Started as ./program, this process forks the others and only watches over them: it is no PE, and what PEs change in
/// memory is not seen by it; PEs never return from run. Under `headway run` every process is one of the run's. Code
/// before run() may thus execute once, or once per process.
///
/// Settings come from the environment (HEADWAY_PES and others). Returns the lowest failing PE's status, or 120 for
/// unusable settings, 121 when a PE died or a handler threw, 122 for a stalled run, 123 for messages left undelivered;
/// what happened is written to standard error. Refused with 120 where threads run already or MPI is initialised, since
/// such a process cannot fork: `headway run` starts it. May be called several times, one after the other.
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
