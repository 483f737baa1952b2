// SPDX-License-Identifier: BSD-3-Clause
/// The same light, traced by a program without tree, cache and stops: each ray is tested against all objects.
#pragma once

#include <cstddef>
#include <span>

#include "scene.hpp"

namespace headway::p_ray {

inline const Object* nearest_of_all(std::span<const Object> objects, const Ray& ray, double& distance) {
  const Object* nearest = nullptr;
  distance = no_hit;
  for (const Object& object : objects) {
    const double at = hit(object, ray);
    if (at < distance || (nearest != nullptr && at == distance && object.number < nearest->number)) {
      nearest = &object;
      distance = at;
    }
  }
  return nearest;
}

inline bool any_before(std::span<const Object> objects, const Ray& ray, double distance) {
  for (const Object& object : objects) {
    if (hit(object, ray) < distance) return true;
  }
  return false;
}

/// Operations are in the order of Path, so results are equal to the bit.
inline Colour colour_of(std::span<const Object> objects, const Setting& setting, Ray ray) {
  Colour sum;
  double weight = 1;
  for (unsigned bounce = 0;; ++bounce) {
    double distance = 0;
    const Object* const object = nearest_of_all(objects, ray, distance);
    if (object == nullptr) return sum + setting.background * weight;
    const Vector point = ray.at(distance), away = normal(*object, point, ray.direction);
    Colour lit = object->colour * setting.ambient;
    for (const Vector& light : setting.lights) {
      const Vector to = light - point;
      const double far = length(to);
      const Vector direction = to * (1 / far);
      const double facing = dot(away, direction);
      if (facing > 0 && !any_before(objects, {point, direction}, far)) {
        lit = lit + object->colour * (facing * setting.light);
      }
    }
    sum = sum + lit * (weight * (1 - object->reflected));
    if (object->reflected == 0 || bounce == setting.bounces) return sum;
    weight *= object->reflected;
    ray = {point, unit(ray.direction - away * (2 * dot(away, ray.direction)))};
  }
}

}  // namespace headway::p_ray
