// SPDX-License-Identifier: BSD-3-Clause
/// What run() and attach() have in common: the part of this process in a run.
#pragma once

#include <headway/launch/process_pes.hpp>
#include <memory>

namespace headway::launch {

/// Joins the run that a launcher or `headway run` has started, or makes one of this process alone. Collective. Throws
/// SettingError, SystemError.
std::unique_ptr<ProcessPes> join_run();

/// The answer of MPI_Initialized or MPI_Finalized; false if this process has no MPI.
bool mpi_flag(const char* call);

}  // namespace headway::launch
