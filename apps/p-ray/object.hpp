// SPDX-License-Identifier: BSD-3-Clause
/// The objects of a scene: spheres and triangles, each a record of fixed size that travels between PEs.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "vector.hpp"

namespace headway::p_ray {

inline constexpr double no_hit = std::numeric_limits<double>::infinity();

/// Nearer hits do not count: a ray that leaves a surface does not hit this surface again.
inline constexpr double nearest_hit = 1e-6;

enum class Shape : std::uint32_t { sphere, triangle };

struct Object {
  std::array<Vector, 3> points;  // of a triangle: a corner, and its edges to the other two; of a sphere: the centre
  double radius = 0;             // of a triangle: 0
  Colour colour;
  double reflected = 0;      // share of the light that comes from the mirrored direction, 0 to 1
  std::uint32_t number = 0;  // within the scene
  Shape shape = Shape::sphere;
};
static_assert(sizeof(Object) == 120);

inline Object make_sphere(Vector centre, double radius, Colour colour, double reflected) {
  return {{centre, {}, {}}, radius, colour, reflected, 0, Shape::sphere};
}
inline Object make_triangle(Vector a, Vector b, Vector c, Colour colour, double reflected) {
  return {{a, b - a, c - a}, 0, colour, reflected, 0, Shape::triangle};
}

/// The distance at which the ray hits the object first, beyond nearest_hit; or no_hit.
inline double hit_sphere(const Object& sphere, const Ray& ray) {
  const Vector to = sphere.points[0] - ray.origin;
  const double along = dot(to, ray.direction);
  const Vector aside = to - ray.direction * along;  // as long as the ray's distance from the centre
  const double square = sphere.radius * sphere.radius - dot(aside, aside);
  if (!(square >= 0)) return no_hit;
  const double half = std::sqrt(square);
  if (along - half > nearest_hit) return along - half;
  if (along + half > nearest_hit) return along + half;
  return no_hit;
}

/// Solves origin + t direction = corner + u edge + v edge by Cramer's rule (Moeller and Trumbore, 1997).
inline double hit_triangle(const Object& triangle, const Ray& ray) {
  const auto& [corner, edge_u, edge_v] = triangle.points;
  const Vector across = cross(ray.direction, edge_v);
  const double determinant = dot(edge_u, across);
  // Seen from its edge a triangle is not hit: rounding would place the hit far from it.
  if (determinant * determinant < 1e-16 * dot(edge_u, edge_u) * dot(edge_v, edge_v)) return no_hit;
  const double inverse = 1 / determinant;
  const Vector from = ray.origin - corner;
  const double u = dot(from, across) * inverse;
  if (!(u >= 0 && u <= 1)) return no_hit;
  const Vector other = cross(from, edge_u);
  const double v = dot(ray.direction, other) * inverse;
  if (!(v >= 0 && u + v <= 1)) return no_hit;
  const double distance = dot(edge_v, other) * inverse;
  if (!(distance > nearest_hit)) return no_hit;
  return distance;
}

inline double hit(const Object& object, const Ray& ray) {
  return object.shape == Shape::sphere ? hit_sphere(object, ray) : hit_triangle(object, ray);
}

/// Of length 1, towards the side from which `direction` comes.
inline Vector normal(const Object& object, Vector point, Vector direction) {
  const Vector outward = object.shape == Shape::sphere ? (point - object.points[0]) * (1 / object.radius)
                                                       : unit(cross(object.points[1], object.points[2]));
  return dot(outward, direction) > 0 ? outward * -1 : outward;
}

struct Box {
  Vector low{no_hit, no_hit, no_hit}, high{-no_hit, -no_hit, -no_hit};

  void add(Vector point) {
    low = {std::min(low.x, point.x), std::min(low.y, point.y), std::min(low.z, point.z)};
    high = {std::max(high.x, point.x), std::max(high.y, point.y), std::max(high.z, point.z)};
  }
  void add(const Box& box) { add(box.low), add(box.high); }
};

inline Box box_of(const Object& object) {
  Box box;
  const auto& [a, u, v] = object.points;
  if (object.shape == Shape::sphere) {
    const Vector radii{object.radius, object.radius, object.radius};
    box.add(a - radii), box.add(a + radii);
  } else {
    box.add(a), box.add(a + u), box.add(a + v);
  }
  return box;
}

}  // namespace headway::p_ray
