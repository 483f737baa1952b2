// SPDX-License-Identifier: BSD-3-Clause
/// Zones of the Morton curve that cost about the same, from samples of all PEs' bodies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "body.hpp"

namespace headway::ebarnes {

struct Sample {
  std::uint64_t key;
  double cost;  // for which it stands
};

/// Samples of each PE: fewer for many PEs, because every PE gets all of them.
inline std::size_t samples_each(std::size_t pes) { return std::clamp<std::size_t>(4096 / pes, 16, 256); }

/// Of bodies by key: `count` of them at equal distances of cost. None of no bodies.
inline std::vector<Sample> samples_of(std::span<const Body> bodies, std::size_t count) {
  double all = 0, sum = 0;
  for (const Body& body : bodies) all += double(body.cost);
  std::vector<Sample> samples;
  for (const Body& body : bodies) {
    sum += double(body.cost);
    while (samples.size() < count && sum >= all * (double(samples.size()) + 0.5) / double(count))
      samples.push_back({body.key, all / double(count)});
  }
  return samples;
}

/// The first key behind each zone but the last.
inline std::vector<std::uint64_t> zone_ends(std::vector<Sample> samples, std::size_t zones) {
  std::ranges::sort(samples, {}, &Sample::key);
  double all = 0, sum = 0;
  for (const Sample& sample : samples) all += sample.cost;
  std::vector<std::uint64_t> ends;
  for (const Sample& sample : samples) {
    while (ends.size() + 1 < zones && sum >= all * double(ends.size() + 1) / double(zones)) ends.push_back(sample.key);
    sum += sample.cost;
  }
  ends.resize(zones - 1, ~std::uint64_t(0));
  return ends;
}
inline std::size_t zone_of(const std::vector<std::uint64_t>& ends, std::uint64_t key) {
  return std::size_t(std::ranges::upper_bound(ends, key) - ends.begin());
}

}  // namespace headway::ebarnes
