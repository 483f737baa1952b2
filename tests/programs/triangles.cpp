// SPDX-License-Identifier: BSD-3-Clause
/// Triangle counting: each vertex sends the list of its later neighbours to each of them, where it is compared, in
/// place, with theirs.
#include <span>

#include "graph.hpp"

using program::Graph;
using program::Vertex;

using Neighbours = std::span<const Vertex>;

Neighbours later_neighbours(const Graph& graph, Vertex v) {
  const auto later = std::upper_bound(graph[v].begin(), graph[v].end(), v);
  return {later, graph[v].end()};
}

std::size_t count_common(Neighbours a, Neighbours b) {
  std::size_t common = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    common += a[i] == b[j];
    ++(a[i] < b[j] ? i : j);
  }
  return common;
}

std::size_t serial_triangles(const Graph& graph) {
  std::size_t triangles = 0;
  for (Vertex v = 0; v < graph.size(); ++v) {
    for (const Vertex w : later_neighbours(graph, v)) {
      for (const Vertex x : later_neighbours(graph, w)) {
        triangles += std::binary_search(graph[v].begin(), graph[v].end(), x);
      }
    }
  }
  return triangles;
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const Graph graph = program::graph_with_hub(1000, 30'000, 1);
    const headway::Cyclic layout(graph.size(), pe.size());
    std::size_t triangles = 0;

    headway::Aggregator<Vertex, Neighbours> wedges(pe, program::options(argc, argv));
    wedges.on([&](Vertex v, Neighbours list) { triangles += count_common(later_neighbours(graph, v), list); });

    for (std::size_t at = 0; at < layout.count(pe.id()); ++at) {
      const Neighbours list = later_neighbours(graph, Vertex(layout.global(pe.id(), at)));
      for (const Vertex v : list) wedges.send(layout.owner(v), v, list);
    }
    pe.quiesce();

    triangles = program::sum(pe, triangles);
    return program::finish(pe, triangles == serial_triangles(graph), "triangles", triangles);
  });
}
