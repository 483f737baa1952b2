// SPDX-License-Identifier: BSD-3-Clause
/// The shallow water equations: fluxes through the faces of cells, and the initial state.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "key.hpp"

namespace headway::amr {

/// Of a cell: the height of the water, and its momentum in x and y per area.
struct State {
  double height = 0, x = 0, y = 0;
  bool operator==(const State&) const = default;
};
inline State operator+(const State& a, const State& b) { return {a.height + b.height, a.x + b.x, a.y + b.y}; }
inline State operator-(const State& a, const State& b) { return {a.height - b.height, a.x - b.x, a.y - b.y}; }
inline State operator*(double a, const State& b) { return {a * b.height, a * b.x, a * b.y}; }

inline constexpr double gravity = 9.81;

inline double wave_speed(double height) { return std::sqrt(gravity * height); }

/// The flux in x between two neighbours, `a` to the west (Rusanov, 1961). Both cells compute the same bits.
inline State flux_x(const State& a, const State& b) {
  const double ua = a.x / a.height, ub = b.x / b.height;
  const double speed = std::max(std::abs(ua) + wave_speed(a.height), std::abs(ub) + wave_speed(b.height));
  const State fa{a.x, a.x * ua + gravity / 2 * a.height * a.height, a.y * ua};
  const State fb{b.x, b.x * ub + gravity / 2 * b.height * b.height, b.y * ub};
  return 0.5 * (fa + fb) - 0.5 * speed * (b - a);
}
inline State mirrored(const State& a) { return {a.height, a.y, a.x}; }
/// The flux in y, `a` to the south.
inline State flux_y(const State& a, const State& b) { return mirrored(flux_x(mirrored(a), mirrored(b))); }

/// For each half of each face of a cell, the neighbour's index in the array of states. Both halves have the same one
/// if the neighbour is not smaller.
using Neighbours = std::array<std::uint32_t, 2 * faces>;
inline constexpr std::uint32_t wall = std::numeric_limits<std::uint32_t>::max();

inline State flux(const State& cell, std::span<const State> states, Face face, std::uint32_t neighbour) {
  State other = cell;
  if (neighbour != wall) {
    other = states[neighbour];
  } else if (face == west || face == east) {
    other.x = -cell.x;
  } else {
    other.y = -cell.y;
  }
  switch (face) {
    case west: return flux_x(other, cell);
    case east: return flux_x(cell, other);
    case south: return flux_y(other, cell);
    default: return flux_y(cell, other);
  }
}

/// The mean flux through a face.
inline State flux(const State& cell, std::span<const State> states, Face face, const Neighbours& neighbours) {
  const std::size_t at = std::size_t(2) * face;
  const std::uint32_t first = neighbours[at], second = neighbours[at + 1];
  const State through = flux(cell, states, face, first);
  return first == second ? through : 0.5 * (through + flux(cell, states, face, second));
}

/// A cell after a time step. Sums are made in the order of faces, so all bits are the same on any PE.
inline State advanced(const State& cell, std::span<const State> states, const Neighbours& neighbours,
                      double time_over_length) {
  const State in_x = flux(cell, states, east, neighbours) - flux(cell, states, west, neighbours);
  const State in_y = flux(cell, states, north, neighbours) - flux(cell, states, south, neighbours);
  return cell - time_over_length * (in_x + in_y);
}

/// The longest stable time step of a cell. A quarter of the time in which a wave crosses it: neighbours may have half
/// its size.
inline double stable_time(const State& cell, double length) {
  const double speed = std::max(std::abs(cell.x), std::abs(cell.y)) / cell.height + wave_speed(cell.height);
  return 0.25 * length / speed;
}

/// A column of water that breaks at time 0, beside the centre.
inline State initial_state(const Square& cell) {
  const double half = cell.length() / 2;
  const double x = double(cell.x()) / extent + half - 0.4, y = double(cell.y()) / extent + half - 0.3;
  return {x * x + y * y < 0.04 ? 2.0 : 1.0, 0, 0};
}

/// Volumes of water as whole numbers: sums have the same bits in any order. Height 1 in the domain is 2^52 units of
/// `high` * 2^28 + `low`. Heights are below 128.
struct Volume {
  std::uint64_t high = 0, low = 0;

  void add(double height, std::uint64_t level) {
    const std::uint64_t cells = std::uint64_t(1) << 2 * (level_max - level);  // of the smallest size
    const double scaled = height * 0x1p24, whole = std::floor(scaled);
    high += std::uint64_t(whole) * cells;
    low += std::uint64_t((scaled - whole) * 0x1p28) * cells;
  }
  double value() const { return (double(high) + double(low) * 0x1p-28) * 0x1p-24 / double(1ull << 2 * level_max); }
};

}  // namespace headway::amr
