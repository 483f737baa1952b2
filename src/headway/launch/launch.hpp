/// Starting any program as the processes of one run: what `headway run` does.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace headway {

struct LaunchOptions {
  int debug_pe = -1;  // start the process of this PE under gdb, on the terminal; -1: none
  std::vector<std::string> hosts = {};  // the processes' hosts, in blocks; empty: this one. For transport ucx
  std::string agent = {};               // called as AGENT HOST COMMAND, runs the command there; empty: ssh
  std::string address = {};             // where the hosts reach this one; empty: at its host name
  std::chrono::seconds start_limit{30};  // for all to have come, once one has
};

/// Starts `command` once per process, with settings from the environment, and watches over the processes. Returns the
/// exit status as run() does. The command must call headway::run(). Throws SettingError, SystemError.
int launch_processes(const LaunchOptions& options, const std::vector<std::string>& command);

}  // namespace headway
