// SPDX-License-Identifier: BSD-3-Clause
/// Square cells of a quadtree, and their order along a Morton curve.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headway::amr {

/// The domain has 2^depth x 2^depth points. The level of a cell is at least 2 below, so that its sides have halves.
inline constexpr unsigned depth = 16, level_max = 14;
inline constexpr std::uint32_t extent = 1u << depth;

/// The place of a point on the Morton curve: the bits of x and y in turn.
using Key = std::uint64_t;
inline constexpr Key key_end = Key(1) << 2 * depth;

/// Puts a zero before each of the lower 32 bits.
inline Key spread(std::uint32_t bits) {
  Key key = bits;
  key = (key | key << 16) & 0x0000ffff0000ffff;
  key = (key | key << 8) & 0x00ff00ff00ff00ff;
  key = (key | key << 4) & 0x0f0f0f0f0f0f0f0f;
  key = (key | key << 2) & 0x3333333333333333;
  return (key | key << 1) & 0x5555555555555555;
}
/// The reverse; ignores the bits that spread() leaves zero.
inline std::uint32_t gather(Key key) {
  key &= 0x5555555555555555;
  key = (key | key >> 1) & 0x3333333333333333;
  key = (key | key >> 2) & 0x0f0f0f0f0f0f0f0f;
  key = (key | key >> 4) & 0x00ff00ff00ff00ff;
  key = (key | key >> 8) & 0x0000ffff0000ffff;
  return std::uint32_t(key | key >> 16);
}
inline Key key_of(std::uint32_t x, std::uint32_t y) { return spread(x) | spread(y) << 1; }

enum Face : std::uint8_t { west, east, south, north };
inline constexpr std::size_t faces = 4;

/// A cell: one of 2^level x 2^level squares. It covers a contiguous piece of the curve, which begins at `key`.
struct Square {
  Key key = 0;
  std::uint64_t level = 0;

  std::uint32_t side() const { return extent >> level; }
  /// The first key after the piece.
  Key end() const { return key + (key_end >> 2 * level); }
  /// The first point in x and y; divided by side() it is the cell's column and row.
  std::uint32_t x() const { return gather(key); }
  std::uint32_t y() const { return gather(key >> 1); }
  /// The sides of the domain have length 1.
  double length() const { return 1.0 / double(1u << level); }
  std::size_t child_number() const { return key >> 2 * (depth - level) & 3; }
  Square parent() const {
    const Key points = key_end >> 2 * (level - 1);
    return {key / points * points, level - 1};
  }
  Square child(std::size_t number) const { return {key + number * (key_end >> 2 * (level + 1)), level + 1}; }

  struct Beside {
    bool is_wall;
    Key key;
  };
  /// The point beyond the first (0) or second (1) half of a face.
  Beside beside(Face face, std::uint32_t half) const {
    const std::uint32_t along = half * side() / 2;
    switch (face) {
      case west: return {x() == 0, key_of(x() - 1, y() + along)};
      case east: return {x() + side() == extent, key_of(x() + side(), y() + along)};
      case south: return {y() == 0, key_of(x() + along, y() - 1)};
      default: return {y() + side() == extent, key_of(x() + along, y() + side())};
    }
  }
  friend bool operator==(const Square&, const Square&) = default;
};

}  // namespace headway::amr
