// SPDX-License-Identifier: BSD-3-Clause
/// The launchers that are installed, and the settings with which they start programs.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "session.hpp"

namespace headway::testing::launched {

namespace fs = std::filesystem;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

inline std::string find_in_path(const std::string& name) {
  const std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  for (std::size_t begin = 0, end; begin <= path.size(); begin = end + 1) {
    end = std::min(path.find(':', begin), path.size());
    const std::string file = path.substr(begin, end - begin) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

inline constexpr const char* ucx = "ucx";
inline constexpr const char* mpi_abi = "mpi-abi";  // of whatever MPI the build found it

inline std::string launcher_of(const std::string& mpi) {
  return mpi == ucx ? headway_command() : mpi == mpi_abi ? HEADWAY_MPI_ABI_LAUNCHER : find_in_path("mpirun." + mpi);
}

inline bool has_plugin(const std::string& mpi) {
  return fs::exists(fs::path(HEADWAY_PLUGINS) / ("libheadway-" + mpi + ".so"));
}

inline std::vector<std::string> under(const std::string& mpi, std::size_t processes, std::vector<std::string> command) {
  std::vector<std::string> launch = {launcher_of(mpi)};
  if (mpi == ucx) launch.insert(launch.end(), {"run", "--transport", mpi});
  if (mpi == "openmpi") launch.insert(launch.end(), {"--bind-to", "none", "--oversubscribe"});
  launch.insert(launch.end(), {"-n", std::to_string(processes)});
  command.insert(command.begin(), launch.begin(), launch.end());
  return command;
}

/// The mpirun of MPICH (4.0) is now and then killed by its own writing while it starts what ends at once: 141 is the
/// status of one in ten `mpirun -n 2 true` on a busy machine.
inline Outcome run_to_end(const std::vector<std::string>& command, const Variables& environment = {}) {
  constexpr int tries = 5, killed_by_pipe = 128 + SIGPIPE;
  for (int i = 1;; ++i) {
    Outcome outcome = testing::run_to_end(command, environment);
    if (outcome.status != killed_by_pipe || i == tries) return outcome;
  }
}

/// All processes are on this host: without sharing memory they are as on hosts of their own.
inline Variables settings(const Variables& more = {}, const std::string& share = "process") {
  return Variables{{"HEADWAY_PLUGIN_DIR", HEADWAY_PLUGINS},
                   {"HEADWAY_SHARE", share},
                   {"HEADWAY_STALL", "20s"},
                   {"MPIR_CVAR_CH4_CMA_ENABLE", "0"},  // MPICH 5.0 ends in MPI_Init where that is not allowed
                   {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                   {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}} +
         more;
}

/// The command in what many containers are: 64 MB of /dev/shm, and no reaching into other processes' memory.
inline std::vector<std::string> confined(const std::vector<std::string>& command) {
  std::vector<std::string> words = {victim(),
                                    "without_memory_access",
                                    find_in_path("unshare"),
                                    "--mount",
                                    "sh",
                                    "-ec",
                                    "mount -t tmpfs -o size=64M none /dev/shm; exec \"$@\"",
                                    "sh"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

/// The lines that Headway has written.
inline std::vector<std::string> lines_of_headway(const std::string& errors) {
  std::vector<std::string> lines;
  std::smatch found;
  const std::regex line("headway: [^\n]*");
  for (std::string rest = errors; std::regex_search(rest, found, line); rest = found.suffix())
    lines.push_back(found[0]);
  return lines;
}

}  // namespace headway::testing::launched
