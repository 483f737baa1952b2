// SPDX-License-Identifier: BSD-3-Clause
#include "core_pairs.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <sstream>
#include <thread>

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

constexpr std::int64_t line_ns_max = 100'000'000;  // of all trips
constexpr std::uint32_t trips = 2000, trips_of_warm_up = 200;

struct alignas(64) Word {
  std::atomic<std::uint32_t> value{0};
};

/// Writes every second value of the word, from `first` on, each when the one before it is there. Returns the time from
/// the end of the warm-up on, or 0.
std::int64_t write_in_turns(int processor, Word& word, std::uint32_t first) {
  run_on({processor});
  const std::int64_t latest = base::monotonic_ns() + line_ns_max;
  std::int64_t begin = 0;
  for (std::uint32_t value = first; value <= 2 * trips; value += 2) {
    if (value == first + 2 * trips_of_warm_up) begin = base::monotonic_ns();
    for (std::uint32_t looks = 1; word.value.load(std::memory_order_acquire) != value - 1; ++looks) {
      if (looks % 1024 == 0 && base::monotonic_ns() > latest) return 0;
    }
    word.value.store(value, std::memory_order_release);
  }
  return base::monotonic_ns() - begin;
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

double line_ns(const CorePair& pair) {
  Word word;
  std::int64_t ns = 0;
  {
    const std::jthread other([&] { write_in_turns(pair.second, word, 2); });
    std::jthread([&] { ns = write_in_turns(pair.first, word, 1); }).join();
  }
  return double(ns) / (2.0 * (trips - trips_of_warm_up));
}

}  // namespace headway::tools
