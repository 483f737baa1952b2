// SPDX-License-Identifier: BSD-3-Clause
/// Makes a process with a main program of its own a PE of a run.
#pragma once

#include <headway/am/pe.hpp>
#include <string>

namespace headway {

/// Makes this process a PE, until detach(). For programs that a launcher starts, and that do not give their main
/// program to run(). Collective: all processes of the launcher call it.
///
///     MPI_Init(&argc, &argv);                 // if the program uses MPI itself
///     headway::Pe& pe = headway::attach();
///     ...
///     headway::detach();
///     MPI_Finalize();
///
/// Under mpirun or srun the number of the PE is the rank in MPI_COMM_WORLD. If the program has not initialised MPI,
/// attach() does, and finalizes it at the end of the program. Under `headway run` no MPI is needed. A program that
/// nothing has launched is a run of one PE.
///
/// The calling thread is the PE: it runs handlers in calls of the library, and it calls detach(). attach() does not
/// bind it to a processor. Objects that were made with the Pe are destroyed before detach(). While the program waits in
/// a call of MPI, no handler runs and no waiting frame leaves; settle() before lets all of them leave.
///
/// A failure prints its reason, and ends all processes. So does exit() before detach(). Throws SettingError for
/// unusable settings, as HEADWAY_PES_PER_PROCESS=2; UsageError between attach() and detach(), and inside run(). May be
/// called again after detach().
Pe& attach();

/// Ends the run as run() does: quiesce(), and the status of all. Collective. `status` is this PE's. Returns the status
/// of the failed PE with the lowest number, else 0. Throws UsageError without attach(), on another thread, in a
/// handler, and after MPI_Finalize.
int detach(int status = 0);

/// Ends the run and all its processes, for programs that cannot go on: prints `reason` with the PE, as for a handler
/// that throws. Throws UsageError without attach(), and on another thread.
[[noreturn]] void abandon(const std::string& reason);

/// The PE of this process between attach() and detach(), else nullptr.
Pe* attached();

/// Posts open buffers and waits until all frames of this PE have left it, so that no other PE waits for a call of this
/// one. For programs that call MPI next.
void settle(Pe& pe);

}  // namespace headway
