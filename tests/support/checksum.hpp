// SPDX-License-Identifier: BSD-3-Clause
/// For tests that compare received with sent content.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace headway::testing {

/// Depends on every byte and on its place.
inline std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::uint64_t hash = seed ^ bytes.size() * 0x9e3779b97f4a7c15;
  auto add = [&](std::uint64_t word) { hash = std::rotl(hash ^ word, 29) * 0x9fb21c651e98df25; };
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    add(word);
  }
  std::uint64_t rest = 0;
  if (i < bytes.size()) std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  add(rest);
  return hash ^ hash >> 32;
}

}  // namespace headway::testing
