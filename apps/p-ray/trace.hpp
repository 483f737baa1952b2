// SPDX-License-Identifier: BSD-3-Clause
/// Traces rays through a tree. A trace stops where an object is not here, and goes on when the object has come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "scene.hpp"
#include "tree.hpp"

namespace headway::p_ray {

struct World {
  Setting setting;
  const Tree& tree;
};

struct RayCounts {
  std::uint64_t rays = 0;   // to pixels, to lights and mirrored
  std::uint64_t tests = 0;  // of a ray against an object
};

/// Looks for the object that a ray hits first, or for any object before a limit. Of two at the same distance the one
/// with the lower number counts, so the order of tests does not matter.
class Search {
 public:
  /// With `limit` any object before it will do, and the search ends there.
  void begin(const Tree& tree, const Ray& ray, double limit = no_hit) {
    ray_ = ray;
    slabs_ = Slabs(ray);
    best_ = limit;
    any_ = limit != no_hit;
    found_ = false;
    next_ = end_ = depth_ = 0;
    push(tree, 0);
  }

  /// Returns true at the end. `find(i)` gives the tree's object i, or nullptr if it is not here: then go_on() returns
  /// false, and another call asks for the same object again.
  template <class Find>
  bool go_on(const Tree& tree, Find& find, RayCounts& counts) {
    for (;;) {
      for (; next_ < end_; ++next_) {
        const Object* const object = find(next_);
        if (object == nullptr) return false;
        ++counts.tests;
        test(*object);
        if (found_ && any_) return true;
      }
      if (depth_ == 0) return true;
      const Open open = stack_[--depth_];
      if (open.enter <= best_) descend(tree, open.node);
    }
  }

  bool found() const { return found_; }
  double distance() const { return best_; }
  const Ray& ray() const { return ray_; }
  /// The object that was found.
  const Object& object() const { return object_; }

 private:
  struct Open {
    double enter;
    std::uint32_t node;
  };

  void test(const Object& object) {
    const double at = hit(object, ray_);
    if (any_ ? at < best_ : at < best_ || (found_ && at == best_ && object.number < object_.number)) {
      found_ = true;
      if (any_) return;
      best_ = at;
      object_ = object;
    }
  }
  void push(const Tree& tree, std::uint32_t node) {
    if (tree.nodes().empty()) return;
    const double enter = slabs_.enter(tree.nodes()[node], best_);
    if (enter != no_hit) stack_[depth_++] = {enter, node};
  }
  /// To the nearest leaf below `node`; the other nodes wait.
  void descend(const Tree& tree, std::uint32_t node) {
    const Node& at = tree.nodes()[node];
    if (at.count != 0) {
      next_ = at.at;
      end_ = at.at + at.count;
      return;
    }
    const std::uint32_t before = depth_;
    push(tree, node + 1);
    push(tree, at.at);
    if (depth_ == before + 2 && stack_[before].enter < stack_[before + 1].enter) {
      std::swap(stack_[before], stack_[before + 1]);
    }
  }

  Ray ray_;
  Slabs slabs_;
  double best_ = no_hit;
  bool any_ = false, found_ = false;
  std::uint32_t next_ = 0, end_ = 0, depth_ = 0;  // objects of a leaf; open nodes
  std::array<Open, Tree::depth_max + 2> stack_;
  Object object_;
};

/// The light of one pixel: a ray from the camera, from each hit a ray to each light, and a mirrored ray.
class Path {
 public:
  void begin(const World& world, const Ray& ray, RayCounts& counts) {
    sum_ = {};
    weight_ = 1;
    bounce_ = 0;
    look(world, ray, counts);
  }

  /// As Search::go_on(): true when the colour is known.
  template <class Find>
  bool go_on(const World& world, Find& find, RayCounts& counts) {
    while (search_.go_on(world.tree, find, counts)) {
      if (light_ != looking) {
        end_light(world);
      } else if (!begin_shading(world)) {
        return true;
      }
      if (!next_light(world, counts) && !reflect(world, counts)) return true;
    }
    return false;
  }

  const Colour& colour() const { return sum_; }

 private:
  static constexpr unsigned looking = ~0u;

  void look(const World& world, const Ray& ray, RayCounts& counts) {
    light_ = looking;
    ++counts.rays;
    search_.begin(world.tree, ray);
  }
  /// Returns false where the ray hits nothing.
  bool begin_shading(const World& world) {
    if (!search_.found()) {
      sum_ = sum_ + world.setting.background * weight_;
      return false;
    }
    ray_ = search_.ray();
    colour_ = search_.object().colour;
    reflected_ = search_.object().reflected;
    point_ = ray_.at(search_.distance());
    normal_ = normal(search_.object(), point_, ray_.direction);
    lit_ = colour_ * world.setting.ambient;
    return true;
  }
  void end_light(const World& world) {
    if (!search_.found()) lit_ = lit_ + colour_ * (facing_ * world.setting.light);
  }
  /// Begins a search towards the next light in front of the surface. False: there is none.
  bool next_light(const World& world, RayCounts& counts) {
    while (++light_ < world.setting.lights.size()) {  // from `looking` to 0
      const Vector to = world.setting.lights[light_] - point_;
      const double distance = length(to);
      const Vector direction = to * (1 / distance);
      facing_ = dot(normal_, direction);
      if (!(facing_ > 0)) continue;
      ++counts.rays;
      search_.begin(world.tree, {point_, direction}, distance);
      return true;
    }
    return false;
  }
  bool reflect(const World& world, RayCounts& counts) {
    sum_ = sum_ + lit_ * (weight_ * (1 - reflected_));
    if (reflected_ == 0 || bounce_ == world.setting.bounces) return false;
    weight_ *= reflected_;
    ++bounce_;
    const Vector direction = ray_.direction - normal_ * (2 * dot(normal_, ray_.direction));
    look(world, {point_, unit(direction)}, counts);
    return true;
  }

  Colour sum_;
  double weight_ = 1;  // share of the ray's light in the pixel
  unsigned bounce_ = 0, light_ = looking;
  Search search_;
  // Of the surface that the ray hit:
  Ray ray_;
  Vector point_, normal_;
  Colour colour_, lit_;
  double reflected_ = 0, facing_ = 0;
};

}  // namespace headway::p_ray
