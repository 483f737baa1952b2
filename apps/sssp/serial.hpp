// SPDX-License-Identifier: BSD-3-Clause
/// Shortest paths on one processor, and the values that the check compares.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "../graph/kronecker.hpp"
#include "../graph/parts.hpp"

namespace headway::sssp {

inline constexpr float unreached = std::numeric_limits<float>::infinity();

/// The other end of an edge.
struct Far {
  std::uint32_t vertex;
  float weight;
};

/// A summand of the checksum, which is of all vertices that were reached.
inline std::uint64_t checksum_of(std::uint32_t vertex, float distance) {
  return Random(std::uint64_t(vertex) << 32 ^ std::bit_cast<std::uint32_t>(distance)).next();
}

/// A whole graph, both ways of each edge.
inline graph::Edges<Far> whole_graph(const graph::KroneckerOptions& graph) {
  graph::Edges<Far> edges;
  for (std::uint64_t i = 0; i < graph.edges(); ++i) {
    const auto [from, to] = graph::edge(graph, i);
    const float weight = graph::weight(graph, i);
    edges.add(from, {to, weight});
    edges.add(to, {from, weight});
  }
  edges.build(graph.vertices());
  return edges;
}

/// Dijkstra's algorithm ("A note on two problems in connexion with graphs", 1959). A path's length is summed from the
/// root on, in float. Of two sums the smaller one stays so, or becomes equal, when the same weight is added to both:
/// the least length is the same to the bit, in whichever order paths are looked at.
inline std::vector<float> distances_from(std::uint32_t root, const graph::Edges<Far>& edges, std::uint64_t vertices) {
  using Reached = std::pair<float, std::uint32_t>;
  std::vector<float> distances(vertices, unreached);
  std::priority_queue<Reached, std::vector<Reached>, std::greater<>> queue;
  distances[root] = 0;
  queue.emplace(0.f, root);
  while (!queue.empty()) {
    const auto [distance, vertex] = queue.top();
    queue.pop();
    if (distance != distances[vertex]) continue;
    for (const Far& far : edges.of(vertex)) {
      const float further = distance + far.weight;
      if (!(further < distances[far.vertex])) continue;
      distances[far.vertex] = further;
      queue.emplace(further, far.vertex);
    }
  }
  return distances;
}

}  // namespace headway::sssp
