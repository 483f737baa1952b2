// SPDX-License-Identifier: BSD-3-Clause
/// The same steps on one processor, with a tree that is made from the top by sorting: an oracle for the distributed
/// one, to the bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "body.hpp"
#include "cell.hpp"

namespace headway::ebarnes {

class Serial {
 public:
  explicit Serial(const Options& options) : options_(options) {
    Sums sums;
    for (std::uint64_t id = 0; id < options.bodies; ++id) sums.add(bodies_.emplace_back(plummer(options, id)));
    for (Body& body : bodies_) sums.center(body, options.bodies);
  }

  /// The sums cells_made() and interactions() are of the steps alone, without the forces before the first one.
  void run() {
    pull();
    cells_made_ = interactions_ = 0;
    for (std::uint32_t step = 0; step < options_.steps; ++step) {
      for (Body& body : bodies_) {
        kick(body, options_.time_step / 2);
        drift(body, options_.time_step);
      }
      pull();
      for (Body& body : bodies_) kick(body, options_.time_step / 2);
    }
  }
  /// Gives all bodies the forces at their places.
  void pull() {
    const Cube cube(reach_of(bodies_));
    for (Body& body : bodies_) body.key = cube.key(body.at);
    std::ranges::sort(bodies_, {}, &Body::key);
    cells_.clear();
    build(cube, bodies_, 0);
    cells_made_ += cells_.size();
    (void)moments_of(cells_[0], cube, options_);  // for the order of points
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      walk_.begin(i, bodies_[i].at, bodies_[i].id, 0);
      walk_.go_on(options_, [&](std::uint64_t cell) { return &cells_[cell]; });
      walk_.give(bodies_[i]);
      interactions_ += bodies_[i].cost;
    }
  }

  const std::vector<Body>& bodies() const { return bodies_; }
  std::size_t cells() const { return cells_.size(); }  // of the last tree
  std::uint64_t cells_made() const { return cells_made_; }
  std::uint64_t interactions() const { return interactions_; }

 private:
  /// The cell of `level` with these bodies, and all below it. Returns its number.
  std::size_t build(const Cube& cube, std::span<const Body> bodies, unsigned level) {
    const std::size_t number = cells_.size();
    Cell& cell = cells_.emplace_back(Cell{});
    cell.key = Cube::first_key(bodies[0].key, level);
    cell.level = level;
    if (bodies.size() <= options_.bucket) {
      cell.state = bodies.size() << Cell::count_shift;
      for (std::size_t i = 0; i < bodies.size(); ++i) cell.point[i] = {bodies[i].at, bodies[i].id};
      return number;
    }
    cell.state = Cell::divided;
    for (std::size_t first = 0; first < bodies.size();) {
      const unsigned octant = Cube::octant(bodies[first].key, level);
      std::size_t end = first;
      while (end < bodies.size() && Cube::octant(bodies[end].key, level) == octant) ++end;
      const std::size_t child = build(cube, bodies.subspan(first, end - first), level + 1);
      cells_[number].child[octant] = child;  // cells_ may have moved
      cells_[number].part[octant] = moments_of(cells_[child], cube, options_);
      first = end;
    }
    return number;
  }

  Options options_;
  std::vector<Body> bodies_;
  std::vector<Cell> cells_;
  Walk walk_;
  std::uint64_t cells_made_ = 0, interactions_ = 0;
};

}  // namespace headway::ebarnes
