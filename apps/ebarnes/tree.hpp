// SPDX-License-Identifier: BSD-3-Clause
/// The octree of all PEs in global memory: bodies are put in under locks, then moments are summed upwards.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "access.hpp"

namespace headway::ebarnes {

/// A cell with up to `bucket` bodies below it is a leaf, every other one is divided. So the tree depends on the bodies
/// alone, not on the order in which they come.
class Tree {
 public:
  /// Collective, like all calls.
  Tree(Pe& pe, Access& access, const Options& options) : pe_(pe), access_(access), options_(options), cells_(pe) {
    root_ = broadcast(pe, pe.id() == 0 ? cells_.make(0, 0, 0) : 0, 0);
  }

  /// Makes a new tree of the bodies of all PEs. No PE may still read the old one.
  void build(const Cube& cube, std::span<const Body> bodies) {
    cells_.clear();
    if (pe_.id() == 0) (void)cells_.make(0, 0, 0);
    known_.assign(1, {root_, {}, false});
    barrier(pe_);
    for (const Body& body : bodies) {
      insert(cube, {body.at, body.id}, body.key);
      pe_.progress();  // others may wait for cells of this PE
    }
    access_.counts.cells += cells_.size();
    barrier(pe_);
  }

  /// From the last level up, each PE computes the moments of its cells and writes them into their parents.
  void sum_up(const Cube& cube) {
    std::array<std::vector<std::uint64_t>, Cube::levels + 1> own;  // by level
    for (std::size_t i = 0; i < cells_.size(); ++i) own[access_.own(cells_[i]).level].push_back(cells_[i]);
    unsigned last = Cube::levels;
    while (last > 0 && own[last].empty()) --last;
    last = allreduce(pe_, last, [](unsigned a, unsigned b) { return std::max(a, b); });
    for (unsigned level = last;; --level) {
      for (const std::uint64_t reference : own[level]) {
        Cell& cell = access_.own(reference);
        const Moments moments = moments_of(cell, cube, options_);
        if (level == 0) break;
        const std::size_t octant = Cube::octant(cell.key, level - 1);
        access_.put(place<Moments>(cell.parent, offsetof(Cell, part) + octant * sizeof(Moments)),
                    std::span(&moments, 1));
      }
      access_.sync();
      barrier(pe_);
      if (level == 0) break;
    }
  }

  std::uint64_t root() const { return root_; }

 private:
  /// What this PE knows of a cell. Nothing of it changes any more in this tree.
  struct Known {
    std::uint64_t cell;
    std::array<std::uint32_t, 8> child;  // 0: not known
    bool divided;
  };

  static GlobalPtr<std::uint64_t> state_of(std::uint64_t cell) {
    return place<std::uint64_t>(cell, offsetof(Cell, state));
  }
  static GlobalPtr<std::uint64_t> child_of(std::uint64_t cell, std::size_t octant) {
    return place<std::uint64_t>(cell, offsetof(Cell, child) + octant * sizeof(std::uint64_t));
  }
  static GlobalPtr<Point> point_of(std::uint64_t cell, std::size_t i) {
    return place<Point>(cell, offsetof(Cell, point) + i * sizeof(Point));
  }

  void insert(const Cube& cube, const Point& point, std::uint64_t key) {
    std::size_t at = 0;
    for (unsigned level = 0;;) {
      const std::uint64_t cell = known_[at].cell;
      if (!known_[at].divided) {
        const std::uint64_t state = access_.read(state_of(cell));
        if ((state & Cell::divided) != 0)
          known_[at].divided = true;
        else if (put_into_leaf(cube, cell, level, state, point))
          return;
        continue;
      }
      const unsigned octant = Cube::octant(key, level);
      if (known_[at].child[octant] == 0) {
        std::uint64_t child = access_.read(child_of(cell, octant));
        const bool linked = child == 0 && link(cell, octant, level, point, key, child);
        known_[at].child[octant] = std::uint32_t(known_.size());
        known_.push_back({child, {}, false});
        if (linked) return;
      }
      at = known_[at].child[octant];
      ++level;
    }
  }

  /// Makes a leaf with the point the child of a divided cell. Returns whether no other PE was faster; else `child` is
  /// what that PE has made.
  bool link(std::uint64_t cell, unsigned octant, unsigned level, const Point& point, std::uint64_t key,
            std::uint64_t& child) {
    const std::uint64_t made = make(cell, key, level + 1, point);
    child = access_.compare_exchange(child_of(cell, octant), 0, made);
    if (child == 0) {
      child = made;
      ++access_.counts.links;
      return true;
    }
    cells_.drop_last();
    ++access_.counts.link_retries;
    return false;
  }

  /// Locks a leaf and adds the point, or divides the leaf if it is full. Returns whether the point is in. A PE holds
  /// one lock at most, and waits meanwhile for accesses alone, which handlers of other PEs answer.
  bool put_into_leaf(const Cube& cube, std::uint64_t cell, unsigned level, std::uint64_t state, const Point& point) {
    if ((state & Cell::locked) != 0 || access_.compare_exchange(state_of(cell), state, state | Cell::locked) != state) {
      ++access_.counts.lock_retries;
      pe_.progress();  // the holder may wait for an answer of this PE
      std::this_thread::yield();
      return false;
    }
    ++access_.counts.locks;
    const std::size_t points = state >> Cell::count_shift;
    if (points < options_.bucket) {
      access_.put(point_of(cell, points), std::span(&point, 1));
      access_.sync();
      access_.release(state_of(cell), (points + 1) << Cell::count_shift);
      return true;
    }
    divide(cube, cell, level, points);
    access_.release(state_of(cell), Cell::divided);
    ++access_.counts.divisions;
    return false;
  }

  /// Of a locked leaf: its points get leaves of their own.
  void divide(const Cube& cube, std::uint64_t cell, unsigned level, std::size_t points) {
    if (level == Cube::levels) {
      throw UsageError("more than " + std::to_string(points) + " bodies in a cube of " +
                       std::to_string(cube.side(level)) + ", allowed are " + std::to_string(points) + " (--bucket)");
    }
    std::array<Point, Cell::points_max> old;
    access_.get(point_of(cell, 0), std::span(old.data(), points));
    access_.sync();
    std::array<std::uint64_t, 8> child{};
    for (const Point& point : std::span(old.data(), points)) {
      const std::uint64_t key = cube.key(point.at);
      std::uint64_t& leaf = child[Cube::octant(key, level)];
      if (leaf == 0)
        leaf = make(cell, key, level + 1, point);
      else
        add(access_.own(leaf), point);
    }
    access_.put(child_of(cell, 0), std::span<const std::uint64_t>(child));
    access_.sync();
  }

  /// An own leaf with one point. No other PE knows it yet.
  std::uint64_t make(std::uint64_t parent, std::uint64_t key, unsigned level, const Point& point) {
    const std::uint64_t made = cells_.make(parent, key, level);
    add(access_.own(made), point);
    return made;
  }
  static void add(Cell& leaf, const Point& point) {
    leaf.point[leaf.points()] = point;
    leaf.state += std::uint64_t(1) << Cell::count_shift;
  }

  Pe& pe_;
  Access& access_;
  Options options_;
  Cells cells_;
  std::uint64_t root_;
  std::vector<Known> known_;  // by number; 0 is the root
};

}  // namespace headway::ebarnes
