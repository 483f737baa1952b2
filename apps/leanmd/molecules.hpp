// SPDX-License-Identifier: BSD-3-Clause
/// Lennard-Jones molecular dynamics in cells of a periodic box: the computations of a cell and of a pair of cells, and
/// a serial program. Units are the potential's sigma and epsilon, and a particle's mass.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <span>
#include <utility>
#include <vector>

namespace headway::leanmd {

using Vector = std::array<double, 3>;
using Place = std::array<std::int32_t, 3>;

struct Particle {
  std::uint64_t id = 0;
  Vector position{}, velocity{};
};

struct Options {
  Place cells{3, 3, 3};          // each extent at least 2 * away
  std::int32_t away = 1;         // a cell interacts with those up to so many further in each direction
  std::uint32_t particles = 27;  // of a cell at first
  bool corner = false;           // cells outside of one corner have a sixteenth of them, at least one
  std::int32_t steps = 100, migrate_every = 5;
  double time_step = 0.002;
  std::uint64_t seed = 1;
};

inline constexpr double spacing = 1.2;     // of the lattice in which particles begin
inline constexpr double speed_max = 10;    // faster ones may stray, which is an error
inline constexpr double drift_max = 0.01;  // of energy, for each particle

/// What follows from the options.
struct Geometry {
  Place cells;
  double side, cutoff;  // of a cell; of the potential
  Vector box;

  explicit Geometry(const Options& options) : cells(options.cells) {
    std::uint32_t row = 1;
    while (std::uint64_t(row) * row * row < options.particles) ++row;
    side = row * spacing;
    cutoff = options.away * side - 2 * margin(options);
    for (unsigned k = 0; k < 3; ++k) box[k] = cells[k] * side;
  }
  /// How far a particle may move out of its cell before the cells exchange particles.
  static double margin(const Options& options) { return speed_max * options.time_step * options.migrate_every; }

  std::uint32_t size() const { return std::uint32_t(cells[0]) * std::uint32_t(cells[1]) * std::uint32_t(cells[2]); }
  std::uint32_t number(const Place& place) const {
    return std::uint32_t((place[0] * cells[1] + place[1]) * cells[2] + place[2]);
  }
  Place place(std::uint32_t number) const {
    const auto n = std::int32_t(number);
    return {n / (cells[1] * cells[2]), n / cells[2] % cells[1], n % cells[2]};
  }
  /// All cells up to `away` from one, that one too, each once, by number.
  std::vector<std::uint32_t> around(std::uint32_t cell, std::int32_t away) const {
    const Place center = place(cell);
    std::vector<std::uint32_t> found;
    Place d;
    for (d[0] = -away; d[0] <= away; ++d[0]) {
      for (d[1] = -away; d[1] <= away; ++d[1]) {
        for (d[2] = -away; d[2] <= away; ++d[2]) {
          Place other;
          for (unsigned k = 0; k < 3; ++k) other[k] = ((center[k] + d[k]) % cells[k] + cells[k]) % cells[k];
          found.push_back(number(other));
        }
      }
    }
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
  }
};

/// Two cells that interact, or one with itself.
struct Couple {
  std::uint32_t first, second;                    // first <= second
  std::uint32_t first_slot = 0, second_slot = 0;  // among the couples of each, which are added in this order
};

/// All couples, by their cells; `of_cell` lists each cell's couples by slot.
struct Couples {
  std::vector<Couple> all;
  std::vector<std::vector<std::uint32_t>> of_cell;

  Couples(const Geometry& geometry, std::int32_t away) : of_cell(geometry.size()) {
    for (std::uint32_t first = 0; first < geometry.size(); ++first) {
      for (const std::uint32_t second : geometry.around(first, away)) {
        if (second < first) continue;
        const auto number = std::uint32_t(all.size());
        Couple couple{first, second};
        couple.first_slot = std::uint32_t(of_cell[first].size());
        of_cell[first].push_back(number);
        if (second != first) {
          couple.second_slot = std::uint32_t(of_cell[second].size());
          of_cell[second].push_back(number);
        }
        all.push_back(couple);
      }
    }
  }
};

/// A cell's particles at first: on a lattice, in it, with velocities that depend on the seed and the particle alone.
inline std::vector<Particle> particles_of(const Options& options, std::uint32_t cell) {
  const Geometry geometry(options);
  const Place place = geometry.place(cell);
  bool in_corner = true;
  for (unsigned k = 0; k < 3; ++k) in_corner &= 2 * place[k] < options.cells[k];
  std::uint32_t count = options.particles;
  if (options.corner && !in_corner) count = std::max<std::uint32_t>(1, count / 16);
  const auto row = std::uint32_t(std::lround(geometry.side / spacing));
  std::vector<Particle> particles(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    Particle& particle = particles[i];
    particle.id = std::uint64_t(cell) * options.particles + i;
    Random random(Random(options.seed).next() ^ Random(particle.id).next());
    const Place at{std::int32_t(i / (row * row)), std::int32_t(i / row % row), std::int32_t(i % row)};
    for (unsigned k = 0; k < 3; ++k) {
      particle.position[k] = place[k] * geometry.side + (at[k] + 0.5) * spacing;
      particle.velocity[k] = 2 * random.fraction() - 1;
    }
  }
  return particles;
}

/// The shortest way from one position to another by any side of the box; both are at most half a box outside of it.
inline double difference(double from, double to, double box) {
  const double d = to - from;
  return d > box / 2 ? d - box : d < -box / 2 ? d + box : d;
}

/// 4 (r^-12 - r^-6), less what makes it and its derivative 0 at the cutoff, so that energy is conserved there.
class Potential {
 public:
  explicit Potential(double cutoff) : cutoff_(cutoff) {
    const double r6 = 1 / (cutoff * cutoff * cutoff * cutoff * cutoff * cutoff);
    at_cutoff_ = 4 * r6 * (r6 - 1);
    force_at_cutoff_ = 24 * r6 * (2 * r6 - 1) / cutoff;
  }
  double cutoff() const { return cutoff_; }
  /// At a distance below the cutoff, of which the square is given: the energy, and the force over the distance (away
  /// from the other).
  std::pair<double, double> at(double square) const {
    const double r = std::sqrt(square), r2 = 1 / square, r6 = r2 * r2 * r2;
    return {4 * r6 * (r6 - 1) - at_cutoff_ + (r - cutoff_) * force_at_cutoff_,
            24 * r6 * (2 * r6 - 1) * r2 - force_at_cutoff_ / r};
  }

 private:
  double cutoff_, at_cutoff_, force_at_cutoff_;
};

/// Adds the forces between the particles of two cells to both; of the `same` cell, the forces among the particles of
/// the first. Returns the energy. Not inlined, so that all callers round alike.
[[gnu::noinline]] inline double interact(const Potential& potential, const Vector& box, bool same,
                                         std::span<const Vector> first, std::span<const Vector> second,
                                         std::span<Vector> first_forces, std::span<Vector> second_forces) {
  const double square_max = potential.cutoff() * potential.cutoff();
  double energy = 0;
  if (same) second = first, second_forces = first_forces;
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t j = same ? i + 1 : 0; j < second.size(); ++j) {
      Vector d;
      for (unsigned k = 0; k < 3; ++k) d[k] = difference(second[j][k], first[i][k], box[k]);
      const double square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
      if (square >= square_max) continue;
      const auto [value, force] = potential.at(square);
      energy += value;
      for (unsigned k = 0; k < 3; ++k) {
        first_forces[i][k] += d[k] * force;
        second_forces[j][k] -= d[k] * force;
      }
    }
  }
  return energy;
}

/// Of a cell; how positions and forces travel is the caller's.
class CellState {
 public:
  CellState() = default;
  CellState(const Options& options, std::uint32_t cell) : particles_(particles_of(options, cell)) {}

  std::span<const Particle> particles() const { return particles_; }
  void positions(std::vector<Vector>& positions) const {
    positions.clear();
    for (const Particle& particle : particles_) positions.push_back(particle.position);
  }

  /// One step of leap-frog, by the sum of the forces of all slots, in their order. The kinetic energy is that of the
  /// velocity halfway between before and after.
  [[gnu::noinline]] void integrate(std::span<const std::vector<Vector>> forces, double time_step, std::int32_t step) {
    double kinetic = 0;
    for (std::size_t i = 0; i < particles_.size(); ++i) {
      Vector sum{};
      for (const std::vector<Vector>& slot : forces) {
        for (unsigned k = 0; k < 3; ++k) sum[k] += slot[i][k];
      }
      Particle& particle = particles_[i];
      for (unsigned k = 0; k < 3; ++k) {
        // The first step begins with the velocity at its beginning, not half a step before.
        const double before = step == 0 ? particle.velocity[k] - sum[k] * time_step / 2 : particle.velocity[k];
        const double after = before + sum[k] * time_step;
        const double now = (before + after) / 2;
        kinetic += now * now / 2;
        particle.velocity[k] = after;
        particle.position[k] += after * time_step;
      }
    }
    if (step == 0) kinetic_first_ = kinetic;
    kinetic_ = kinetic;
  }
  double kinetic_first() const { return kinetic_first_; }  // in step 0
  double kinetic() const { return kinetic_; }              // in the last step

  /// Moves the particles that now belong to another cell into `leaving`, at that cell's index in `neighbours`, which is
  /// sorted. Wraps positions into the box. A particle farther than `margin` from its cell is counted as strayed; it
  /// stays if no neighbour is its cell.
  void part(const Geometry& geometry, double margin, std::uint32_t self, std::span<const std::uint32_t> neighbours,
            std::vector<std::vector<Particle>>& leaving) {
    leaving.assign(neighbours.size(), {});
    const Place own = geometry.place(self);
    std::size_t staying = 0;
    for (Particle particle : particles_) {
      Place place;
      bool strays = false;
      for (unsigned k = 0; k < 3; ++k) {
        double& x = particle.position[k];
        strays |= std::abs(difference((own[k] + 0.5) * geometry.side, x, geometry.box[k])) > geometry.side / 2 + margin;
        if (x < 0) x += geometry.box[k];
        if (x >= geometry.box[k]) x -= geometry.box[k];
        place[k] = std::clamp(std::int32_t(x / geometry.side), 0, geometry.cells[k] - 1);
      }
      strayed_ += strays;
      const std::uint32_t to = geometry.number(place);
      const auto found = std::ranges::lower_bound(neighbours, to);
      if (to != self && found != neighbours.end() && *found == to)
        leaving[std::size_t(found - neighbours.begin())].push_back(particle);
      else
        particles_[staying++] = particle;
    }
    particles_.resize(staying);
  }
  void take(std::span<const Particle> arriving) {
    particles_.insert(particles_.end(), arriving.begin(), arriving.end());
  }
  /// When all have been taken.
  void order() { std::ranges::sort(particles_, {}, &Particle::id); }
  std::uint64_t strayed() const { return strayed_; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(particles_, strayed_, kinetic_first_, kinetic_);
  }

 private:
  std::vector<Particle> particles_;  // by id
  std::uint64_t strayed_ = 0;
  double kinetic_first_ = 0, kinetic_ = 0;
};

/// What all cells come to; the checksum is the same for the same particles to the last bit, whatever PE they are on.
struct Outcome {
  std::uint64_t particles = 0, strayed = 0, checksum = 0;
  double energy_first = 0, energy = 0;  // in step 0, and in the last
  Vector momentum{};

  void add(const CellState& cell) {
    particles += cell.particles().size();
    strayed += cell.strayed();
    energy_first += cell.kinetic_first();
    energy += cell.kinetic();
    for (const Particle& particle : cell.particles()) {
      std::uint64_t mixed = Random(particle.id).next();
      for (unsigned k = 0; k < 3; ++k) {
        mixed = Random(mixed ^ std::bit_cast<std::uint64_t>(particle.position[k])).next();
        mixed = Random(mixed ^ std::bit_cast<std::uint64_t>(particle.velocity[k])).next();
        momentum[k] += particle.velocity[k];
      }
      checksum += mixed;
    }
  }
  friend Outcome operator+(Outcome a, const Outcome& b) {
    a.particles += b.particles, a.strayed += b.strayed, a.checksum += b.checksum;
    a.energy_first += b.energy_first, a.energy += b.energy;
    for (unsigned k = 0; k < 3; ++k) a.momentum[k] += b.momentum[k];
    return a;
  }
  /// For each particle.
  double drift() const { return particles == 0 ? 0 : std::abs(energy - energy_first) / double(particles); }
};

/// Whether a step begins with an exchange of particles.
inline bool exchanges_before(const Options& options, std::int32_t step) {
  return step > 0 && step % options.migrate_every == 0;
}

/// All cells on one processor.
inline Outcome simulate(const Options& options) {
  const Geometry geometry(options);
  const Potential potential(geometry.cutoff);
  const Couples couples(geometry, options.away);
  std::vector<CellState> cells;
  std::vector<std::vector<std::uint32_t>> neighbours;
  for (std::uint32_t cell = 0; cell < geometry.size(); ++cell) {
    cells.emplace_back(options, cell);
    neighbours.push_back(geometry.around(cell, 1));
  }
  std::vector<std::vector<Vector>> positions(cells.size());
  std::vector<std::vector<std::vector<Vector>>> forces(cells.size());
  std::vector<Vector> none;
  double energy_first = 0, energy = 0;
  for (std::int32_t step = 0; step < options.steps; ++step) {
    if (exchanges_before(options, step)) {
      std::vector<std::vector<std::vector<Particle>>> leaving(cells.size());
      for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
        cells[cell].part(geometry, Geometry::margin(options), cell, neighbours[cell], leaving[cell]);
      }
      for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
        for (std::size_t n = 0; n < neighbours[cell].size(); ++n) cells[neighbours[cell][n]].take(leaving[cell][n]);
      }
      for (CellState& cell : cells) cell.order();
    }
    for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
      cells[cell].positions(positions[cell]);
      forces[cell].assign(couples.of_cell[cell].size(), std::vector<Vector>(positions[cell].size()));
    }
    energy = 0;
    for (const Couple& couple : couples.all) {
      const auto [a, b] = std::pair(couple.first, couple.second);
      energy += interact(potential, geometry.box, a == b, positions[a], positions[b], forces[a][couple.first_slot],
                         a == b ? none : forces[b][couple.second_slot]);
    }
    for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
      cells[cell].integrate(forces[cell], options.time_step, step);
    }
    if (step == 0) energy_first = energy;
  }
  Outcome outcome;
  for (const CellState& cell : cells) outcome.add(cell);
  outcome.energy_first += energy_first;
  outcome.energy += energy;
  return outcome;
}

}  // namespace headway::leanmd
