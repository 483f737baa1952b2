// SPDX-License-Identifier: BSD-3-Clause
/// A tree of boxes over the objects of a scene. Every PE has the whole tree; its leaves name objects, which other PEs
/// may have.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "object.hpp"

namespace headway::p_ray {

/// The first child of an inner node follows it.
struct Node {
  std::array<float, 3> low, high;
  std::uint32_t at = 0;     // a leaf's first object, or an inner node's second child
  std::uint32_t count = 0;  // objects of a leaf; 0: an inner node
};
static_assert(sizeof(Node) == 32);

/// Halves by the median of centres along the longest side, so its depth is at most log2 of the number of objects.
class Tree {
 public:
  static constexpr std::size_t leaf_objects = 4;
  static constexpr std::size_t objects_max = std::size_t(1) << 24, depth_max = 25;

  /// Brings the objects into the order in which leaves name them. At most objects_max.
  explicit Tree(std::vector<Object>& objects) {
    std::vector<Item> items;
    Box all;
    for (std::uint32_t i = 0; i < objects.size(); ++i) {
      const Box box = box_of(objects[i]);
      items.push_back({box, (box.low + box.high) * 0.5, i});
      all.add(box);
    }
    // Hits are computed with errors far below this margin, so no ray that hits an object misses its boxes.
    margin_ = 1e-6 * std::max(1.0, length(all.high - all.low));
    if (!items.empty()) add(items, 0);
    std::vector<Object> ordered;
    for (const Item& item : items) ordered.push_back(objects[item.object]);
    objects = std::move(ordered);
  }

  std::span<const Node> nodes() const { return nodes_; }

 private:
  struct Item {
    Box box;
    Vector centre;
    std::uint32_t object;
  };

  void add(std::span<Item> items, std::uint32_t first) {
    Box box, centres;
    for (const Item& item : items) box.add(item.box), centres.add(item.centre);
    const std::size_t node = nodes_.size();
    nodes_.push_back(node_around(box));
    if (items.size() <= leaf_objects) {
      nodes_[node].at = first;
      nodes_[node].count = std::uint32_t(items.size());
      return;
    }
    const Vector sides = centres.high - centres.low;
    double Vector::*axis = sides.x >= sides.y ? &Vector::x : &Vector::y;
    if (sides.z > sides.*axis) axis = &Vector::z;
    std::ranges::sort(items, [&](const Item& a, const Item& b) {
      return a.centre.*axis != b.centre.*axis ? a.centre.*axis < b.centre.*axis : a.object < b.object;
    });
    const std::size_t half = (items.size() + 1) / 2;
    add(items.first(half), first);
    nodes_[node].at = std::uint32_t(nodes_.size());
    add(items.subspan(half), first + std::uint32_t(half));
  }

  Node node_around(const Box& box) const {
    const auto below = [&](double value) { return std::nextafter(float(value - margin_), -INFINITY); };
    const auto above = [&](double value) { return std::nextafter(float(value + margin_), INFINITY); };
    return {{below(box.low.x), below(box.low.y), below(box.low.z)},
            {above(box.high.x), above(box.high.y), above(box.high.z)}};
  }

  std::vector<Node> nodes_;
  double margin_ = 0;
};

/// The reciprocals of a ray's direction, for tests of boxes.
class Slabs {
 public:
  Slabs() = default;
  explicit Slabs(const Ray& ray)
      : origin_{ray.origin.x, ray.origin.y, ray.origin.z},
        inverse_{1 / ray.direction.x, 1 / ray.direction.y, 1 / ray.direction.z} {}

  /// Where the ray enters the node's box: 0 or more, at most `limit`; or no_hit.
  double enter(const Node& node, double limit) const {
    double enter = 0, leave = limit;
    for (std::size_t k = 0; k < 3; ++k) {
      const bool down = inverse_[k] < 0;
      const double near = (double(down ? node.high[k] : node.low[k]) - origin_[k]) * inverse_[k];
      const double far = (double(down ? node.low[k] : node.high[k]) - origin_[k]) * inverse_[k];
      if (near > enter) enter = near;  // a ray within the plane of a side gives NaN: no bound
      if (far < leave) leave = far;
    }
    if (!(enter <= leave)) return no_hit;
    return enter;
  }

 private:
  std::array<double, 3> origin_{}, inverse_{};
};

}  // namespace headway::p_ray
