// SPDX-License-Identifier: BSD-3-Clause
/// Vectors of space and colours.
#pragma once

#include <cmath>

namespace headway::p_ray {

struct Vector {
  double x = 0, y = 0, z = 0;
};

using Colour = Vector;  // red, green and blue, each 1 where it is full

constexpr Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
constexpr Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
constexpr Vector operator*(Vector a, double s) { return {a.x * s, a.y * s, a.z * s}; }
/// Component by component.
constexpr Vector operator*(Vector a, Vector b) { return {a.x * b.x, a.y * b.y, a.z * b.z}; }

constexpr double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
constexpr Vector cross(Vector a, Vector b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline double length(Vector a) { return std::sqrt(dot(a, a)); }
inline Vector unit(Vector a) { return a * (1 / length(a)); }

struct Ray {
  Vector origin, direction;  // of length 1
  Vector at(double distance) const { return origin + direction * distance; }
};

}  // namespace headway::p_ray
