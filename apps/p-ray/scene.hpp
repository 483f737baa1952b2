// SPDX-License-Identifier: BSD-3-Clause
/// Scenes, computed alike on every PE: a sphere with smaller spheres on it, on a square; and objects at random places.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <string>
#include <utility>
#include <vector>

#include "object.hpp"

namespace headway::p_ray {

/// What all PEs hold of a scene beside its objects.
struct Setting {
  std::array<Vector, 3> lights = {Vector{4, 3, 2}, {1, -4, 4}, {-3, 1, 5}};
  double light = 0.55;    // of each
  double ambient = 0.08;  // light without a source
  Colour background{0.08, 0.36, 0.75};
  unsigned bounces = 2;  // reflected rays of a pixel at most
};

/// A camera without a lens: a ray through the middle of each pixel.
class Camera {
 public:
  Camera(std::size_t width, std::size_t height, Vector eye, Vector at, double slope)
      : eye_(eye), ahead_(unit(at - eye)), width_(width), height_(height) {
    right_ = unit(cross(ahead_, {0, 0, 1}));
    up_ = cross(right_, ahead_);
    step_ = 2 * slope / double(std::min(width, height));
  }

  std::size_t width() const { return width_; }
  std::size_t height() const { return height_; }
  std::size_t pixels() const { return width_ * height_; }
  /// Pixels are numbered row by row from the top.
  Ray ray(std::size_t pixel) const {
    const std::size_t row = pixel / width_, column = pixel % width_;
    const double x = (double(column) + 0.5 - double(width_) / 2) * step_;
    const double y = (double(height_) / 2 - double(row) - 0.5) * step_;
    return {eye_, unit(ahead_ + right_ * x + up_ * y)};
  }

 private:
  Vector eye_, ahead_, right_, up_;
  std::size_t width_, height_;
  double step_;  // between neighbouring pixels, at distance 1
};

inline Camera camera_of(std::size_t width, std::size_t height) {
  return {width, height, {2.1, 1.3, 1.7}, {0, 0, 0}, 0.414};
}

using Objects = std::vector<Object>;

/// Two triangles at height z.
inline void add_square(Objects& objects, double half, double z, Colour colour, double reflected) {
  const Vector a{-half, -half, z}, b{half, -half, z}, c{half, half, z}, d{-half, half, z};
  objects.push_back(make_triangle(a, b, c, colour, reflected));
  objects.push_back(make_triangle(a, c, d, colour, reflected));
}

/// A sphere with nine of a third of its radius on it, and so on: 1, 10, 91, 820, 7381 spheres for 0 to 4 levels. The
/// centres of the nine lie as six balls around a ball and three above it (scene "balls" of Haines, "A proposal for
/// standard graphics environments", 1987). `axis` points away from the sphere below.
inline void add_balls(Objects& objects, Vector centre, double radius, Vector axis, unsigned levels) {
  objects.push_back(make_sphere(centre, radius, {1, 0.9, 0.7}, 0.4));
  if (levels == 0) return;
  const Vector x = unit(cross(axis, std::abs(axis.x) < 0.6 ? Vector{1, 0, 0} : Vector{0, 1, 0})), y = cross(axis, x);
  const double h = std::sqrt(0.75), aside = std::sqrt(1.0 / 3), above = std::sqrt(2.0 / 3);
  const std::array<std::pair<double, double>, 6> around = {
      {{1, 0}, {0.5, h}, {-0.5, h}, {-1, 0}, {-0.5, -h}, {0.5, -h}}};
  const std::array<std::pair<double, double>, 3> on_top = {{{h, 0.5}, {-h, 0.5}, {0, -1}}};
  const double small = radius / 3;
  const auto add = [&](Vector direction) {
    add_balls(objects, centre + direction * (radius + small), small, unit(direction), levels - 1);
  };
  for (const auto& [a, b] : around) add(x * a + y * b);
  for (const auto& [a, b] : on_top) add((x * a + y * b) * aside + axis * above);
}

/// `count` objects: spheres and triangles by turns, within a cube that stands on a square of two triangles. 2 or more.
inline Objects random_scene(std::size_t count, std::uint64_t seed) {
  Random random(seed * 0x9e3779b97f4a7c15 + count);
  const auto place = [&](double half) {
    const double x = random.fraction(), y = random.fraction(), z = random.fraction();
    return Vector{x - 0.5, y - 0.5, z - 0.5} * (2 * half);
  };
  Objects objects;
  add_square(objects, 12, -0.8, {0.8, 0.75, 0.5}, 0.2);
  const double size = 0.35 / std::cbrt(double(count));
  while (objects.size() < count) {
    const Vector centre = place(0.7);
    const double radius = size * (0.5 + random.fraction());
    const Colour colour = place(0.35) + Colour{0.6, 0.6, 0.6};
    const double reflected = random.one_in(3) ? 0.5 * random.fraction() : 0;
    if (objects.size() % 2 == 0) {
      objects.push_back(make_sphere(centre, radius, colour, reflected));
    } else {
      const Vector a = place(radius), b = place(radius), c = place(radius);
      objects.push_back(make_triangle(centre + a, centre + b, centre + c, colour, reflected));
    }
  }
  return objects;
}

/// "random", or "balls1" to "balls4". `count` is the number of objects of "random".
inline Objects make_scene(const std::string& name, std::size_t count, std::uint64_t seed) {
  Objects objects;
  if (name == "random") {
    objects = random_scene(count, seed);
  } else {
    add_square(objects, 12, -0.5, {1, 0.75, 0.33}, 0);
    add_balls(objects, {0, 0, 0}, 0.5, {0, 0, 1}, unsigned(name.back() - '0'));
  }
  for (std::size_t i = 0; i < objects.size(); ++i) objects[i].number = std::uint32_t(i);
  return objects;
}

}  // namespace headway::p_ray
