// SPDX-License-Identifier: BSD-3-Clause
#include "core_pairs.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <sstream>

namespace headway::tools {
namespace {

/// A list such as "0-3,8" in the first line of a file. Empty for any other text.
std::vector<int> processors_in(const std::string& path) {
  std::ifstream file(path);
  std::string line, part;
  std::getline(file, line);
  std::istringstream parts(line);
  std::vector<int> processors;
  while (std::getline(parts, part, ',')) {
    int first = 0, last = 0;
    char dash = 0;
    std::istringstream range(part);
    if (!(range >> first)) return {};
    if (!(range >> dash >> last)) last = first;
    constexpr int processors_max = 1 << 16;
    for (int one = first; one <= std::min(last, processors_max); ++one) processors.push_back(one);
  }
  return processors;
}

struct Caches {
  std::vector<int> same_core, same_last_level;  // processors
};

Caches caches_of(int processor, const std::string& system) {
  Caches found;
  int least = 1 << 10, most = 0;
  constexpr int indices_max = 16;
  for (int index = 0; index != indices_max; ++index) {
    const std::string path = system + "/cpu" + std::to_string(processor) + "/cache/index" + std::to_string(index);
    std::ifstream file(path + "/level");
    int level = 0;
    if (!(file >> level)) break;
    const std::vector<int> shared = processors_in(path + "/shared_cpu_list");
    if (level < least) least = level, found.same_core = shared;
    if (level > most) most = level, found.same_last_level = shared;
  }
  return found;
}

bool contains(const std::vector<int>& all, int one) { return std::ranges::find(all, one) != all.end(); }

void run_on(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int one : processors) CPU_SET(std::size_t(one), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) base::throw_errno("sched_setaffinity");
}

}  // namespace

CorePairs core_pairs(const std::vector<int>& processors, const std::string& system) {
  CorePairs pairs;
  for (std::size_t i = 0; i != processors.size(); ++i) {
    const Caches caches = caches_of(processors[i], system);
    if (caches.same_last_level.empty()) return {};
    for (std::size_t j = i + 1; j != processors.size(); ++j) {
      if (contains(caches.same_core, processors[j])) continue;
      const bool shares = contains(caches.same_last_level, processors[j]);
      std::optional<CorePair>& pair = shares ? pairs.sharing : pairs.apart;
      if (!pair) pair = CorePair{processors[i], processors[j], shares};
      if (pairs.sharing && pairs.apart) return pairs;
    }
  }
  return pairs;
}

RunOn::RunOn(const CorePair& pair) : before_(base::allowed_processors()) { run_on({pair.first, pair.second}); }

RunOn::~RunOn() {
  try {
    run_on(before_);
  } catch (const SystemError&) {  // later launches then run on the two
  }
}

}  // namespace headway::tools
