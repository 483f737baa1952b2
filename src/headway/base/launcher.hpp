// SPDX-License-Identifier: BSD-3-Clause
/// The launcher that has started this process, recognised by its environment variables.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace headway::base {

/// A launcher has started several processes as one program. It handles their output, their ends and the exit status.
struct Launcher {
  std::string name;      // for users: "mpirun of Open MPI"
  std::string mpi;       // "openmpi" or "mpich": the MPI of the launcher; empty: any
  std::string variable;  // the environment variable that gives `size`
  std::size_t size = 0;  // processes
  std::size_t rank = 0;  // number of this process
  bool pmix = false;     // processes find each other by PMIx
  bool simulated =
      false;  // a simulator runs all processes in one system process: no threads, and no waits that it does not see

  /// Empty if there is no launcher, or if it does not give the number of processes.
  static std::optional<Launcher> from_environment();
  /// Sets the result of from_environment(): for a launcher with one environment for all processes.
  static void set(const Launcher& launcher);
  /// Ends the other processes with this status. A process that ends before MPI_Init must call it: the mpirun of MPICH
  /// does not notice its end, and the others would wait for ever. The mpirun of Open MPI ends them itself.
  void end_others(int status) const;
};

}  // namespace headway::base
