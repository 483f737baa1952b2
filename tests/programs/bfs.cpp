// SPDX-License-Identifier: BSD-3-Clause
/// Breadth-first search, level by level. The owner of a vertex takes the first edge that reaches it, and its handler
/// tells the parent. Only quiesce() separates the levels.
#include <stdexcept>
#include <utility>

#include "graph.hpp"

using program::Graph;
using program::Vertex;

constexpr int unreached = -1;

std::vector<int> serial_levels(const Graph& graph) {
  std::vector<int> levels(graph.size(), unreached);
  std::vector<Vertex> queue{0};
  levels[0] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const Vertex v : graph[queue[i]]) {
      if (levels[v] != unreached) continue;
      levels[v] = levels[queue[i]] + 1;
      queue.push_back(v);
    }
  }
  return levels;
}

/// How many vertices vertex 0 reaches, itself included; nothing if it is not the serial result.
std::size_t reached_from_0(headway::Pe& pe, const headway::AggregatorOptions& options, const Graph& graph,
                           bool& right) {
  const headway::Cyclic layout(graph.size(), pe.size());
  std::vector<int> levels(layout.count(pe.id()), unreached);
  std::vector<Vertex> parents(levels.size());
  std::vector<Vertex> frontier, next;
  std::size_t children = 0;
  int level = 0;  // of the frontier
  const auto refuse_other_levels = [&](int tag) {
    if (tag != level) throw std::logic_error("a message of another level was handled");
  };

  headway::Aggregator<Vertex, int> adoptions(pe, options);
  adoptions.on([&](Vertex, int tag) {
    refuse_other_levels(tag);
    ++children;
  });
  headway::Aggregator<Vertex, Vertex, int> edges(pe, options);
  edges.on([&](Vertex from, Vertex to, int tag) {
    refuse_other_levels(tag);
    int& mine = levels[layout.local(to)];
    if (mine != unreached) return;
    mine = level + 1;
    parents[layout.local(to)] = from;
    next.push_back(to);
    adoptions.send(layout.owner(from), from, tag);  // handled in this level, too
  });

  if (layout.owner(0) == pe.id()) {
    frontier.push_back(0);
    levels[0] = 0;
  }
  do {
    for (const Vertex from : frontier) {
      for (const Vertex to : graph[from]) edges.send(layout.owner(to), from, to, level);
    }
    frontier.clear();
  } while (pe.quiesce() != 0 && (frontier.swap(next), ++level));  // 0: no PE had an edge to follow

  const std::vector<int> expected = serial_levels(graph);
  std::size_t reached = 0;
  for (std::size_t at = 0; at < levels.size(); ++at) {
    right &= levels[at] == expected[layout.global(pe.id(), at)];
    if (levels[at] > 0) right &= expected[parents[at]] == levels[at] - 1;
    reached += levels[at] != unreached;
  }
  reached = program::sum(pe, reached);
  right &= program::sum(pe, children) == reached - 1;
  return reached;
}

int main(int argc, char** argv) {
  return headway::run(argc, argv, [&](headway::Pe& pe) {
    const headway::AggregatorOptions options = program::options(argc, argv);
    bool right = true;
    std::size_t reached = 0;
    for (const std::uint64_t seed : {1, 2, 3}) {  // from islands to a few levels
      reached += reached_from_0(pe, options, program::random_graph(3000, 800 * seed * seed, seed), right);
    }
    reached += reached_from_0(pe, options, program::path(500), right);
    return program::finish(pe, right, "vertices reached", reached);
  });
}
