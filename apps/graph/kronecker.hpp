// SPDX-License-Identifier: BSD-3-Clause
/// Kronecker graphs of the Graph500 benchmark (specification 2.0, section 3), by seed. Any PE computes the same edge
/// from the same number.
#pragma once

#include <cstdint>
#include <headway/base/random.hpp>
#include <utility>

namespace headway::graph {

struct KroneckerOptions {
  unsigned scale = 10;             // 2^scale vertices
  std::uint64_t edge_factor = 16;  // edges for each
  std::uint64_t seed = 1;
  std::uint64_t zeros = 0;  // of so many edges one weighs nothing; 0: only by chance

  std::uint64_t vertices() const { return std::uint64_t(1) << scale; }
  std::uint64_t edges() const { return edge_factor << scale; }
};

/// The vertex that goes by this number: one to one, so that those with many edges are not neighbours.
inline std::uint32_t label(const KroneckerOptions& graph, std::uint32_t vertex) {
  const std::uint64_t mask = graph.vertices() - 1;
  const unsigned half = (graph.scale + 1) / 2;
  std::uint64_t x = vertex;
  Random random(graph.seed ^ 0x6a09e667f3bcc908);
  for (int round = 0; round < 3; ++round) {  // each step can be undone: odd factors, sums, and shifts that are xored
    x = (x * (random.next() | 1) + random.next()) & mask;
    if (half != 0) x ^= x >> half;
  }
  return std::uint32_t(x);
}

/// Edge i of edges(), with ends by their labels: initiator probabilities 0.57, 0.19, 0.19, 0.05.
inline std::pair<std::uint32_t, std::uint32_t> edge(const KroneckerOptions& graph, std::uint64_t i) {
  Random random(Random(graph.seed).next() ^ Random(i).next());
  std::uint32_t from = 0, to = 0;
  for (unsigned bit = 0; bit < graph.scale; ++bit) {
    const double draw = random.fraction();
    from = from << 1 | std::uint32_t(draw >= 0.57 + 0.19);
    to = to << 1 | std::uint32_t((draw >= 0.57 && draw < 0.57 + 0.19) || draw >= 0.57 + 0.19 + 0.19);
  }
  return {label(graph, from), label(graph, to)};
}

/// What edge i weighs, for shortest paths: as likely any multiple of 2^-24 in [0, 1) as another.
inline float weight(const KroneckerOptions& graph, std::uint64_t i) {
  Random random(Random(graph.seed ^ 0x3c6ef372fe94f82b).next() ^ Random(i).next());
  const float weight = float(random.next() >> 40) * 0x1p-24f;
  return graph.zeros != 0 && random.one_in(graph.zeros) ? 0 : weight;
}

}  // namespace headway::graph
