// SPDX-License-Identifier: BSD-3-Clause
/// Starts any program as the processes of one run, for `headway run`.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace headway::launch {

struct LaunchOptions {
  int debug_pe = -1;                     // start this PE's process under gdb, on the terminal; -1: none
  std::vector<std::string> hosts = {};   // hosts of the processes, in blocks; empty: this host. For transport ucx
  std::string agent = {};                // called as AGENT HOST COMMAND, runs the command on the host; empty: ssh
  std::string address = {};              // address of this host for the others; empty: its host name
  std::chrono::seconds start_limit{30};  // time for all processes to arrive after the first one
};

/// Starts `command` once per process, with settings from the environment, and watches the processes. Returns the exit
/// status as run() does. The command must call headway::run(). Throws SettingError, SystemError.
int launch_processes(const LaunchOptions& options, const std::vector<std::string>& command);

}  // namespace headway::launch
