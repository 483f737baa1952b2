// SPDX-License-Identifier: BSD-3-Clause
/// The parts of a graph, the start vertices of searches, and the results of a search. Headway's program and its peers
/// share them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kronecker.hpp"

namespace headway::graph {

/// In the place of a vertex.
inline constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

/// Parts of 2^log2 vertices each. The labels of a part's vertices are consecutive.
struct Layout {
  unsigned log2 = 0;

  std::uint32_t vertices() const { return std::uint32_t(1) << log2; }
  std::int32_t part(std::uint32_t vertex) const { return std::int32_t(vertex >> log2); }
  std::uint32_t within(std::uint32_t vertex) const { return vertex & (vertices() - 1); }
  std::uint32_t first(std::int32_t part) const { return std::uint32_t(part) << log2; }
};

/// The edges of a part's vertices, those of one vertex side by side. A Far describes an edge's other end.
template <class Far>
class Edges {
 public:
  void add(std::uint32_t vertex, const Far& far) { raw_.emplace_back(vertex, far); }
  /// When all have been added.
  void build(std::size_t vertices) {
    offsets_.assign(vertices + 1, 0);
    for (const auto& [vertex, far] : raw_) ++offsets_[vertex + 1];
    for (std::size_t i = 0; i < vertices; ++i) offsets_[i + 1] += offsets_[i];
    far_.resize(raw_.size());
    std::vector<std::uint64_t> next(offsets_.begin(), offsets_.end() - 1);
    for (const auto& [vertex, far] : raw_) far_[next[vertex]++] = far;
    raw_ = {};
  }
  std::uint64_t degree(std::uint32_t vertex) const { return offsets_[vertex + 1] - offsets_[vertex]; }
  std::span<const Far> of(std::uint32_t vertex) const { return {far_.data() + offsets_[vertex], degree(vertex)}; }
  std::span<Far> of(std::uint32_t vertex) { return {far_.data() + offsets_[vertex], degree(vertex)}; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(offsets_, far_);
  }

 private:
  std::vector<std::pair<std::uint32_t, Far>> raw_;  // until it is built
  std::vector<std::uint64_t> offsets_;
  std::vector<Far> far_;
};

/// All vertices of a graph in an order of its seed: searches start from the first that have an edge to another, so that
/// each starts elsewhere.
class Candidates {
 public:
  explicit Candidates(const KroneckerOptions& graph) : graph_(graph) { graph_.seed ^= 0xbb67ae8584caa73b; }
  /// Nothing: that were all.
  std::optional<std::uint32_t> next() {
    if (next_ == graph_.vertices()) return std::nullopt;
    return label(graph_, std::uint32_t(next_++));
  }

 private:
  KroneckerOptions graph_;
  std::uint64_t next_ = 0;
};

/// The vertices that this PE has sent to in a search. Any of its parts inserts them, so that no other part sends again.
class Sieve {
 public:
  explicit Sieve(std::uint64_t vertices) : words_((vertices + 63) / 64) {}
  void reset() { std::ranges::fill(words_, 0); }
  /// Returns false if the vertex was already in.
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

/// A checksum is the sum over the reached vertices, in any order. It leaves out parents, since a vertex may have
/// several candidates and the order of arrival decides.
inline std::uint64_t digest(std::uint32_t vertex, std::uint32_t level) {
  return Random(std::uint64_t(vertex) << 32 ^ level).next();
}

}  // namespace headway::graph
