// SPDX-License-Identifier: BSD-3-Clause
/// Finds runs of Headway on this host by the descriptors of their shared memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace headway::tools {

/// The shared memory of a run, and the processes that have it open: PEs, and the process that started them. Processes
/// of one run that share nothing have memory of their own each.
struct FoundRun {
  struct Holder {
    pid_t pid;
    int descriptor;
  };
  std::uint64_t device = 0, inode = 0;
  std::vector<Holder> holders;  // by pid

  bool is_open_in(const Holder& holder) const;
};

/// All runs of this user.
std::vector<FoundRun> find_runs();

/// The runs that process `pid` has open, else those of its descendants. SettingError if there are none, which says why.
std::vector<FoundRun> find_runs_of(pid_t pid);

/// The path of the program that a process executes; empty if unknown.
std::string program_of(pid_t pid);

}  // namespace headway::tools
