/// Trees that collectives go along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headway::collective {

inline constexpr std::uint32_t nobody = ~std::uint32_t(0);

/// One member's place in a tree, by ranks.
struct TreePlace {
  std::uint32_t parent = nobody;
  std::vector<std::uint32_t> children;  // ascending, counted from the root
};

/// A binomial tree: counted from the root, the parent of r is r without its lowest bit, and each subtree holds
/// consecutive ranks, its own first. So what is folded into a member's own value in the order of its children is in the
/// order of ranks.
inline TreePlace binomial_tree(std::size_t rank, std::size_t size, std::size_t root) {
  const std::size_t from_root = rank >= root ? rank - root : rank + size - root;
  const auto rank_of = [&](std::size_t r) { return std::uint32_t(r < size - root ? r + root : r + root - size); };
  TreePlace place;
  if (from_root != 0) place.parent = rank_of(from_root & (from_root - 1));
  for (std::size_t bit = 1; (from_root & bit) == 0 && from_root + bit < size; bit <<= 1) {
    place.children.push_back(rank_of(from_root + bit));
  }
  return place;
}

}  // namespace headway::collective
