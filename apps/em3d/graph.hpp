// SPDX-License-Identifier: BSD-3-Clause
/// The graph of em3d: the dependencies of each node, and their weights. Each PE computes the same graph without
/// messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <vector>

namespace headway::em3d {

/// Nodes of two kinds, as many of each: each node's next value is its own less the weighted ones of `degree` nodes of
/// the other kind. Nodes are dealt out to `parts` in blocks; a share of all edges leads to the part behind the node's
/// own, the others stay within it (Culler, Dusseau, Goldstein, Krishnamurthy, Lumetta, von Eicken, Yelick, "Parallel
/// programming in Split-C", 1993).
struct GraphOptions {
  std::size_t nodes = 4096;  // of each kind; a multiple of `parts`
  std::size_t degree = 10;
  std::size_t parts = 1;
  double remote = 0.2;  // of the edges
  std::uint64_t seed = 1;
};

struct Dependency {
  std::size_t node;  // of the other kind
  double weight;
};

/// What node `node` of kind `kind` (0: electric, 1: magnetic) depends on.
inline std::vector<Dependency> dependencies(const GraphOptions& graph, unsigned kind, std::size_t node) {
  Random random(graph.seed * 0x9e3779b97f4a7c15 + node * 2 + kind);
  const std::size_t each = graph.nodes / graph.parts, part = node / each;
  std::vector<Dependency> all(graph.degree);
  for (Dependency& one : all) {
    const std::size_t of = random.chance(graph.remote) ? (part + 1) % graph.parts : part;
    one = {of * each + random.below(each), random.fraction() / double(graph.degree)};
  }
  return all;
}

inline double first_value(const GraphOptions& graph, unsigned kind, std::size_t node) {
  return Random(~graph.seed - node * 2 - kind).fraction();
}

}  // namespace headway::em3d
