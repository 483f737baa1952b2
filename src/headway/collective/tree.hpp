// SPDX-License-Identifier: BSD-3-Clause
/// Trees of collectives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/short_vector.hpp>

namespace headway::collective {

inline constexpr std::uint32_t nobody = ~std::uint32_t(0);

/// One member's place in a binomial tree, by ranks. Counted from the root, the parent of r is r without its lowest
/// bit, and each subtree holds consecutive ranks, its own first. So reducing the children in their order combines in
/// the order of ranks.
struct TreePlace {
  TreePlace(std::size_t rank, std::size_t size, std::size_t root) {
    const std::size_t from_root = rank >= root ? rank - root : rank + size - root;
    const auto rank_of = [&](std::size_t r) { return std::uint32_t(r < size - root ? r + root : r + root - size); };
    if (from_root != 0) parent = rank_of(from_root & (from_root - 1));
    for (std::size_t bit = 1; (from_root & bit) == 0 && from_root + bit < size; bit <<= 1) {
      children.push_back(rank_of(from_root + bit));
    }
  }

  std::uint32_t parent = nobody;
  base::ShortVector<std::uint32_t, 8> children;  // ascending, counted from the root
};

/// The parent of a rank without children; the default of TreePlace::parent if it has children or no parent.
inline std::uint32_t parent_of_leaf(std::size_t rank, std::size_t size, std::size_t root) {
  const std::size_t from_root = rank >= root ? rank - root : rank + size - root;
  if (from_root == 0 || (from_root % 2 == 0 && from_root + 1 < size)) return nobody;
  const std::size_t parent = from_root & (from_root - 1);
  return std::uint32_t(parent < size - root ? parent + root : parent + root - size);
}

/// The reduction of the contributions of a rank and its subtree, in the tree from rank 0. given(rank) returns `bytes`
/// bytes; combine(running, other) is called with the brackets of the tree. Returns the address of the result: in
/// `scratch`, which has space for one contribution per level of the tree, or where it was given.
template <class Given, class Combine>
const std::byte* reduce_subtree(std::size_t rank, std::size_t size, std::size_t bytes, const Given& given,
                                const Combine& combine, std::byte* scratch) {
  const std::byte* running = given(rank);
  for (std::size_t bit = 1; (rank & bit) == 0 && rank + bit < size; bit <<= 1) {
    if (running != scratch) std::memcpy(scratch, running, bytes);
    running = scratch;
    combine(scratch, reduce_subtree(rank + bit, size, bytes, given, combine, scratch + bytes));
  }
  return running;
}

}  // namespace headway::collective
