// SPDX-License-Identifier: BSD-3-Clause
/// Breadth-first search of Graph500 as its simple reference code goes about it, without buffers: vertices in blocks,
/// one on each rank; a message for each edge that leaves a level to another rank, to vertices that this rank has not
/// sent to before; a level ends when all are handled.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <graph/parts.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "buckets.hpp"
#include "direct.hpp"
#include "peer.hpp"

namespace headway::peers {
namespace {

using graph::nobody;
using Edges = graph::Edges<std::uint32_t>;

/// Along an edge from `parent`, to another rank.
struct Visit {
  std::uint32_t vertex, parent;
};
static_assert(sizeof(Visit) == 8);

/// Where the vertices are.
struct Blocks {
  Blocks(const graph::KroneckerOptions& graph) : scale(graph.scale), vertices(graph.vertices()) {
    int ranks = 1, rank = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pes = std::uint64_t(ranks), me = std::uint64_t(rank);
    begin = begin_of(me), end = begin_of(me + 1);
  }
  std::size_t owner(std::uint32_t vertex) const { return vertex * pes >> scale; }
  std::uint32_t begin_of(std::uint64_t rank) const { return std::uint32_t(((rank << scale) + pes - 1) / pes); }

  unsigned scale;
  std::uint64_t vertices, pes = 1, me = 0;
  std::uint32_t begin = 0, end = 0;  // of this rank's
};

/// All of the graph and a search of it on one processor, to compare with.
class Alone {
 public:
  explicit Alone(const graph::KroneckerOptions& graph) : vertices_(graph.vertices()) {
    for (std::uint64_t i = 0; i < graph.edges(); ++i) {
      const auto [from, to] = graph::edge(graph, i);
      edges_.add(from, to);
      edges_.add(to, from);
    }
    edges_.build(vertices_);
  }
  std::vector<std::uint32_t> levels_from(std::uint32_t root) const {
    std::vector<std::uint32_t> levels(vertices_, nobody), queue{root};
    levels[root] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const std::uint32_t other : edges_.of(queue[i])) {
        if (levels[other] != nobody) continue;
        levels[other] = levels[queue[i]] + 1;
        queue.push_back(other);
      }
    }
    return levels;
  }

 private:
  std::size_t vertices_;
  Edges edges_;
};
constexpr unsigned alone_scale_max = 14;

/// In all searches: by this rank, but for the levels, which are everybody's.
struct Found {
  std::uint64_t edges = 0, messages = 0, degrees = 0, visited = 0, levels = 0, checksum = 0, errors = 0;
};

/// This rank's part of the graph, and of a search.
class Part {
 public:
  explicit Part(const graph::KroneckerOptions& graph) : blocks_(graph) {
    if (blocks_.me == 0 && graph.scale <= alone_scale_max) alone_.emplace(graph);
    build(graph);
  }

  /// Collective.
  bool leads_elsewhere(std::uint32_t vertex) const {
    const bool mine = blocks_.owner(vertex) == blocks_.me;
    const auto elsewhere = [vertex](std::uint32_t other) { return other != vertex; };
    return total(mine && std::ranges::any_of(edges_.of(vertex - blocks_.begin), elsewhere) ? 1 : 0) != 0;
  }

  void reset() {
    const std::size_t vertices = blocks_.end - blocks_.begin;
    reached_.assign((vertices + 63) / 64, 0);
    searched_.assign((vertices + 63) / 64, 0);
    parents_.assign(vertices, nobody);
    levels_.assign(vertices, nobody);
    depth_ = 0;
  }
  /// `vertex` is one of this rank's.
  void visit(std::uint32_t vertex, std::uint32_t parent) {
    vertex -= blocks_.begin;
    std::uint64_t& reached = reached_[vertex / 64];
    const std::uint64_t bit = std::uint64_t(1) << vertex % 64;
    if ((reached & bit) != 0) return;
    reached |= bit;
    parents_[vertex] = parent;
    levels_[vertex] = depth_;
  }

  /// Collective. Sends along all edges that `passes(vertex)`, or goes along those that stay; adds to `found`.
  template <class Messages, class Passes>
  void search(std::uint32_t root, Messages& messages, Passes passes, Found& found) {
    if (blocks_.owner(root) == blocks_.me) visit(root, root);
    while (total(advance()) > 0) {  // the sum is a barrier: no rank sends for the next level before all are here
      ++depth_;
      ++found.levels;
      for (const std::uint32_t vertex : frontier_) {
        const std::span edges = edges_.of(vertex);
        found.edges += edges.size();
        for (const std::uint32_t other : edges) {
          if (!passes(other)) continue;
          ++found.messages;
          const std::size_t owner = blocks_.owner(other);
          if (owner == blocks_.me) {
            visit(other, blocks_.begin + vertex);
          } else {
            const Visit visit{other, blocks_.begin + vertex};
            std::memcpy(messages.next(), &visit, sizeof visit);
            messages.send(owner);
          }
        }
      }
      messages.finish();
    }
  }

  /// Collective. As the specification says (2.0, section 8), with everybody's levels at hand; and small graphs beside a
  /// search by one processor. Returns this rank's errors.
  std::uint64_t check(std::uint32_t root) const {
    const std::vector<std::uint32_t> levels = all_levels();
    std::uint64_t errors = 0;
    for (std::uint32_t i = 0; i < parents_.size(); ++i) {
      const std::uint32_t parent = parents_[i], level = levels_[i];
      const std::span edges = edges_.of(i);
      errors += (parent == nobody) != (level == nobody);
      if (blocks_.begin + i == root) {
        errors += parent != root || level != 0;
      } else if (parent != nobody) {
        errors += level == 0 || levels[parent] + 1 != level || std::ranges::find(edges, parent) == edges.end();
      }
      for (const std::uint32_t other : edges) {
        const std::uint32_t there = levels[other];
        errors += level == nobody || there == nobody ? level != there : level + 1 < there || there + 1 < level;
      }
    }
    if (alone_) errors += levels != alone_->levels_from(root);
    return errors;
  }
  template <class F>
  void for_each_reached(F f) const {
    for (std::uint32_t i = 0; i < levels_.size(); ++i) {
      if (levels_[i] != nobody) f(blocks_.begin + i, levels_[i], edges_.of(i).size());
    }
  }

 private:
  /// Makes the vertices reached in this level the frontier, in their order. Returns how many.
  std::size_t advance() {
    frontier_.clear();
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      for (std::uint64_t bits = reached_[i] & ~searched_[i]; bits != 0; bits &= bits - 1) {
        frontier_.push_back(std::uint32_t(i * 64 + std::size_t(std::countr_zero(bits))));
      }
    }
    searched_ = reached_;
    return frontier_.size();
  }

  static constexpr std::size_t bucket_bytes = std::size_t(256) << 10;

  /// Collective. Each rank makes its share of the edges and sends them to the owners of their ends.
  void build(const graph::KroneckerOptions& graph) {
    const auto take = [&](const std::uint32_t* ends, std::size_t count, std::size_t /*rank*/) {
      for (; count > 0; --count, ends += 2) edges_.add(ends[0] - blocks_.begin, ends[1]);
    };
    Buckets<std::uint32_t> buckets(MPI_COMM_WORLD, 2, bucket_bytes);
    const auto add = [&](std::uint32_t vertex, std::uint32_t other) {
      std::uint32_t*& cursor = buckets.cursors()[blocks_.owner(vertex)];
      *cursor++ = vertex;
      *cursor++ = other;
    };
    std::uint64_t i = graph.edges() * blocks_.me / blocks_.pes;
    const std::uint64_t end = graph.edges() * (blocks_.me + 1) / blocks_.pes;
    do {
      for (std::size_t room = buckets.room(); i < end && room >= 2; room = buckets.room()) {
        for (std::uint64_t now = std::min<std::uint64_t>(end - i, room / 2); now > 0; --now, ++i) {
          const auto [from, to] = graph::edge(graph, i);
          add(from, to);
          add(to, from);
        }
      }
    } while (!buckets.exchange(i == end, take));
    edges_.build(blocks_.end - blocks_.begin);
  }

  std::vector<std::uint32_t> all_levels() const {
    std::vector<int> counts, begins;
    for (std::uint64_t rank = 0; rank < blocks_.pes; ++rank) {
      begins.push_back(int(blocks_.begin_of(rank)));
      counts.push_back(int(blocks_.begin_of(rank + 1) - blocks_.begin_of(rank)));
    }
    std::vector<std::uint32_t> levels(blocks_.vertices);
    MPI_Allgatherv(levels_.data(), int(levels_.size()), MPI_UINT32_T, levels.data(), counts.data(), begins.data(),
                   MPI_UINT32_T, MPI_COMM_WORLD);
    return levels;
  }

  Blocks blocks_;
  std::optional<Alone> alone_;
  Edges edges_;
  std::vector<std::uint64_t> reached_, searched_;  // bits; the latter as it was before this level
  std::vector<std::uint32_t> parents_, levels_;
  std::uint32_t depth_ = 0;              // of the vertices reached now
  std::vector<std::uint32_t> frontier_;  // of this rank's vertices, counted from its first
};

}  // namespace

bench::Json run_bfs(const Arguments& arguments) {
  const graph::KroneckerOptions& graph = arguments.graph;
  Part part(graph);
  graph::Candidates candidates(graph);
  DirectMessages messages(MPI_COMM_WORLD, sizeof(Visit), [&part](const std::byte* item) {
    Visit visit;
    std::memcpy(&visit, item, sizeof visit);
    part.visit(visit.vertex, visit.parent);
  });
  graph::Sieve sieve(arguments.every_edge ? 0 : graph.vertices());
  double seconds = 0;
  Found found;
  std::uint64_t roots = 0;
  while (roots < arguments.roots) {
    const auto root = candidates.next();
    if (!root) break;
    if (!part.leads_elsewhere(*root)) continue;
    ++roots;
    part.reset();
    sieve.reset();
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (arguments.every_edge)
      part.search(
          *root, messages, [](std::uint32_t) { return true; }, found);
    else
      part.search(
          *root, messages, [&sieve](std::uint32_t vertex) { return sieve.insert(vertex); }, found);
    seconds += slowest(MPI_Wtime() - begin);
    found.errors += part.check(*root);
    part.for_each_reached([&](std::uint32_t vertex, std::uint32_t level, std::size_t degree) {
      ++found.visited;
      found.degrees += degree;
      found.checksum += graph::digest(vertex, level);
    });
  }
  const std::uint64_t edges = total(found.edges);
  const std::uint64_t errors = total(found.errors) + (edges != total(found.degrees));  // each reached edge, once
  bench::Json record = make_peer_record(arguments, sizeof(Visit), total(found.messages), seconds, errors);
  record["scale"] = graph.scale;
  record["edge_factor"] = graph.edge_factor;
  record["roots"] = roots;
  record["every_edge"] = arguments.every_edge;
  record["edges"] = edges;  // that were looked at, in both directions
  record["visited"] = total(found.visited);
  record["levels"] = found.levels;
  record["checksum"] = fmt::format("{:016x}", total(found.checksum));
  record["teps"] = seconds > 0 ? double(edges) / 2 / seconds : 0;
  record["errors"] = errors;
  return record;
}

}  // namespace headway::peers
