// SPDX-License-Identifier: BSD-3-Clause
/// Random plans with the statistics of recorded exchanges of CLAMR, CabanaMD and xRage (CUP-ECS). Each receiver draws
/// its owned and remote elements, its partners, and pieces of neighbouring elements.
#include <algorithm>
#include <cmath>
#include <halo/lists.hpp>
#include <headway/base/random.hpp>
#include <numbers>
#include <set>

namespace headway::bench {
namespace {

double normal(Random& random, double mean, double deviation) {
  const double radius = std::sqrt(-2 * std::log(1 - random.fraction()));
  return mean + deviation * radius * std::cos(2 * std::numbers::pi * random.fraction());
}

std::uint64_t normal_count(Random& random, double mean, double deviation, double min, double max) {
  return std::uint64_t(std::lround(std::clamp(normal(random, mean, deviation), min, max)));
}

// Numbers of elements; CabanaMD's bytes are divided by 88, the size of its records.

std::uint64_t draw_owned(Random& random, const std::string& application) {
  if (application == "clamr") return normal_count(random, 131'386, 67, 131'000, 131'800);
  if (application == "clamr-1") return normal_count(random, 132'326, 250, 131'000, 134'000);
  if (application == "cabana") return normal_count(random, 500, 32, 300, 700);
  return normal_count(random, 13'437, 12'145, 1000, 60'000);
}

std::uint64_t draw_remote(Random& random, const std::string& application) {
  if (application == "clamr")
    return random.chance(0.5) ? normal_count(random, 36, 37, 1, 200) : random.between(1670, 4833);
  if (application == "clamr-1") return normal_count(random, 882, 832, 1, 4000);
  if (application == "cabana") {
    const double kind = random.fraction();
    if (kind < 0.64) return normal_count(random, 108. / 88, 107. / 88, 1, 6);
    return kind < 0.9 ? normal_count(random, 428. / 88, 84. / 88, 1, 10) : random.between(10, 40);
  }
  return normal_count(random, 6718, 6092, 1, 30'000);
}

std::size_t draw_partners(Random& random, const std::string& application) {
  if (application != "xrage") return 3;
  const double kind = random.fraction();
  if (kind < 0.44) return random.between(2, 3);
  if (kind < 0.63) return 4;
  return kind < 0.85 ? random.between(5, 6) : random.between(7, 17);
}

std::uint64_t draw_block(Random& random, const std::string& application) {
  if (application == "clamr")
    return random.chance(0.996) ? normal_count(random, 43, 36, 1, 200) : random.size(200, 11'739);
  if (application == "clamr-1") return random.chance(0.95) ? random.between(1, 3) : random.size(6, 370);
  if (application == "cabana") return random.chance(0.95) ? random.between(1, 5) : random.between(26, 40);
  return random.between(8, 15);
}

/// The distance between elements of a block; CLAMR's, the others' are contiguous.
std::uint64_t draw_stride(Random& random, const std::string& application) {
  if (application != "clamr") return 1;
  const double kind = random.fraction();
  return kind < 0.93 ? 1 : kind < 0.98 ? random.between(2, 5) : random.between(8, 12);
}

std::uint64_t owned_of(const HaloWork& work, std::size_t pe) {
  Random random(Random(work.seed + 2 * pe).next());
  return draw_owned(random, work.application);
}

}  // namespace

HaloRule recorded_rule(const HaloWork& work, std::size_t pe, std::size_t pes) {
  HaloRule rule{owned_of(work, pe), {}};
  Random random(Random(work.seed + 2 * pe + 1).next());
  const std::size_t partners = std::min(draw_partners(random, work.application), pes - 1);
  std::set<std::size_t> senders;
  for (std::size_t step = 1; senders.size() < partners; ++step) {  // the nearest in a ring
    senders.insert((pe + step) % pes);
    if (senders.size() < partners) senders.insert((pe + pes - step) % pes);
  }
  for (const std::size_t sender : senders) {
    const std::uint64_t owned = owned_of(work, sender);
    const std::uint64_t count = std::min(draw_remote(random, work.application) / partners + 1, owned);
    std::vector<std::uint64_t>& indices = rule.needs[sender];
    while (indices.size() < count) {
      const std::uint64_t stride = draw_stride(random, work.application);
      const std::uint64_t block =
          std::min({draw_block(random, work.application), count - indices.size(), (owned - 1) / stride + 1});
      const std::uint64_t first = random.below(owned - (block - 1) * stride);
      for (std::uint64_t i = 0; i < block; ++i) indices.push_back(first + i * stride);
    }
  }
  return rule;
}

}  // namespace headway::bench
