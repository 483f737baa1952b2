/// The box of a simulation: cells, which of them lie so near that their particles may act on one another, and where
/// particles are at first. Knows nothing of messages, so that others can do the same work, and check it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <optional>
#include <vector>

namespace headway::leanmd {

/// Of a particle: lengths are in sigma, times in sigma sqrt(mass / epsilon), the units of Lennard-Jones.
struct Vector {
  double x, y, z;
};
struct Particle {
  std::uint64_t id;
  Vector position, velocity;
};

inline constexpr double time_step = 0.005;
/// Nobody is faster for long: between two exchanges a particle gets at most so far out of its cell.
inline constexpr double speed_max = 8;
/// Between neighbours on the lattice where particles start: almost where they neither attract nor repel one another.
inline constexpr double spacing = 1.12;
inline constexpr double cutoff_min = 2.5;

/// A cell in the box: its coordinates, or a difference of two, modulo the extents.
using Coordinates = std::array<std::int32_t, 3>;

/// A meeting of a cell with another, or with itself. It is named by the first cell and the way to the second.
struct Meeting {
  std::uint32_t first, way;
  std::uint32_t side;  // 0: this cell is the first, 1: the second
};

/// A periodic box of cells. Each is so long that particles which act on one another are at most `away` cells apart, in
/// each dimension, also if both have gone `margin / 2` out of theirs. There are at least 2 * away cells in each
/// dimension: a particle then acts on one image of another.
struct Box {
  Coordinates cells = {3, 3, 3};
  std::int32_t away = 1;
  std::uint32_t particles = 27;  // in a cell at first
  std::uint32_t elsewhere = 27;  // in a cell that is not in the corner: less than half the box in each dimension
  double side = 0, cutoff = 0, margin = 0;

  /// Sets the lengths. Between two exchanges of particles there are `exchange_every` steps.
  void fit(std::uint32_t exchange_every) {
    margin = 2 * exchange_every * time_step * speed_max;
    side = std::max(double(lattice()) * spacing, (cutoff_min + margin) / away);
    cutoff = side * away - margin;
  }

  std::uint32_t size() const { return std::uint32_t(cells[0] * cells[1] * cells[2]); }
  double length(unsigned dimension) const { return cells[dimension] * side; }
  std::uint32_t number(const Coordinates& at) const {
    return std::uint32_t((at[0] * cells[1] + at[1]) * cells[2] + at[2]);
  }
  Coordinates coordinates(std::uint32_t number) const {
    const auto n = std::int32_t(number);
    return {n / (cells[1] * cells[2]), n / cells[2] % cells[1], n % cells[2]};
  }
  Coordinates sum(Coordinates a, const Coordinates& b) const {
    for (unsigned d = 0; d < 3; ++d) a[d] = (a[d] + b[d]) % cells[d];
    return a;
  }
  Coordinates negative(Coordinates a) const {
    for (unsigned d = 0; d < 3; ++d) a[d] = (cells[d] - a[d]) % cells[d];
    return a;
  }

  /// All differences of cells at most `reach` apart in each dimension, once each, in order.
  std::vector<Coordinates> differences(std::int32_t reach) const {
    std::array<std::vector<std::int32_t>, 3> of;
    for (unsigned d = 0; d < 3; ++d) {
      for (std::int32_t i = 0; i < cells[d]; ++i) {
        if (i <= reach || cells[d] - i <= reach) of[d].push_back(i);
      }
    }
    std::vector<Coordinates> all;
    for (const std::int32_t x : of[0]) {
      for (const std::int32_t y : of[1]) {
        for (const std::int32_t z : of[2]) all.push_back({x, y, z});
      }
    }
    return all;
  }
  /// From the first cell of a meeting to the second: of a difference and its negative one. Way 0 leads to itself.
  std::vector<Coordinates> ways() const {
    std::vector<Coordinates> half;
    for (const Coordinates& difference : differences(away)) {
      if (difference <= negative(difference)) half.push_back(difference);
    }
    return half;
  }
  /// In the order in which forces are summed.
  std::vector<Meeting> meetings(std::uint32_t cell) const {
    const Coordinates here = coordinates(cell);
    const std::vector<Coordinates> half = ways();
    std::vector<Meeting> all;
    for (std::uint32_t way = 0; way < half.size(); ++way) {
      const Coordinates& there = half[way];
      const std::uint32_t after = number(sum(here, there)), before = number(sum(here, negative(there)));
      if (after == before) {  // half around the box, or here: they meet once, and the lower one is the first
        all.push_back({std::min(cell, after), way, cell <= after ? 0u : 1u});
      } else {
        all.push_back({cell, way, 0});
        all.push_back({before, way, 1});
      }
    }
    return all;
  }
  /// The cells to which a particle may go, ascending; not the cell itself.
  std::vector<std::uint32_t> neighbours(std::uint32_t cell) const {
    std::vector<std::uint32_t> all;
    for (const Coordinates& difference : differences(1)) all.push_back(number(sum(coordinates(cell), difference)));
    std::erase(all, cell);
    std::ranges::sort(all);
    return all;
  }

  bool in_corner(std::uint32_t cell) const {
    const Coordinates at = coordinates(cell);
    return 2 * at[0] < cells[0] && 2 * at[1] < cells[1] && 2 * at[2] < cells[2];
  }
  std::uint32_t particles_of(std::uint32_t cell) const { return in_corner(cell) ? particles : elsewhere; }
  /// Particles of a row of the lattice in a cell.
  std::uint32_t lattice() const {
    std::uint32_t row = 1;
    while (row * row * row < std::max(particles, elsewhere)) ++row;
    return row;
  }
  /// On a lattice, a row of which is just within the cell, so that some soon leave. Every second is as fast as the one
  /// before, in the opposite direction: momenta add up to zero.
  std::vector<Particle> start(std::uint32_t cell) const {
    const Coordinates at = coordinates(cell);
    const std::uint32_t row = lattice(), count = particles_of(cell);
    const double gap = side / row;
    const auto place = [&](unsigned dimension, std::uint32_t i) { return at[dimension] * side + (i + 0.05) * gap; };
    std::vector<Particle> all;
    for (std::uint32_t i = 0; i < count; ++i) {
      Random random(std::uint64_t(cell) << 32 | i);
      const auto component = [&] { return 3 * random.fraction() - 1.5; };
      Particle particle{std::uint64_t(cell) << 32 | i,
                        {place(0, i / (row * row)), place(1, i / row % row), place(2, i % row)},
                        {component(), component(), component()}};
      if (i % 2 == 1) {
        const Vector& other = all.back().velocity;
        particle.velocity = {-other.x, -other.y, -other.z};
      } else if (i + 1 == count) {
        particle.velocity = {0, 0, 0};
      }
      all.push_back(particle);
    }
    return all;
  }
};

/// As near to a cube as can be, of at least `cells` cells: the fewest that can be split so, with at least `least` in
/// each dimension; the longest comes first.
inline Coordinates shape_of(std::uint64_t cells, std::int32_t least) {
  for (std::int64_t count = std::max(std::int64_t(cells), std::int64_t(least) * least * least);; ++count) {
    std::optional<Coordinates> best;
    for (std::int64_t z = least; z * z * z <= count; ++z) {
      if (count % z != 0) continue;
      for (std::int64_t y = z; y * y <= count / z; ++y) {
        if (count / z % y == 0) best = {std::int32_t(count / z / y), std::int32_t(y), std::int32_t(z)};
      }
    }
    if (best) return *best;
  }
}

}  // namespace headway::leanmd
