// SPDX-License-Identifier: BSD-3-Clause
/// Bodies of a Plummer model, and the cube around them that an octree divides. Units are those of Henon: the
/// gravitational constant and the mass of all bodies are 1, the energy of the model is -1/4.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <vector>

namespace headway::ebarnes {

using Vector = std::array<double, 3>;

inline Vector operator-(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
inline double square(const Vector& a) { return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]; }

struct Body {
  Vector at{}, velocity{}, acceleration{};
  double potential = 0;  // at its place, of all others
  std::uint64_t key = 0, id = 0;
  std::uint64_t cost = 1;  // interactions of the last step
};

struct Options {
  std::uint64_t bodies = 0;
  double theta = 1, softening = 0.05, time_step = 0.025;
  std::uint32_t steps = 2, bucket = 8;  // bodies in a leaf, at most
  std::uint64_t seed = 1;
  double mass() const { return 1 / double(bodies); }
};

/// Body `id` of the model, before the centre of all is moved to the origin. From its id alone, so that every number of
/// PEs has the same bodies (Aarseth, Henon, Wielen, "A comparison of numerical methods for the study of star cluster
/// dynamics", 1974). The model ends where 99.9 % of its mass lie within.
inline Body plummer(const Options& options, std::uint64_t id) {
  Random random(Random(options.seed * 0x9e3779b97f4a7c15 + id).next());
  const auto direction = [&](double length) {
    for (;;) {
      const Vector v{2 * random.fraction() - 1, 2 * random.fraction() - 1, 2 * random.fraction() - 1};
      const double r2 = square(v);
      if (r2 > 1 || r2 < 1e-6) continue;
      const double factor = length / std::sqrt(r2);
      return Vector{v[0] * factor, v[1] * factor, v[2] * factor};
    }
  };
  const double scale = 3 * 3.14159265358979323846 / 16;  // of the radius, for an energy of -1/4
  const double within = 0.999 * std::max(random.fraction(), 1e-9);
  const double radius = 1 / std::sqrt(std::pow(within, -2.0 / 3) - 1);
  double part = 0, chance = 0;  // of the escape velocity: density of probability part^2 (1 - part^2)^(7/2)
  do {
    part = random.fraction();
    chance = 0.1 * random.fraction();
  } while (chance > part * part * std::pow(1 - part * part, 3.5));
  Body body;
  body.id = id;
  body.at = direction(scale * radius);
  body.velocity = direction(part * std::sqrt(2 / std::sqrt(1 + radius * radius)) / std::sqrt(scale));
  return body;
}

/// Sums of the components of places and velocities as whole numbers, so that their order does not matter. Up to 2^24
/// bodies.
struct Sums {
  static constexpr double unit = 0x1p-34;
  std::array<std::int64_t, 6> sums{};

  void add(const Body& body) {
    for (unsigned k = 0; k < 3; ++k) {
      sums[k] += std::llround(body.at[k] / unit);
      sums[3 + k] += std::llround(body.velocity[k] / unit);
    }
  }
  friend Sums operator+(Sums a, const Sums& b) {
    for (unsigned k = 0; k < 6; ++k) a.sums[k] += b.sums[k];
    return a;
  }
  /// Moves the centre of `bodies` bodies to the origin, at rest.
  void center(Body& body, std::uint64_t bodies) const {
    for (unsigned k = 0; k < 3; ++k) {
      body.at[k] -= double(sums[k]) * unit / double(bodies);
      body.velocity[k] -= double(sums[3 + k]) * unit / double(bodies);
    }
  }
};

/// Kinetic and potential energy, for each unit of a body's mass, as whole numbers. Up to 2^24 bodies.
struct Energy {
  static constexpr double unit = 0x1p-34;
  std::int64_t kinetic = 0, potential = 0;

  void add(const Body& body) {
    kinetic += std::llround(square(body.velocity) / 2 / unit);
    potential += std::llround(body.potential / 2 / unit);
  }
  friend Energy operator+(const Energy& a, const Energy& b) {
    return {a.kinetic + b.kinetic, a.potential + b.potential};
  }
  double total(double mass) const { return double(kinetic + potential) * unit * mass; }
};

/// The cube that the tree divides: its centre is the origin, its side a power of two. A body's key is its place on the
/// Morton curve through cells of the last level.
class Cube {
 public:
  static constexpr unsigned levels = 21;

  /// `reach`: the largest coordinate of a body, without its sign.
  explicit Cube(double reach) : side_(std::exp2(std::ceil(std::log2(std::max(reach, 1e-3))) + 1)) {}

  double side(unsigned level) const { return std::ldexp(side_, -int(level)); }
  std::uint64_t key(const Vector& at) const {
    std::uint64_t key = 0;
    const double cells = double(std::uint64_t(1) << levels) / side_;
    for (unsigned k = 0; k < 3; ++k) {
      const auto place = std::uint64_t((at[k] + side_ / 2) * cells);
      key |= spread(std::min(place, (std::uint64_t(1) << levels) - 1)) << k;
    }
    return key;
  }
  /// Of the cell of `level` in which `key` lies.
  Vector center(std::uint64_t key, unsigned level) const {
    Vector center;
    for (unsigned k = 0; k < 3; ++k) {
      const std::uint64_t place = gather(key >> k) >> (levels - level);
      center[k] = (double(place) + 0.5) * side(level) - side_ / 2;
    }
    return center;
  }
  /// Which of the eight children of its cell of `level` has `key`.
  static unsigned octant(std::uint64_t key, unsigned level) { return unsigned(key >> 3 * (levels - 1 - level)) & 7; }
  /// The first key of the cell of `level` in which `key` lies.
  static std::uint64_t first_key(std::uint64_t key, unsigned level) {
    return key >> 3 * (levels - level) << 3 * (levels - level);
  }

 private:
  static std::uint64_t spread(std::uint64_t x) {  // two zeros before each of 21 bits
    x = (x | x << 32) & 0x001f00000000ffff;
    x = (x | x << 16) & 0x001f0000ff0000ff;
    x = (x | x << 8) & 0x100f00f00f00f00f;
    x = (x | x << 4) & 0x10c30c30c30c30c3;
    return (x | x << 2) & 0x1249249249249249;
  }
  static std::uint64_t gather(std::uint64_t x) {
    x &= 0x1249249249249249;
    x = (x | x >> 2) & 0x10c30c30c30c30c3;
    x = (x | x >> 4) & 0x100f00f00f00f00f;
    x = (x | x >> 8) & 0x001f0000ff0000ff;
    x = (x | x >> 16) & 0x001f00000000ffff;
    return (x | x >> 32) & 0x1fffff;
  }

  double side_;
};

/// Number and identity of bodies, and all their bits: sums over bodies, so that their order does not matter.
struct Census {
  std::uint64_t bodies = 0, ids = 0, checksum = 0;

  void add(const Body& body) {
    ++bodies;
    ids += Random(body.id).next();
    std::uint64_t hash = body.id;
    for (unsigned k = 0; k < 3; ++k) {
      hash = Random(hash ^ std::bit_cast<std::uint64_t>(body.at[k])).next();
      hash = Random(hash ^ std::bit_cast<std::uint64_t>(body.velocity[k])).next();
    }
    checksum += hash;
  }
  friend Census operator+(const Census& a, const Census& b) {
    return {a.bodies + b.bodies, a.ids + b.ids, a.checksum + b.checksum};
  }
  friend bool operator==(const Census&, const Census&) = default;
};

inline void kick(Body& body, double seconds) {
  for (unsigned k = 0; k < 3; ++k) body.velocity[k] += body.acceleration[k] * seconds;
}
inline void drift(Body& body, double seconds) {
  for (unsigned k = 0; k < 3; ++k) body.at[k] += body.velocity[k] * seconds;
}
inline double reach_of(const std::vector<Body>& bodies) {
  double reach = 0;
  for (const Body& body : bodies) {
    for (const double x : body.at) reach = std::max(reach, std::abs(x));
  }
  return reach;
}

}  // namespace headway::ebarnes
