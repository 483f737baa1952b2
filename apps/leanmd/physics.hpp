/// What the particles of a cell do: forces between pairs, velocity Verlet, and who leaves; and all of it by one who has
/// all cells. Knows nothing of messages.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <span>
#include <string>
#include <vector>

#include "box.hpp"

namespace headway::leanmd {

/// Lennard-Jones, with a parabola in r added, so that force and energy are 0 at the cutoff (Stoddard and Ford, 1973):
/// energy is conserved though pairs beyond are left out. Needs no root.
///
///     U(r) = 4 (r^-12 - r^-6) + a r^2 + b        force / r = 24 (2 r^-14 - r^-8) - 2 a
struct Law {
  explicit Law(double cutoff) : cutoff2(cutoff * cutoff) {
    const double inverse2 = 1 / cutoff2, inverse6 = inverse2 * inverse2 * inverse2;
    a = 12 * inverse6 * inverse2 * (2 * inverse6 - 1);
    b = -4 * inverse6 * (inverse6 - 1) - a * cutoff2;
  }

  double cutoff2, a = 0, b = 0;
};

/// To the nearest image, of coordinates that are at most one and a half lengths apart.
inline double nearest(double difference, double length) {
  if (difference > length / 2) return difference - length;
  if (difference < -length / 2) return difference + length;
  return difference;
}

/// Adds the forces that particles at `a` and `b` have from one another, in a fixed order, and returns their energy. Of
/// the same positions, with the same forces, each pair once. One function for all, never inlined: it always computes the
/// same.
__attribute__((noinline)) inline double interact(const Box& box, std::span<const Vector> a, std::span<const Vector> b,
                                                 std::span<Vector> forces_a, std::span<Vector> forces_b) {
  const Law law(box.cutoff);
  const double x_length = box.length(0), y_length = box.length(1), z_length = box.length(2);
  const bool same = a.data() == b.data();
  double energy = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Vector at = a[i];
    Vector force = forces_a[i];
    for (std::size_t j = same ? i + 1 : 0; j < b.size(); ++j) {
      const double x = nearest(at.x - b[j].x, x_length);
      const double y = nearest(at.y - b[j].y, y_length);
      const double z = nearest(at.z - b[j].z, z_length);
      const double r2 = x * x + y * y + z * z;
      if (r2 >= law.cutoff2) continue;
      const double inverse2 = 1 / r2, inverse6 = inverse2 * inverse2 * inverse2;
      energy += 4 * inverse6 * (inverse6 - 1) + law.a * r2 + law.b;
      const double f = 24 * inverse2 * inverse6 * (2 * inverse6 - 1) - 2 * law.a;
      force.x += f * x;
      force.y += f * y;
      force.z += f * z;
      forces_b[j].x -= f * x;
      forces_b[j].y -= f * y;
      forces_b[j].z -= f * z;
    }
    forces_a[i] = force;
  }
  return energy;
}

/// Of a cell, or of all.
struct Summary {
  std::uint64_t particles = 0;
  std::uint64_t checksum = 0;  // of all bits of all particles, wherever they are
  Vector momentum = {0, 0, 0};
  double energy_first = 0, energy_last = 0;  // of motion and of place, in the first and the last step

  Summary operator+(const Summary& other) const {
    return {particles + other.particles,
            checksum + other.checksum,
            {momentum.x + other.momentum.x, momentum.y + other.momentum.y, momentum.z + other.momentum.z},
            energy_first + other.energy_first,
            energy_last + other.energy_last};
  }
};

/// What a cell has. Forces of a step are evaluated once for each of steps 0 to `steps`; between two of these particles
/// are kicked, drift, and are kicked again.
class Content {
 public:
  Content() = default;
  Content(const Box& box, std::uint32_t cell, std::size_t meetings)
      : particles_(box.start(cell)), forces_(meetings), energies_(meetings) {}

  std::vector<Vector> positions() const {
    std::vector<Vector> all;
    all.reserve(particles_.size());
    for (const Particle& particle : particles_) all.push_back(particle.position);
    return all;
  }
  /// The forces of a meeting, and this cell's part of its energy.
  void take(std::uint32_t meeting, double energy, std::span<const Vector> forces) {
    forces_[meeting].assign(forces.begin(), forces.end());
    energies_[meeting] = energy;
  }

  /// All meetings have given their forces. They are added in their order, and not as they came, so that the sum is
  /// always the same.
  void advance(std::uint32_t step, std::uint32_t steps) {
    std::vector<Vector> sums(particles_.size(), Vector{0, 0, 0});
    double energy = 0;
    for (std::size_t meeting = 0; meeting < forces_.size(); ++meeting) {
      std::vector<Vector>& forces = forces_[meeting];
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].x += forces[i].x;
        sums[i].y += forces[i].y;
        sums[i].z += forces[i].z;
      }
      forces.clear();
      energy += energies_[meeting];
    }
    if (step > 0) kick(sums, time_step / 2);
    if (step == 0) energy_first_ = energy + energy_of_motion();
    if (step == steps) energy_last_ = energy + energy_of_motion();
    if (step == steps) return;
    kick(sums, time_step / 2);
    for (Particle& particle : particles_) {
      particle.position.x += particle.velocity.x * time_step;
      particle.position.y += particle.velocity.y * time_step;
      particle.position.z += particle.velocity.z * time_step;
    }
  }

  /// Takes out the particles that are in other cells now, for each of these `neighbours`. One that is too far out for
  /// its forces to have been right is a UsageError.
  std::vector<std::vector<Particle>> take_leaving(const Box& box, std::uint32_t cell,
                                                  std::span<const std::uint32_t> neighbours) {
    std::vector<std::vector<Particle>> leaving(neighbours.size());
    const Coordinates here = box.coordinates(cell);
    std::erase_if(particles_, [&](Particle& particle) {
      Coordinates there = here;
      double* const position[3] = {&particle.position.x, &particle.position.y, &particle.position.z};
      for (unsigned d = 0; d < 3; ++d) {
        const double inside = *position[d] - here[d] * box.side;
        if (!(inside >= -box.margin / 2 && inside <= box.side + box.margin / 2)) throw_too_fast(particle.id);
        if (inside < 0) {
          there[d] = (here[d] + box.cells[d] - 1) % box.cells[d];
          if (here[d] == 0) *position[d] += box.length(d);
        } else if (inside >= box.side) {
          there[d] = (here[d] + 1) % box.cells[d];
          if (there[d] == 0) *position[d] -= box.length(d);
        }
      }
      if (there == here) return false;
      const auto place = std::ranges::lower_bound(neighbours, box.number(there)) - neighbours.begin();
      leaving[std::size_t(place)].push_back(particle);
      return true;
    });
    return leaving;
  }
  void join(std::span<const Particle> particles) {
    particles_.insert(particles_.end(), particles.begin(), particles.end());
  }
  /// After all have come. Forces are summed by this order, too.
  void sort() { std::ranges::sort(particles_, {}, &Particle::id); }

  Summary summary() const {
    Summary summary{particles_.size(), 0, {0, 0, 0}, energy_first_, energy_last_};
    for (const auto& [id, position, velocity] : particles_) {
      std::uint64_t hash = id;
      for (const double value : {position.x, position.y, position.z, velocity.x, velocity.y, velocity.z}) {
        hash = Random(hash ^ std::bit_cast<std::uint64_t>(value)).next();
      }
      summary.checksum += hash;
      summary.momentum.x += velocity.x;
      summary.momentum.y += velocity.y;
      summary.momentum.z += velocity.z;
    }
    return summary;
  }
  const std::vector<Particle>& particles() const { return particles_; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(particles_, forces_, energies_, energy_first_, energy_last_);
  }

 private:
  [[noreturn]] static void throw_too_fast(std::uint64_t id) {
    throw UsageError("leanmd: particle " + std::to_string(id) +
                     " went farther out of its cell than the cutoff allows for: it is too fast for this time step");
  }
  void kick(std::span<const Vector> forces, double time) {
    for (std::size_t i = 0; i < particles_.size(); ++i) {
      particles_[i].velocity.x += forces[i].x * time;
      particles_[i].velocity.y += forces[i].y * time;
      particles_[i].velocity.z += forces[i].z * time;
    }
  }
  double energy_of_motion() const {
    double energy = 0;
    for (const auto& [id, position, velocity] : particles_) {
      energy += 0.5 * (velocity.x * velocity.x + velocity.y * velocity.y + velocity.z * velocity.z);
    }
    return energy;
  }

  std::vector<Particle> particles_;
  std::vector<std::vector<Vector>> forces_;  // of this step, by meeting
  std::vector<double> energies_;
  double energy_first_ = 0, energy_last_ = 0;
};

/// Particles are exchanged before the forces of this step.
inline bool exchanges_before(std::uint32_t step, std::uint32_t exchange_every) {
  return step > 0 && step % exchange_every == 0;
}

/// All of it by one, to the last bit what any number of PEs computes.
inline Summary run_alone(const Box& box, std::uint32_t steps, std::uint32_t exchange_every) {
  std::vector<std::vector<Meeting>> meetings;
  std::vector<std::vector<std::uint32_t>> neighbours;
  std::vector<Content> cells;
  for (std::uint32_t cell = 0; cell < box.size(); ++cell) {
    meetings.push_back(box.meetings(cell));
    neighbours.push_back(box.neighbours(cell));
    cells.emplace_back(box, cell, meetings.back().size());
  }
  // Where the second cell of a meeting has it among its own.
  const auto place_of = [&](std::uint32_t cell, const Meeting& meeting, std::uint32_t side) {
    const auto& all = meetings[cell];
    return std::uint32_t(std::ranges::find_if(all, [&](const Meeting& m) {
                           return m.first == meeting.first && m.way == meeting.way && m.side == side;
                         }) -
                         all.begin());
  };
  const std::vector<Coordinates> ways = box.ways();
  std::vector<std::vector<Vector>> positions(cells.size());
  for (std::uint32_t step = 0; step <= steps; ++step) {
    if (exchanges_before(step, exchange_every)) {
      std::vector<std::vector<std::vector<Particle>>> leaving;
      for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
        leaving.push_back(cells[cell].take_leaving(box, cell, neighbours[cell]));
      }
      for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
        for (std::size_t i = 0; i < neighbours[cell].size(); ++i) cells[neighbours[cell][i]].join(leaving[cell][i]);
      }
      for (Content& cell : cells) cell.sort();
    }
    for (std::size_t cell = 0; cell < cells.size(); ++cell) positions[cell] = cells[cell].positions();
    for (std::uint32_t cell = 0; cell < cells.size(); ++cell) {
      for (std::uint32_t own = 0; own < meetings[cell].size(); ++own) {
        const Meeting& meeting = meetings[cell][own];
        if (meeting.side != 0) continue;
        std::vector<Vector> forces(positions[cell].size(), Vector{0, 0, 0});
        if (meeting.way == 0) {
          const double energy = interact(box, positions[cell], positions[cell], forces, forces);
          cells[cell].take(own, energy, forces);
          continue;
        }
        const std::uint32_t second = box.number(box.sum(box.coordinates(cell), ways[meeting.way]));
        std::vector<Vector> back(positions[second].size(), Vector{0, 0, 0});
        const double energy = interact(box, positions[cell], positions[second], forces, back);
        cells[cell].take(own, energy / 2, forces);
        cells[second].take(place_of(second, meeting, 1), energy / 2, back);
      }
    }
    for (Content& cell : cells) cell.advance(step, steps);
  }
  Summary all;
  for (const Content& cell : cells) all = all + cell.summary();
  return all;
}

}  // namespace headway::leanmd
