/// What processes hold of the machine's memory, for tests that bound it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace headway::testing {

inline std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream in("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> result;
  for (pid_t pid; in >> pid;) result.push_back(pid);
  return result;
}

/// Resident memory of a process, what it shares divided by those that share it, in bytes; 0 if it has ended.
inline std::size_t proportional_bytes(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Pss:")) return std::stoull(line.substr(4)) * 1024;
  }
  return 0;
}

}  // namespace headway::testing
