#include <charconv>
#include <cstdlib>
#include <cstring>
#include <headway/base/launcher.hpp>

namespace headway {
namespace {

std::optional<std::size_t> number(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  if (error != std::errc() || *end != 0) return std::nullopt;
  return value;
}

struct Known {
  const char* name;
  const char* mpi;
  const char* size;
  const char* rank;
  const char* only_with;  // a variable that must be there, too; nullptr: none
};

// An mpirun inside a job of Slurm leaves the variables of both; its own say more. Both srun (with PMI2) and the mpirun
// of MPICH set PMI_SIZE.
constexpr Known known[] = {
    {"mpirun of Open MPI", "openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", nullptr},
    {"mpirun of MPICH", "mpich", "PMI_SIZE", "PMI_RANK", "HYDI_CONTROL_FD"},
    {"srun", "", "PMI_SIZE", "PMI_RANK", "SLURM_STEP_NUM_TASKS"},
    {"mpirun of MPICH", "mpich", "PMI_SIZE", "PMI_RANK", nullptr},
    {"srun", "", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", nullptr},
};

}  // namespace

std::optional<Launcher> Launcher::from_environment() {
  for (const Known& one : known) {
    if (one.only_with != nullptr && std::getenv(one.only_with) == nullptr) continue;
    const auto size = number(one.size);
    if (!size || *size == 0) continue;
    // A batch script has the variables of its job, but is itself one process.
    if (one.mpi[0] == 0 && *size == 1) continue;
    return Launcher{one.name, one.mpi, one.size, *size, number(one.rank).value_or(0), std::getenv("PMIX_RANK") != nullptr};
  }
  return std::nullopt;
}

}  // namespace headway
