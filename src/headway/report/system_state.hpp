// SPDX-License-Identifier: BSD-3-Clause
/// State of processes and threads from /proc. Without /proc nothing is known.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace headway::report {

/// State letter: R runs, S sleeps, T is stopped by a signal, t is held by a debugger; 0 if unknown. `thread` 0: of
/// the process.
char state_of(pid_t process, pid_t thread = 0);

/// Whether the process has a handler for the signal.
bool catches(pid_t process, int signal);

/// Whether the program does not notice a handled signal to the thread: the thread runs, or is in a system call that
/// the kernel restarts.
bool is_undisturbed_by_signals(pid_t process, pid_t thread);

/// The kernel function in which the thread sleeps; empty if it does not sleep, or that is unknown.
std::string sleeps_in(pid_t process, pid_t thread);

/// Number of processes that the kernel has killed because memory ran out: in this process's control group, or on the
/// whole system if the group has no count. 0 if unknown.
std::uint64_t killed_for_memory();

}  // namespace headway::report
