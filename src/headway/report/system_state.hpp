/// What /proc says of a process or a thread. Where there is no /proc nothing is known.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace headway::report {

/// The letter for its state: R runs, S sleeps, T is stopped by a signal, t is held by a debugger. 0 if not known.
/// `thread` 0: of the process.
char state_of(pid_t process, pid_t thread = 0);

/// Whether the process has a handler for the signal.
bool catches(pid_t process, int signal);

/// Whether a signal to the thread, whose handler returns, passes unnoticed by the program: the thread runs, or is in a
/// system call that goes on by itself afterwards.
bool is_undisturbed_by_signals(pid_t process, pid_t thread);

/// The function of the kernel that the thread sleeps in; empty if it does not, or that is not known.
std::string sleeps_in(pid_t process, pid_t thread);

/// How many processes the kernel has killed for want of memory: those of this process's control group, or of the whole
/// system where the group does not say. 0 if that is not known.
std::uint64_t killed_for_memory();

}  // namespace headway::report
