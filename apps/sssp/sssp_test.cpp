// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <vector>

#include "serial.hpp"

namespace headway::sssp {
namespace {

/// Every edge again and again, until nothing becomes shorter (Bellman and Ford).
std::vector<float> distances_edge_by_edge(std::uint32_t root, const graph::KroneckerOptions& graph) {
  std::vector<float> distances(graph.vertices(), unreached);
  distances[root] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint64_t i = graph.edges(); i-- > 0;) {
      const auto [from, to] = graph::edge(graph, i);
      const float weight = graph::weight(graph, i);
      for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
        if (!(distances[a] + weight < distances[b])) continue;
        distances[b] = distances[a] + weight;
        changed = true;
      }
    }
  }
  return distances;
}

TEST(ShortestPaths, are_the_same_to_the_bit_in_whichever_order_edges_are_looked_along) {
  for (const std::uint64_t zeros : {0, 3}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const graph::KroneckerOptions graph{.scale = 9, .edge_factor = 3, .seed = seed, .zeros = zeros};
      const graph::Edges<Far> edges = whole_graph(graph);
      for (const std::uint32_t root : {0u, 7u, 500u}) {
        EXPECT_EQ(distances_from(root, edges, graph.vertices()), distances_edge_by_edge(root, graph)) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace headway::sssp
