// SPDX-License-Identifier: BSD-3-Clause
/// The graph of connect, a grid with missing edges, and a serial program that finds its components.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace headway::connect {

/// rows x columns nodes, row by row; each edge to the right and down is there with the same probability, the same on
/// every PE without a message.
struct Grid {
  std::size_t rows = 1, columns = 1;
  double edges = 0.3;
  std::uint64_t seed = 1;

  std::size_t nodes() const { return rows * columns; }
  bool leads_right(std::size_t node) const { return (node + 1) % columns != 0 && is_there(2 * node); }
  bool leads_down(std::size_t node) const { return node + columns < nodes() && is_there(2 * node + 1); }

 private:
  bool is_there(std::uint64_t edge) const { return Random(seed * 0x9e3779b97f4a7c15 + edge).chance(edges); }
};

/// Disjoint sets of the numbers from `first` on. `parents` names for each number another of its set that is not larger;
/// the smallest names itself. A parent outside the span means that the set continues on another PE.
class Sets {
 public:
  Sets(std::span<std::uint64_t> parents, std::uint64_t first) : parents_(parents), first_(first) {
    std::iota(parents.begin(), parents.end(), first);
  }

  /// The smallest, as far as the span says.
  std::uint64_t find(std::uint64_t node) const {
    while (is_here(node) && parent(node) != node) {
      std::uint64_t& up = parent(node);
      if (is_here(up)) up = parent(up);  // halves the way
      node = up;
    }
    return node;
  }
  void unite(std::uint64_t a, std::uint64_t b) {
    a = find(a), b = find(b);
    if (a < b) std::swap(a, b);
    parent(a) = b;
  }

 private:
  bool is_here(std::uint64_t node) const { return node - first_ < parents_.size(); }
  std::uint64_t& parent(std::uint64_t node) const { return parents_[node - first_]; }

  std::span<std::uint64_t> parents_;
  std::uint64_t first_;
};

/// Of each node of the grid the smallest node of its component.
inline std::vector<std::uint64_t> components(const Grid& grid) {
  std::vector<std::uint64_t> parents(grid.nodes());
  Sets sets(parents, 0);
  for (std::size_t node = 0; node < grid.nodes(); ++node) {
    if (grid.leads_right(node)) sets.unite(node, node + 1);
    if (grid.leads_down(node)) sets.unite(node, node + grid.columns);
  }
  for (std::size_t node = 0; node < grid.nodes(); ++node) parents[node] = sets.find(node);
  return parents;
}

}  // namespace headway::connect
