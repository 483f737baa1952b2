// SPDX-License-Identifier: BSD-3-Clause
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <headway/base/machine.hpp>
#include <sstream>
#include <string>

namespace headway::base {
namespace {

/// Calls visit(line) with the first line of `file` in this process's cgroup (v2) and in each ancestor that has it.
template <class Visit>
void for_each_cgroup_level(const std::string& file, Visit visit) {
  std::ifstream membership("/proc/self/cgroup");
  std::string line, path;
  while (std::getline(membership, line)) {
    if (line.starts_with("0::")) path = line.substr(3);
  }
  for (;;) {
    std::ifstream in("/sys/fs/cgroup" + path + "/" + file);
    std::string value;
    if (std::getline(in, value)) visit(value);
    if (path.empty() || path == "/") return;
    path.erase(path.rfind('/'));
  }
}

/// The first line of a file below /sys/devices/system/cpu/cpu0/cache; empty if there is none.
std::string cache_attribute(int index, const char* what) {
  std::ifstream in("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/" + what);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Number of processors in a list such as 0-3,8.
std::size_t processors_in(const std::string& list) {
  std::istringstream in(list);
  std::size_t count = 0;
  for (unsigned first; in >> first;) {
    unsigned last = first;
    if (in.peek() == '-') in.ignore() >> last;
    count += last - first + 1;
    in.ignore();  // the comma
  }
  return count;
}

bool is_number(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

}  // namespace

std::vector<int> allowed_processors() {
  // The kernel refuses a mask that is smaller than its own.
  for (int bits = 1024; bits <= 1 << 18; bits *= 4) {
    cpu_set_t* set = CPU_ALLOC(bits);
    const std::size_t bytes = CPU_ALLOC_SIZE(bits);
    CPU_ZERO_S(bytes, set);
    std::vector<int> processors;
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    for (int i = 0; known && i < bits; ++i) {
      if (CPU_ISSET_S(i, bytes, set)) processors.push_back(i);
    }
    CPU_FREE(set);
    if (!processors.empty()) return processors;
  }
  return {0};
}

double cgroup_cpu_limit() {
  double limit = 0;
  for_each_cgroup_level("cpu.max", [&](const std::string& value) {
    const auto space = value.find(' ');
    if (space == value.npos || !is_number(value.substr(0, space)) || !is_number(value.substr(space + 1))) return;
    const double cpus = std::stod(value.substr(0, space)) / std::max(1.0, std::stod(value.substr(space + 1)));
    if (limit == 0 || cpus < limit) limit = cpus;
  });
  return limit;
}

std::size_t available_cores() {
  std::size_t cores = allowed_processors().size();
  if (const double limit = cgroup_cpu_limit(); limit > 0) {
    cores = std::min(cores, static_cast<std::size_t>(std::ceil(limit)));
  }
  return std::max<std::size_t>(cores, 1);
}

std::size_t processors_online() { return std::size_t(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L)); }

std::uint64_t cgroup_memory_limit_bytes() {
  std::uint64_t limit = 0;
  for_each_cgroup_level("memory.max", [&](const std::string& value) {
    if (!is_number(value) || value.size() > 18) return;
    const std::uint64_t bytes = std::stoull(value);
    if (limit == 0 || bytes < limit) limit = bytes;
  });
  return limit;
}

std::uint64_t available_memory_bytes() {
  std::uint64_t bytes = std::uint64_t(sysconf(_SC_PHYS_PAGES)) * std::uint64_t(sysconf(_SC_PAGESIZE));
  if (const std::uint64_t limit = cgroup_memory_limit_bytes(); limit > 0) bytes = std::min(bytes, limit);
  if (rlimit space{}; getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<std::uint64_t>(bytes, space.rlim_cur);
  }
  return bytes;
}

CacheSizes cache_sizes() {
  CacheSizes sizes;
  std::size_t processors_of_core = 1;
  for (int index = 0;; ++index) {
    const std::string level = cache_attribute(index, "level"), size = cache_attribute(index, "size");  // size: 1024K
    if (level.empty()) return sizes;
    if (!size.ends_with('K') || !is_number(size.substr(0, size.size() - 1)) || size.size() > 12) continue;
    const std::size_t bytes = std::stoull(size) * 1024;
    const std::size_t processors = std::max<std::size_t>(processors_in(cache_attribute(index, "shared_cpu_list")), 1);
    if (level == "2") {
      sizes.own = bytes;
      processors_of_core = processors;
    } else if (level == "3") {
      sizes.share = std::min(bytes / std::max<std::size_t>(processors / processors_of_core, 1), CacheSizes::share_max);
    }
  }
}

}  // namespace headway::base
