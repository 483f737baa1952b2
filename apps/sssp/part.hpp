// SPDX-License-Identifier: BSD-3-Clause
/// A block of vertices: their edges, and the state of a search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <graph/parts.hpp>
#include <headway/headway.hpp>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "serial.hpp"

namespace headway::sssp {

using graph::nobody;

/// Vertices wait in buckets by their distance, of a width of delta each (Meyer and Sanders, "Delta-stepping", 2003);
/// the last has all that are further. Delta changes only the number of messages: a vertex that gets a shorter distance
/// waits again, and a search ends when all buckets are empty.
class Part : public Element<Part, Index<1>> {
 public:
  static constexpr std::uint32_t no_bucket = std::numeric_limits<std::uint32_t>::max();

  Part() = default;
  Part(const graph::Layout& layout, float delta) : layout_(layout), delta_(delta) {}

  // --- building

  /// An edge, at one of its ends; the other is given by its label.
  void add_edge(std::uint32_t vertex, std::uint32_t other, float weight) { edges_.add(vertex, {other, weight}); }
  /// The lightest edges of each vertex come first.
  void build() {
    edges_.build(layout_.vertices());
    for (std::uint32_t vertex = 0; vertex < layout_.vertices(); ++vertex) {
      std::ranges::sort(edges_.of(vertex), {}, [](const Far& far) { return std::pair(far.weight, far.vertex); });
    }
  }
  bool leads_elsewhere(std::uint32_t vertex) const {
    return std::ranges::any_of(edges_.of(vertex), [&](const Far& far) { return far.vertex != first() + vertex; });
  }

  // --- searching

  void reset() {
    const std::size_t vertices = layout_.vertices();
    distances_.assign(vertices, unreached);
    relaxed_.assign(vertices, unreached);
    parents_.assign(vertices, nobody);
    listed_.assign((vertices + 63) / 64, 0);
    hanging_.assign(vertices, false);
    buckets_.clear();
    heavy_.clear();
    lowest_ = 0;
    taken_ = 0;
  }
  /// There is a path of this length, which comes from `parent`.
  void visit(std::uint32_t vertex, float distance, std::uint32_t parent) {
    if (!(distance < distances_[vertex])) return;
    distances_[vertex] = distance;
    parents_[vertex] = parent;
    const std::uint32_t bucket = bucket_of(distance);
    if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
    buckets_[bucket].push_back(vertex);
    lowest_ = std::min(lowest_, bucket);
  }
  /// The nearest bucket in which a vertex waits.
  std::uint32_t lowest() {
    while (lowest_ < buckets_.size() && buckets_[lowest_].empty()) ++lowest_;
    return lowest_ < buckets_.size() ? lowest_ : no_bucket;
  }
  /// Sends along the light edges of a bucket's vertices: their ends may be in this bucket, too. Returns how many.
  std::uint64_t relax_light(std::uint32_t bucket) {
    if (bucket >= buckets_.size()) return 0;
    std::uint64_t sent = 0;
    std::vector<std::uint32_t> vertices;  // of what runs meanwhile, some may come back into the bucket
    vertices.swap(buckets_[bucket]);
    for (const std::uint32_t vertex : vertices) {
      if (!take(vertex)) continue;
      if (std::uint64_t& listed = listed_[vertex / 64]; (listed >> vertex % 64 & 1) == 0) {
        listed |= std::uint64_t(1) << vertex % 64;
        heavy_.push_back(vertex);
      }
      sent += relax(vertex, std::as_const(edges_).of(vertex).first(light(vertex)));
    }
    return sent;
  }
  /// Call when the bucket is empty: sends along the heavy edges of its former vertices, once.
  std::uint64_t relax_heavy() {
    std::uint64_t sent = 0;
    for (const std::uint32_t vertex : heavy_) {
      listed_[vertex / 64] &= ~(std::uint64_t(1) << vertex % 64);
      sent += relax(vertex, std::as_const(edges_).of(vertex).subspan(light(vertex)));
    }
    heavy_.clear();
    return sent;
  }
  /// Sends along all edges of all waiting vertices, the nearest first.
  std::uint64_t relax_all() {
    std::uint64_t sent = 0;
    std::vector<std::vector<std::uint32_t>> buckets;
    buckets.swap(buckets_);
    for (const std::vector<std::uint32_t>& bucket : buckets) {
      for (const std::uint32_t vertex : bucket) {
        if (take(vertex)) sent += relax(vertex, std::as_const(edges_).of(vertex));
      }
    }
    return sent;
  }
  /// How many vertices have been taken out of buckets, each counted once.
  std::uint64_t taken() const { return taken_; }

  // --- validating: see apps/README.md

  /// At a vertex: from an end of one of its edges, which is so far away, or unreached.
  void check_edge(std::uint32_t vertex, float distance, float weight) {
    errors_ += !(distances_[vertex] <= distance + weight);
  }
  /// At the parent of a child that is so far away, over the lightest edge of the two.
  void check_parent(std::uint32_t parent, float distance, float weight, std::uint32_t child) {
    errors_ += distances_[parent] + weight != distance;
    if (distances_[parent] == distance) level_.emplace_back(parent, child);
  }
  void check(std::uint32_t root) {
    Collection<Part>& parts = all();
    for (std::uint32_t vertex = 0; vertex < layout_.vertices(); ++vertex) {
      const float distance = distances_[vertex];
      const std::uint32_t parent = parents_[vertex];
      const std::span<const Far> edges = std::as_const(edges_).of(vertex);
      errors_ += (distance == unreached) != (parent == nobody);
      if (first() + vertex == root) {
        errors_ += distance != 0 || parent != root;
      } else if (parent != nobody) {
        const auto found = std::ranges::find(edges, parent, &Far::vertex);
        errors_ += found == edges.end();
        if (found != edges.end()) {
          parts[layout_.part(parent)].send<&Part::check_parent>(layout_.within(parent), distance, found->weight,
                                                                first() + vertex);
        }
      }
      for (const Far& far : edges) {
        parts[layout_.part(far.vertex)].send<&Part::check_edge>(layout_.within(far.vertex), distance, far.weight);
      }
    }
  }
  // Children as far away as their parents may form a cycle. First lift() marks all of them as hanging; then
  // ground_children(), again and again, unmarks the children of parents that do not hang. Children that hang in the end
  // are in a cycle, or descend from one.
  void lift() {
    for (const auto& [parent, child] : level_) all()[layout_.part(child)].send<&Part::hang>(layout_.within(child));
  }
  void hang(std::uint32_t child) { hanging_[child] = true; }
  void ground(std::uint32_t child) { hanging_[child] = false; }
  /// Returns how many children this grounds.
  std::uint64_t ground_children() {
    const std::size_t before = level_.size();
    std::erase_if(level_, [&](const std::pair<std::uint32_t, std::uint32_t>& pair) {
      const auto [parent, child] = pair;
      if (hanging_[parent]) return false;
      all()[layout_.part(child)].send<&Part::ground>(layout_.within(child));
      return true;
    });
    return before - level_.size();
  }
  std::uint64_t level_children() const { return level_.size(); }
  void end_check() {
    errors_ += level_.size();
    level_.clear();
  }

  // --- spoiling: each changes a vertex, if it finds one

  /// Its own parent, which it cannot be.
  bool spoil_parent() {
    return spoil_one([&](std::uint32_t vertex) {
      parents_[vertex] = first() + vertex;
      return true;
    });
  }
  /// A little too far.
  bool spoil_distance() {
    return spoil_one([&](std::uint32_t vertex) {
      distances_[vertex] = std::nextafter(distances_[vertex], unreached);
      return true;
    });
  }
  /// The parent of its parent, where both are as far: nothing but the cycle is wrong.
  bool spoil_cycle(std::uint32_t root) {
    return spoil_one([&](std::uint32_t vertex) {
      const std::uint32_t parent = parents_[vertex], mine = layout_.within(parent);
      if (parent == root || first() + mine != parent || distances_[mine] != distances_[vertex]) return false;
      if (parents_[mine] == first() + vertex) return false;
      parents_[mine] = first() + vertex;
      return true;
    });
  }

  std::uint32_t first() const { return layout_.first(index()[0]); }
  std::uint64_t errors() const { return errors_; }
  template <class F>
  void for_each_reached(F f) const {
    for (std::uint32_t vertex = 0; vertex < distances_.size(); ++vertex) {
      if (distances_[vertex] != unreached) f(first() + vertex, distances_[vertex], edges_.degree(vertex));
    }
  }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(layout_, delta_, edges_, distances_, relaxed_, parents_, listed_, buckets_, heavy_, lowest_, taken_,
            errors_, hanging_);
  }

  static constexpr auto aggregation = entries(entry<&Part::add_edge>{}, entry<&Part::visit>{},
                                              entry<&Part::check_edge>{}, entry<&Part::check_parent>{});

 private:
  static constexpr std::uint32_t last_bucket = (1 << 20) - 1;

  std::uint32_t bucket_of(float distance) const {
    return std::uint32_t(std::min(distance / delta_, float(last_bucket)));
  }
  /// Whether it waits with the distance that it has: it may have come nearer, or been taken, since it was put there.
  bool take(std::uint32_t vertex) {
    const float distance = distances_[vertex];
    if (relaxed_[vertex] == distance) return false;
    taken_ += relaxed_[vertex] == unreached;
    relaxed_[vertex] = distance;
    return true;
  }
  /// How many of its edges are lighter than a bucket is wide.
  std::size_t light(std::uint32_t vertex) const {
    const std::span<const Far> edges = edges_.of(vertex);
    return std::size_t(std::ranges::partition_point(edges, [&](const Far& far) { return far.weight < delta_; }) -
                       edges.begin());
  }
  std::uint64_t relax(std::uint32_t vertex, std::span<const Far> edges) {
    Collection<Part>& parts = all();
    const graph::Layout layout = layout_;
    const float distance = distances_[vertex];
    const std::uint32_t parent = first() + vertex;
    for (const Far& far : edges) {
      parts[layout.part(far.vertex)].send<&Part::visit>(layout.within(far.vertex), distance + far.weight, parent);
    }
    return edges.size();
  }
  template <class F>
  bool spoil_one(F f) {
    for (std::uint32_t vertex = 0; vertex < distances_.size(); ++vertex) {
      const bool may = distances_[vertex] != unreached && parents_[vertex] != first() + vertex;  // nor is it the root
      if (may && f(vertex)) return true;
    }
    return false;
  }

  graph::Layout layout_;
  float delta_ = 1;
  graph::Edges<Far> edges_;
  std::vector<float> distances_;
  std::vector<float> relaxed_;  // the distance with which its light edges were sent along last
  std::vector<std::uint32_t> parents_;
  std::vector<std::uint64_t> listed_;  // a bit for each vertex: it is in heavy_
  std::vector<std::vector<std::uint32_t>> buckets_;
  std::vector<std::uint32_t> heavy_;  // vertices that still have to send along their heavy edges
  std::uint32_t lowest_ = 0;          // all buckets below are empty
  std::uint64_t taken_ = 0;
  std::uint64_t errors_ = 0;
  // In a check alone: parents here, and children that are as far away.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> level_;
  std::vector<bool> hanging_;  // all false but in a check
};

}  // namespace headway::sssp
