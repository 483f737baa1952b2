/// What searches of a graph have in common, whoever makes them, so that their results can be compared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <headway/base/random.hpp>
#include <vector>

#include "kronecker.hpp"

namespace headway::graph {

/// Draws vertices; a search starts from each that has an edge, others are passed over.
inline Random root_draws(const KroneckerOptions& graph) { return Random(graph.seed ^ 0xbb67ae8584caa73b); }
inline std::uint32_t draw_root(Random& draws, const KroneckerOptions& graph) {
  return std::uint32_t(draws.below(graph.vertices()));
}

/// A checksum is the sum over the vertices that were reached, in any order. Parents have no part in it: which of
/// several a vertex gets depends on who comes first.
inline std::uint64_t digest(std::uint32_t vertex, std::uint32_t level) {
  return Random(std::uint64_t(vertex) << 32 ^ level).next();
}

/// Which vertices this PE has sent to in a search: whoever of its vertices was first has told them.
class Sieve {
 public:
  explicit Sieve(std::uint64_t vertices) : words_((vertices + 63) / 64) {}
  void reset() { std::ranges::fill(words_, 0); }
  /// False for what was in it before.
  bool insert(std::uint32_t vertex) {
    std::uint64_t& word = words_[vertex / 64];
    const std::uint64_t bit = std::uint64_t(1) << vertex % 64;
    if ((word & bit) != 0) return false;
    word |= bit;
    return true;
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace headway::graph
