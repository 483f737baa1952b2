// SPDX-License-Identifier: BSD-3-Clause
/// What processes hold of the machine's memory, for tests that bound it.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace headway::testing {

inline std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream in("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> result;
  for (pid_t pid; in >> pid;) result.push_back(pid);
  return result;
}

/// Memory of a process in bytes, with each shared page divided by the number of processes that share it; 0 if it has
/// ended. `parts` are lines of smaps_rollup: "Pss", or "Pss_Anon", "Pss_File", "Pss_Shmem".
inline std::size_t proportional_bytes(pid_t pid, std::initializer_list<std::string_view> parts = {"Pss"}) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::size_t sum = 0;
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    const std::string_view name = std::string_view(line).substr(0, colon);
    if (std::find(parts.begin(), parts.end(), name) != parts.end()) sum += std::stoull(line.substr(colon + 1)) * 1024;
  }
  return sum;
}

/// Resident memory of the processes of one run together, in bytes. The segment they share is counted as a file, at one
/// moment: proportional sizes, read from one process after the other while more and more of them come to map a page,
/// would count it several times.
inline std::size_t resident_bytes(const std::vector<pid_t>& processes) {
  std::size_t sum = 0, segment = 0;
  for (const pid_t process : processes) {
    sum += proportional_bytes(process, {"Pss_Anon", "Pss_File"});
    std::error_code ended;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", ended)) {
      if (segment != 0) break;
      const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), ended);
      struct stat status {};
      if (target.native().starts_with("/memfd:headway ") && stat(entry.path().c_str(), &status) == 0) {
        segment = std::size_t(status.st_blocks) * 512;
      }
    }
  }
  return sum + segment;
}

}  // namespace headway::testing
