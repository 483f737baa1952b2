// SPDX-License-Identifier: BSD-3-Clause
#include "peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace headway::tools {
namespace {

const std::vector<std::string> known_mpis = {"openmpi", "mpich", "mpi"};

bool is_executable(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

const std::vector<std::string>& openmpi_options() {
  static const std::vector<std::string> options = {"--bind-to", "none", "--oversubscribe"};
  return options;
}

std::string program_directory() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }

std::string find_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  const std::string directories = path == nullptr ? "" : path;
  for (std::size_t begin = 0; begin <= directories.size();) {
    const std::size_t end = std::min(directories.find(':', begin), directories.size());
    const auto candidate = std::filesystem::path(directories.substr(begin, end - begin)) / program;
    if (is_executable(candidate)) return candidate.string();
    begin = end + 1;
  }
  return "";
}

std::string find_launcher(const std::string& mpi) {
  const std::vector<std::string> names =
      mpi == "openmpi" ? std::vector<std::string>{"mpirun.openmpi", "orterun", "mpirun"}
      : mpi == "mpich" ? std::vector<std::string>{"mpirun.mpich", "mpiexec.hydra", "mpirun"}
                       : std::vector<std::string>{"mpirun", "mpiexec"};
  for (const std::string& name : names) {
    if (std::string found = find_in_path(name); !found.empty()) return found;
  }
  return "";
}

std::vector<Peer> find_peers() {
  std::vector<Peer> peers;
  for (const std::string& mpi : known_mpis) {
    const auto program = std::filesystem::path(program_directory()) / ("headway-peer-" + mpi);
    if (!is_executable(program)) continue;
    peers.push_back({mpi, program.string(), find_launcher(mpi)});
    if (mpi == "openmpi") peers.back().launcher_options = openmpi_options();
  }
  return peers;
}

std::vector<Peer> without_cma(const std::vector<Peer>& peers) {
  std::vector<Peer> changed;
  for (Peer peer : peers) {
    if (peer.mpi != "openmpi") continue;
    peer.mpi += "-nocma";
    peer.launcher_options.insert(peer.launcher_options.end(), {"--mca", "btl_vader_single_copy_mechanism", "none"});
    changed.push_back(peer);
  }
  return changed;
}

std::vector<Peer> with_progress_thread(const std::vector<Peer>& peers) {
  std::vector<Peer> changed;
  for (Peer peer : peers) {
    if (peer.mpi != "mpich") continue;
    peer.mpi += "-async";
    peer.asynchronous = true;
    changed.push_back(peer);
  }
  return changed;
}

std::string find_ucx_peer() {
  const auto program = std::filesystem::path(program_directory()) / "headway-peer-ucx";
  return is_executable(program) ? program.string() : "";
}

Peer find_hpcc() { return {"openmpi", find_in_path("hpcc"), find_launcher("openmpi"), openmpi_options()}; }

std::vector<std::string> launch_command(const Peer& peer, std::size_t ranks) {
  std::vector<std::string> command = {peer.launcher};
  command.insert(command.end(), peer.launcher_options.begin(), peer.launcher_options.end());
  command.insert(command.end(), {"-n", std::to_string(ranks), peer.program});
  return command;
}

std::vector<Variable> launch_environment(const Peer& peer) {
  if (peer.asynchronous) return {{"MPIR_CVAR_ASYNC_PROGRESS", "1"}};
  // Open MPI refuses root, as which containers run, unless it is told twice.
  if (!peer.mpi.starts_with("openmpi")) return {};
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
}

}  // namespace headway::tools
