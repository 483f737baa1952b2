// SPDX-License-Identifier: BSD-3-Clause
/// late MS: PE 2 of 4 has a child in the tree. It gives its part to reductions and then computes for MS milliseconds
/// each time, without calling the library. The program prints whether PE 0 has the sums meanwhile, and the time that
/// the helper thread uses.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <headway/headway.hpp>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr std::size_t late = 2;

/// The same on all hosts, which have one kernel.
std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t(1'000'000'000) + time.tv_nsec;
}

/// Processor time of this process's helper thread; nullopt: there is none.
std::optional<std::int64_t> helper_ns() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "headway-helps") continue;
    std::int64_t ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    return ns;
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    if (argc != 2 || pe.size() != 4) return 2;
    constexpr std::size_t rounds = 20;
    const std::int64_t compute_ns = std::atoll(argv[1]) * 1'000'000;
    std::vector<std::int64_t> waited_ns;
    std::size_t before = 0;
    double helper_share = 0;
    bool good = true;
    for (std::size_t round = 0; round < rounds; ++round) {
      headway::allreduce_async(pe, 0, std::plus<>()).get();
      const std::int64_t begin = now_ns();
      const std::optional<std::int64_t> helper_before = helper_ns();
      auto sum = headway::reduce_async(pe, std::uint64_t(pe.id() + round), std::plus<>(), 0);
      if (pe.id() == late) {
        while (now_ns() - begin < compute_ns) continue;
        if (helper_before) helper_share += double(*helper_ns() - *helper_before) / double(now_ns() - begin) / rounds;
      }
      const auto got = sum.get();
      const std::int64_t end = now_ns();
      good &= got == (pe.id() == 0 ? std::optional<std::uint64_t>(6 + 4 * round) : std::nullopt);
      const auto ends = headway::gather(pe, end, 0);
      if (pe.id() != 0) continue;
      waited_ns.push_back(end - begin);
      before += std::size_t(end < ends[late]);
    }
    const auto shares = headway::gather(pe, helper_share, 0);
    if (pe.id() == 0) {
      std::ranges::sort(waited_ns);
      std::printf(
          "%zu of %zu sums before PE %zu had computed for %lld ms, after %.3f ms (median); its helper: %.3f %% of a "
          "core\n",
          before, rounds, late, static_cast<long long>(compute_ns / 1'000'000), double(waited_ns[rounds / 2]) * 1e-6,
          shares[late] * 100);
    }
    return good ? 0 : 1;
  });
}
