// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <headway/base/launcher.hpp>
#include <string>
#include <string_view>

namespace headway::base {
namespace {

std::optional<std::size_t> number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
std::optional<std::size_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : number(text);
}

constexpr int answer_ms_max = 1000;

struct KnownLauncher {
  const char* name;
  const char* mpi;
  const char* size;
  const char* rank;
  const char* only_with;  // another variable that must be set; nullptr: none
};

// In a Slurm job an mpirun sets its variables beside Slurm's; mpirun comes first here. Both srun (with PMI2) and the
// mpirun of MPICH set PMI_SIZE.
constexpr KnownLauncher known_launchers[] = {
    {"mpirun of Open MPI", "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", nullptr},
    {"mpirun of MPICH", "mpich", "PMI_SIZE", "PMI_RANK", "HYDI_CONTROL_FD"},
    {"srun", "", "PMI_SIZE", "PMI_RANK", "SLURM_STEP_NUM_TASKS"},
    {"mpirun of MPICH", "mpich", "PMI_SIZE", "PMI_RANK", nullptr},
    {"srun", "", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", nullptr},
};

std::optional<Launcher>& set_launcher() {
  static std::optional<Launcher> launcher;
  return launcher;
}

}  // namespace

void Launcher::set(const Launcher& launcher) { set_launcher() = launcher; }

std::optional<Launcher> Launcher::from_environment() {
  if (set_launcher()) return set_launcher();
  // "...:PROCESS:PROCESSES" from `headway run`, which may run below another launcher.
  if (const char* const text = std::getenv("HEADWAY_MEETING")) {
    const std::string_view all(text);
    const auto last = all.rfind(':'), before = last == 0 ? all.npos : all.rfind(':', last - 1);
    if (before != all.npos) {
      const std::size_t size = number(all.substr(last + 1)).value_or(0);
      const std::size_t rank = number(all.substr(before + 1, last - before - 1)).value_or(size);
      if (rank < size) return Launcher{"headway run", "", "HEADWAY_MEETING", size, rank, false, false};
    }
  }
  for (const KnownLauncher& one : known_launchers) {
    if (one.only_with != nullptr && std::getenv(one.only_with) == nullptr) continue;
    const auto size = number_in(one.size);
    if (!size || *size == 0) continue;
    // A batch script is one process with the variables of its job.
    if (one.mpi[0] == 0 && *size == 1) continue;
    return Launcher{
        one.name, one.mpi, one.size, *size, number_in(one.rank).value_or(0), std::getenv("PMIX_RANK") != nullptr,
        false};
  }
  return std::nullopt;
}

void Launcher::end_others(int status) const {
  const auto descriptor = number_in("PMI_FD");  // a socket to the mpirun of MPICH with lines of text (PMI-1)
  if (mpi != "mpich" || !descriptor) return;
  const int connection = int(*descriptor);
  const auto say = [connection](const std::string& line) {
    return send(connection, line.data(), line.size(), MSG_NOSIGNAL) == ssize_t(line.size());
  };
  // mpirun drops output that it has not read at the end. It reads all output between two answers.
  for (const char* question : {"cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=get_maxes\n", "cmd=get_maxes\n"}) {
    if (!say(question)) return;
    pollfd answer{connection, POLLIN, 0};
    char text[1024];
    if (poll(&answer, 1, answer_ms_max) != 1 || read(connection, text, sizeof text) <= 0) break;
  }
  say("cmd=abort exitcode=" + std::to_string(status) + "\n");
}

}  // namespace headway::base
