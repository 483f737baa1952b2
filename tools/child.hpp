// SPDX-License-Identifier: BSD-3-Clause
/// Starts a program and keeps its output.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace headway::tools {

struct ChildResult {
  int status = 0;  // its exit status, or 128 + the signal that ended it
  bool timed_out = false;
  std::chrono::nanoseconds stopped{};  // for so long it was stopped, with this process
  std::string output;                  // standard output
  std::string errors;                  // standard error
};

inline constexpr std::size_t kept_whole = ~std::size_t(0);

struct Variable {
  std::string name, value;
};

/// Starts `command` with `environment` added to this process's and waits for its end; after `limit` it is ended. It is
/// a process group of its own, and ends as one: so a shell ends with its children. SIGINT, SIGTERM and SIGHUP, where
/// this process does not ignore them, end the group first and then this process; SIGTSTP stops it and this process
/// until this one goes on, and that time is not held against `limit`. Of each stream the last `kept_bytes_max` are
/// kept. Throws SystemError where no process can be made; a program that cannot be executed ends with 127.
ChildResult run_child(const std::vector<std::string>& command, const std::vector<Variable>& environment,
                      std::chrono::seconds limit, std::size_t kept_bytes_max = kept_whole);

}  // namespace headway::tools
