// SPDX-License-Identifier: BSD-3-Clause
#include "smpi_launcher.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/model/simgrid_platform.hpp>
#include <system_error>

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

// Those that SMPI would choose at many ranks are slow to simulate.
constexpr const char* collectives[] = {
    "smpi/barrier:ompi_recursivedoubling", "smpi/alltoall:ring",  "smpi/alltoallv:ring", "smpi/allgather:rdb",
    "smpi/reduce_scatter:mpich_rdb",       "smpi/reduce:binomial"};

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw SystemError(fmt::format("{}: cannot be written", path));
}

bool has_smpirun() { return std::system("command -v smpirun >/dev/null 2>&1") == 0; }

}  // namespace

SmpiLauncher::SmpiLauncher(model::Machine machine) : machine_(std::move(machine)) {
  if (!has_smpirun()) throw SystemError("smpirun is not installed; SimGrid 3.32 or later has it (libsimgrid-dev)");
  // SMPI copies the program once for each rank: memory is faster than a disk.
  const fs::path parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  std::string path = (parent / "headway-smpi-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr)
    throw SystemError(fmt::format("{}: cannot be made: {}", path, std::generic_category().message(errno)));
  folder_ = path;
}

SmpiLauncher::~SmpiLauncher() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::vector<std::string> SmpiLauncher::command(std::size_t pes) const {
  const std::string platform = fmt::format("{}/platform-{}.xml", folder_, pes);
  const std::string hosts = fmt::format("{}/hosts-{}", folder_, pes);
  if (!fs::exists(platform)) {
    write(platform, model::simgrid_platform(machine_, model::network_of(machine_), pes, 1));
    write(hosts, model::simgrid_hosts(machine_, pes, 1));
  }
  std::vector<std::string> words = {"smpirun", "-np", std::to_string(pes), "-platform", platform, "-hostfile", hosts};
  for (const char* collective : collectives) words.push_back(fmt::format("--cfg={}", collective));
  words.emplace_back("--log=root.thres:error");
  return words;
}

std::vector<Variable> SmpiLauncher::environment() const { return {{"TMPDIR", folder_}}; }

}  // namespace headway::tools
