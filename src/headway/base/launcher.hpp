/// Which launcher has started this process beside others, by what it leaves in the environment.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace headway {

/// A launcher that has started several processes as one program. It owns them: their output, their ends and the status.
struct Launcher {
  std::string name;      // for messages: "mpirun of Open MPI"
  std::string mpi;       // "openmpi" or "mpich": whose processes it starts as one; empty: of any
  std::string variable;  // which said how many
  std::size_t size = 0;  // processes
  std::size_t rank = 0;  // of this one
  bool pmix = false;     // its processes find each other by PMIx
  bool simulated = false;  // its processes are a simulator's, all in one of the system's: none may start a thread or wait unseen

  /// Empty where there is none, or none that says how many it has started.
  static std::optional<Launcher> from_environment();
  /// What from_environment() says from now on: of a launcher whose processes have one environment in common.
  static void set(const Launcher& launcher);
  /// To be called by a process that ends without having begun with an MPI: the mpirun of MPICH does not notice that,
  /// and the others would wait for it for ever. Ends them, with this status; that of Open MPI does so by itself.
  void end_others(int status) const;
};

}  // namespace headway
