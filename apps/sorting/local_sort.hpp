// SPDX-License-Identifier: BSD-3-Clause
/// Sorts of one processor.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "keys.hpp"

namespace headway::sorting {

/// The allowed values of --way.
inline const std::array<std::string, 2> local_sorts = {"std", "radix"};

/// Three passes over digits of 11 bits; takes memory for as many keys again.
inline void radix_sort(std::span<Key> keys) {
  constexpr unsigned bits = 11, passes = 3;
  std::vector<std::array<std::uint32_t, 1 << bits>> counts(passes);
  for (auto& one : counts) one.fill(0);
  for (const Key key : keys) {
    for (unsigned pass = 0; pass != passes; ++pass) ++counts[pass][key >> pass * bits & ((1 << bits) - 1)];
  }
  std::vector<Key> other(keys.size());
  std::span<Key> from = keys, to = other;
  for (unsigned pass = 0; pass != passes; ++pass) {
    std::uint32_t place = 0;
    for (std::uint32_t& count : counts[pass]) place += std::exchange(count, place);
    for (const Key key : from) to[counts[pass][key >> pass * bits & ((1 << bits) - 1)]++] = key;
    std::swap(from, to);
  }
  if (from.data() != keys.data()) std::ranges::copy(from, keys.begin());
}

/// `how` is one of local_sorts.
inline void sort(std::span<Key> keys, const std::string& how) {
  if (how == "radix")
    radix_sort(keys);
  else
    std::sort(keys.begin(), keys.end());
}

}  // namespace headway::sorting
