// SPDX-License-Identifier: BSD-3-Clause
/// Scenarios of the program under test; `victim SCENARIO ARGS` runs one.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <headway/headway.hpp>
#include <map>
#include <string>

namespace victim {

using headway::Pe;
using Scenario = int (*)(int argc, char** argv);
using Scenarios = std::map<std::string, Scenario>;

Scenarios working();    // for ever, until something goes wrong
Scenarios starting();   // run() and what may surround it
Scenarios waiting();    // for messages and PEs that come, or do not
Scenarios writing();    // to standard output
Scenarios meddling();   // with processes, signals and descriptors
Scenarios reporting();  // for reports on the state of the PEs

/// A line by which the test knows the PE's process, and that the PE is there.
inline void say_who(Pe& pe) {
  std::printf("PE %zu is pid %d\n", std::size_t(pe.id()), int(getpid()));
  std::fflush(stdout);
}

inline std::size_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

inline std::chrono::steady_clock::time_point in_seconds(const char* text) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(std::atof(text)));
}

inline bool before(std::chrono::steady_clock::time_point end) { return std::chrono::steady_clock::now() < end; }

}  // namespace victim
