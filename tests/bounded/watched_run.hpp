// SPDX-License-Identifier: BSD-3-Clause
/// A run with its memory watched from outside.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <headway/launch/run.hpp>
#include <support/memory.hpp>
#include <support/run_pes.hpp>
#include <utility>

namespace headway::testing {

struct Watched {
  int status = -1;
  std::size_t peak_bytes = 0;  // of all processes of the run together
};

/// Runs body(Pe&) on one process a PE, with these settings, and looks at its memory every `look_us` until it ends.
/// `look` is called after each look.
template <class Body, class Look>
Watched watched_run(const Settings& settings, Body body, unsigned look_us, Look look) {
  const Environment environment(settings);
  const pid_t run_process = fork();
  if (run_process == 0) {
    char name[] = "watched";
    char* argv[] = {name, nullptr};
    _exit(run(1, argv, body));
  }
  Watched result;
  int status = 0;
  while (waitpid(run_process, &status, WNOHANG) == 0) {
    result.peak_bytes = std::max(result.peak_bytes, resident_bytes(children_of(run_process)));
    look();
    usleep(look_us);
  }
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

}  // namespace headway::testing
