// SPDX-License-Identifier: BSD-3-Clause
/// The peers that were built beside this command, and how they are started.
#pragma once

#include <string>
#include <vector>

#include "child.hpp"

namespace headway::tools {

/// The directory of this command; benchmark programs and peers lie beside it.
std::string program_directory();

/// A program in PATH as its full path, or empty.
std::string find_in_path(const std::string& program);

/// One peer: an MPI for which an executable was built and a launcher is installed.
struct Peer {
  std::string mpi;       // "openmpi", "mpich", "mpi"; "openmpi-nocma", "mpich-async"
  std::string program;   // its executable
  std::string launcher;  // its mpirun, or empty where none was found
  std::vector<std::string> launcher_options = {};
  bool asynchronous = false;  // MPICH with a thread of its own that makes progress

  bool is_complete() const { return !program.empty() && !launcher.empty(); }
};

/// Options of its launcher for ranks of this host.
const std::vector<std::string>& openmpi_options();

/// All peers, the preferred one first.
std::vector<Peer> find_peers();

/// Open MPI told to copy through shared memory where it would read the other process's (CMA), if it is one of `peers`.
std::vector<Peer> without_cma(const std::vector<Peer>& peers);

/// MPICH told to make progress by a thread of its own, if it is one of `peers`.
std::vector<Peer> with_progress_thread(const std::vector<Peer>& peers);

/// HPC Challenge as the distribution has it (Debian's is made with Open MPI); paths of missing programs are empty.
Peer find_hpcc();

/// The peer on UCX, which needs no launcher; empty where it was not built.
std::string find_ucx_peer();

/// The launcher of an MPI, or empty.
std::string find_launcher(const std::string& mpi);

/// The command line that starts `ranks` ranks of a peer, without the peer's own arguments; and what its environment
/// needs.
std::vector<std::string> launch_command(const Peer& peer, std::size_t ranks);
std::vector<Variable> launch_environment(const Peer& peer);

}  // namespace headway::tools
