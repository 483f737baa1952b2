// SPDX-License-Identifier: BSD-3-Clause
/// A cell of the octree as it lies in global memory, and its force on a body.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "body.hpp"

namespace headway::ebarnes {

/// A body in a leaf.
struct Point {
  Vector at;
  std::uint64_t id;
};

/// What bodies far away need of a cell: mass, its centre, and second moments about that.
struct Moments {
  double mass;
  Vector center;
  std::array<double, 6> second;  // sums of mass * d_i * d_j: xx, yy, zz, xy, xz, yz
  double near2;                  // a body opens the cell at this square of its distance or less
};

/// A cell is a leaf of up to a bucket of bodies until one more comes. Then it is divided, in its place, and what points
/// to it stays valid.
///
///     state    bit 0: locked; bit 1: divided; from bit 8 on: points of a leaf
///     child    of a leaf: all 0
///     part     of a divided cell: moments of the children that it has, written by their owners
///
/// References to cells are words; 0 is none.
struct Cell {
  static constexpr std::uint64_t locked = 1, divided = 2;
  static constexpr unsigned count_shift = 8;
  static constexpr std::size_t points_max = 16;

  std::uint64_t state, parent, key, level;
  std::array<std::uint64_t, 8> child;
  union {
    std::array<Moments, 8> part;
    std::array<Point, points_max> point;
  };

  bool is_divided() const { return (state & divided) != 0; }
  std::size_t points() const { return state >> count_shift; }
};
static_assert(std::is_trivially_copyable_v<Cell> && sizeof(Moments) == 88 && sizeof(Cell) == 800);

/// The moments of a complete cell. PEs insert points in any order. Sorted by their ids, they give the same sums.
inline Moments moments_of(Cell& cell, const Cube& cube, const Options& options) {
  Moments sum{};
  const auto add = [&](double mass, const Vector& center) {
    sum.mass += mass;
    for (unsigned k = 0; k < 3; ++k) sum.center[k] += mass * center[k];
  };
  const auto add_second = [&](double mass, const Vector& center) {
    const Vector d = center - sum.center;
    for (unsigned k = 0; k < 3; ++k) sum.second[k] += mass * d[k] * d[k];
    sum.second[3] += mass * d[0] * d[1];
    sum.second[4] += mass * d[0] * d[2];
    sum.second[5] += mass * d[1] * d[2];
  };
  const auto for_all = [&](const auto& point_or_part) {
    for (std::size_t i = 0; i < cell.points(); ++i) point_or_part(options.mass(), cell.point[i].at);
    for (std::size_t k = 0; k < cell.child.size(); ++k) {
      if (cell.child[k] != 0) point_or_part(cell.part[k].mass, cell.part[k].center);
    }
  };
  std::ranges::sort(std::span(cell.point.data(), cell.points()), {}, &Point::id);
  for_all(add);
  for (double& x : sum.center) x /= sum.mass;
  for_all(add_second);
  for (std::size_t k = 0; k < cell.child.size(); ++k) {
    if (cell.child[k] == 0) continue;
    for (unsigned i = 0; i < 6; ++i) sum.second[i] += cell.part[k].second[i];
  }
  // The distance of the centre of mass from that of the cell is added (Barnes, "A modified tree code: don't laugh; it
  // runs", 1990 and later programs): else a body could take its own cell as far away.
  const Vector off = sum.center - cube.center(cell.key, unsigned(cell.level));
  const double near = cube.side(unsigned(cell.level)) / options.theta + std::sqrt(square(off));
  sum.near2 = near * near;
  return sum;
}

/// The way of one body through the tree. It may wait for a cell and go on later. Cells wait on a stack.
class Walk {
 public:
  void begin(std::size_t body, const Vector& at, std::uint64_t id, std::uint64_t root) {
    body_ = body;
    at_ = at;
    id_ = id;
    acceleration_ = {};
    potential_ = 0;
    interactions_ = 0;
    stack_[0] = root;
    depth_ = 1;
  }
  /// find(word) is the cell, or nullptr, and then the walk goes on later from there. Returns whether it has ended.
  template <class Find>
  bool go_on(const Options& options, Find find) {
    const double mass = options.mass(), soft2 = options.softening * options.softening;
    while (depth_ > 0) {
      const Cell* const cell = find(stack_[depth_ - 1]);
      if (cell == nullptr) return false;
      --depth_;
      if (cell->is_divided()) {
        open(*cell, soft2);
        continue;
      }
      for (std::size_t i = 0; i < cell->points(); ++i) {
        if (cell->point[i].id != id_) add_point(mass, cell->point[i].at - at_, soft2);
      }
    }
    return true;
  }
  /// The cell for which it waits.
  std::uint64_t wanted() const { return stack_[depth_ - 1]; }
  std::size_t body() const { return body_; }
  void give(Body& body) const {
    body.acceleration = acceleration_;
    body.potential = potential_;
    body.cost = interactions_;
  }

 private:
  static constexpr std::size_t depth_max = 7 * Cube::levels + 8;

  void open(const Cell& cell, double soft2) {
    for (std::size_t k = 0; k < cell.child.size(); ++k) {
      if (cell.child[k] == 0) continue;
      const Moments& part = cell.part[k];
      const Vector d = part.center - at_;
      if (square(d) <= part.near2)
        stack_[depth_++] = cell.child[k];
      else
        add_cell(part, d, soft2);
    }
  }
  /// d: from the body to the source.
  void add_point(double mass, const Vector& d, double soft2) {
    const double inverse2 = 1 / (square(d) + soft2), inverse = std::sqrt(inverse2);
    potential_ -= mass * inverse;
    const double pull = mass * inverse * inverse2;
    for (unsigned k = 0; k < 3; ++k) acceleration_[k] += pull * d[k];
    ++interactions_;
  }
  /// The potential -sum m / sqrt(r^2 + soft^2) of the sources, expanded about their centre to second order.
  void add_cell(const Moments& part, const Vector& d, double soft2) {
    const double inverse2 = 1 / (square(d) + soft2), inverse = std::sqrt(inverse2), inverse3 = inverse * inverse2;
    const std::array<double, 6>& s = part.second;
    const Vector sd{s[0] * d[0] + s[3] * d[1] + s[4] * d[2], s[3] * d[0] + s[1] * d[1] + s[5] * d[2],
                    s[4] * d[0] + s[5] * d[1] + s[2] * d[2]};
    const double dsd = sd[0] * d[0] + sd[1] * d[1] + sd[2] * d[2], trace = s[0] + s[1] + s[2];
    const double inverse5 = inverse3 * inverse2;
    potential_ -= part.mass * inverse + 1.5 * dsd * inverse5 - 0.5 * trace * inverse3;
    const double along = part.mass * inverse3 + 7.5 * dsd * inverse5 * inverse2 - 1.5 * trace * inverse5;
    for (unsigned k = 0; k < 3; ++k) acceleration_[k] += along * d[k] - 3 * sd[k] * inverse5;
    ++interactions_;
  }

  std::size_t body_ = 0, depth_ = 0;
  std::uint64_t id_ = 0, interactions_ = 0;
  Vector at_{}, acceleration_{};
  double potential_ = 0;
  std::array<std::uint64_t, depth_max> stack_;
};

/// The largest relative error of forces that a run allows, from 1e-2 at theta = 1 to 1e-4 at theta = 0.3, and along the
/// same power elsewhere.
inline double force_error_max(double theta) { return std::max(1e-2 * std::pow(theta, 3.825), 1e-12); }

/// What `bodies` pull at `at`, without the body `id`: their sum, one by one.
inline Vector direct_pull(const std::vector<Body>& bodies, const Vector& at, std::uint64_t id, const Options& options) {
  Vector sum{};
  for (const Body& body : bodies) {
    if (body.id == id) continue;
    const Vector d = body.at - at;
    const double r2 = square(d) + options.softening * options.softening;
    const double pull = options.mass() / (r2 * std::sqrt(r2));
    for (unsigned k = 0; k < 3; ++k) sum[k] += pull * d[k];
  }
  return sum;
}

}  // namespace headway::ebarnes
