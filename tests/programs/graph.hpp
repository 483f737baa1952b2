// SPDX-License-Identifier: BSD-3-Clause
/// Graphs for the programs of this folder: the same on every PE, which uses its part, and the whole only to check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "program.hpp"

namespace program {

using Vertex = std::uint32_t;

/// Each vertex's neighbours, sorted, without itself.
using Graph = std::vector<std::vector<Vertex>>;

inline void join(Graph& graph, Vertex a, Vertex b) {
  if (a == b) return;
  graph[a].push_back(b);
  graph[b].push_back(a);
}

inline Graph sorted(Graph graph) {
  for (auto& neighbours : graph) {
    std::sort(neighbours.begin(), neighbours.end());
    neighbours.erase(std::unique(neighbours.begin(), neighbours.end()), neighbours.end());
  }
  return graph;
}

inline Graph random_graph(Vertex vertices, std::size_t edges, std::uint64_t seed) {
  Graph graph(vertices);
  const auto vertex = [&](std::uint64_t n) { return Vertex(random(seed << 32 | n) % vertices); };
  for (std::size_t e = 0; e < edges; ++e) join(graph, vertex(2 * e), vertex(2 * e + 1));
  return sorted(graph);
}

inline Graph path(Vertex vertices) {
  Graph graph(vertices);
  for (Vertex v = 0; v + 1 < vertices; ++v) join(graph, v, v + 1);
  return sorted(graph);
}

/// A random graph with one vertex more, which is joined to all others.
inline Graph graph_with_hub(Vertex vertices, std::size_t edges, std::uint64_t seed) {
  Graph graph = random_graph(vertices, edges, seed);
  graph.emplace_back();
  for (Vertex v = 0; v < vertices; ++v) join(graph, vertices, v);
  return sorted(graph);
}

}  // namespace program
