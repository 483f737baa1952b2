// SPDX-License-Identifier: BSD-3-Clause
/// The splitters of a sample sort: PE p gets the keys from splitter p - 1 up to below splitter p.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "keys.hpp"

namespace headway::sorting {

/// Indices of `input` at random, from `first` to `first` + `count` - 1, and their keys.
inline std::vector<Key> draw_samples(const Input& input, std::uint64_t first, std::uint64_t count,
                                     std::size_t samples) {
  std::vector<Key> keys;
  Random random(Random(~input.seed).next() + first);
  while (count != 0 && keys.size() != samples) keys.push_back(input.key(first + random.below(count)));
  return keys;
}

/// One less than PEs, of the samples of all PEs, at equal distances in their order.
inline std::vector<Key> choose_splitters(std::vector<Key> samples, std::size_t pes) {
  std::ranges::sort(samples);
  std::vector<Key> splitters;
  for (std::size_t pe = 1; pe != pes; ++pe) splitters.push_back(samples[pe * samples.size() / pes]);
  return splitters;
}

/// The number of splitters up to `key`, by steps that do not depend on the comparisons before.
inline std::size_t destination(std::span<const Key> splitters, Key key) {
  const Key* base = splitters.data();
  std::size_t left = splitters.size();
  while (left > 1) {
    const std::size_t half = left / 2;
    base += base[half - 1] <= key ? half : 0;
    left -= half;
  }
  return std::size_t(base - splitters.data()) + (left == 1 && *base <= key ? 1 : 0);
}

}  // namespace headway::sorting
