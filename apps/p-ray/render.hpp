// SPDX-License-Identifier: BSD-3-Clause
/// Renders a PE's part of the image. Objects of other PEs are fetched when a ray needs them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <span>
#include <support/work.hpp>
#include <vector>

#include "cache.hpp"
#include "picture.hpp"
#include "trace.hpp"

namespace headway::p_ray {

struct ObjectCounts {
  std::uint64_t own = 0;         // uses of this PE's objects
  std::uint64_t from_cache = 0;  // uses of others; the first use after a miss counts too
  std::uint64_t misses = 0;      // objects fetched
  std::uint64_t joined = 0;      // rays that waited for an object that was on its way for another ray
};

/// The scene's objects in global memory, dealt out one by one.
class SharedObjects {
 public:
  /// Collective.
  SharedObjects(Pe& pe, GlobalMemory& memory, const Objects& all, std::size_t cache_entries)
      : memory_(&memory), id_(pe.id()), pes_(pe.size()), objects_(pe, all.size(), 1), cache_(cache_entries) {
    for (std::size_t i = 0; i < own().size(); ++i) own()[i] = all[id_ + i * pes_];
  }

  std::span<Object> own() const { return objects_.local(); }
  const ObjectCounts& counts() const { return counts_; }
  const Cache& cache() const { return cache_; }

  /// Object i, after a wait if it is not here. Valid until the next call.
  const Object* read(std::uint32_t i) {
    if (const Object* const object = find_own(i)) return object;
    std::uint32_t entry = cache_.find(i);
    if (entry == Cache::none) {
      entry = cache_.claim(i);
      cache_.object(entry) = memory_->read(objects_[i]);
      cache_.set_ready(entry);
      ++counts_.misses;
    }
    ++counts_.from_cache;
    return &cache_.object(entry);
  }

  /// Object i, or nullptr: then it is on its way to the entry `pinned`, which stays until unpin(); or with `pinned`
  /// none all entries in which it could be are waited for by other rays.
  const Object* find(std::uint32_t i, std::uint32_t& pinned) {
    if (const Object* const object = find_own(i)) return object;
    std::uint32_t entry = cache_.find(i);
    if (entry != Cache::none && cache_.is_ready(entry)) {
      ++counts_.from_cache;
      return &cache_.object(entry);
    }
    if (entry != Cache::none) {
      ++counts_.joined;
    } else {
      entry = cache_.claim(i);
      if (entry == Cache::none) return nullptr;
      memory_->get(objects_[i], &cache_.object(entry));
      coming_.push_back(entry);
      ++counts_.misses;
    }
    cache_.pin(entry);
    pinned = entry;
    return nullptr;
  }
  void unpin(std::uint32_t& pinned) {
    if (pinned != Cache::none) cache_.unpin(pinned);
    pinned = Cache::none;
  }
  /// Waits for all objects that are on their way.
  void wait() {
    memory_->sync();
    for (const std::uint32_t entry : coming_) cache_.set_ready(entry);
    coming_.clear();
  }

 private:
  const Object* find_own(std::uint32_t i) {
    if (i % pes_ != id_) return nullptr;
    ++counts_.own;
    return &own()[i / pes_];
  }

  GlobalMemory* memory_;
  std::size_t id_, pes_;
  DistArray<Object> objects_;
  Cache cache_;
  std::vector<std::uint32_t> coming_;  // entries
  ObjectCounts counts_;
};

/// Calls progress() now and then, so that this PE answers others while it computes.
class Looks {
 public:
  Looks(Pe& pe, const apps::Work& work, const RayCounts& counts)
      : pe_(&pe), work_(work), counts_(&counts), tests_(counts.tests) {}
  void at_path() {
    if (work_) {
      work_.done(double(counts_->tests - tests_));
      tests_ = counts_->tests;
    }
    if (++paths_ % 8 == 0) pe_->progress();
  }

 private:
  Pe* pe_;
  apps::Work work_;  // a test
  const RayCounts* counts_;
  std::uint64_t tests_;  // until the last path
  std::uint64_t paths_ = 0;
};

/// One pixel after the other. Waits for each object that is not here.
inline void render_blocking(Pe& pe, const World& world, const Camera& camera, SharedObjects& objects, Picture& picture,
                            RayCounts& counts, const apps::Work& work) {
  const auto find = [&](std::uint32_t i) { return objects.read(i); };
  Path path;
  Looks looks(pe, work, counts);
  for (Picture::Place place; picture.next(place);) {
    path.begin(world, camera.ray(place.pixel), counts);
    path.go_on(world, find, counts);
    picture.set(place, path.colour());
    looks.at_path();
  }
}

/// Up to `paths` pixels at once. Those with missing objects wait together.
inline void render_in_flight(Pe& pe, const World& world, const Camera& camera, SharedObjects& objects, Picture& picture,
                             RayCounts& counts, std::size_t paths, const apps::Work& work) {
  struct Flight {
    Path path;
    Picture::Place place;
    std::uint32_t pinned = Cache::none;
  };
  const auto begin = [&](Flight& flight) {
    if (!picture.next(flight.place)) return false;
    flight.path.begin(world, camera.ray(flight.place.pixel), counts);
    return true;
  };
  std::vector<Flight> flights;
  flights.reserve(paths);
  Looks looks(pe, work, counts);
  for (bool more = true; more || !flights.empty(); objects.wait()) {
    for (std::size_t i = 0; i < flights.size() || more;) {
      if (i == flights.size()) {
        if (i == paths) break;
        flights.emplace_back();
        more = begin(flights.back());
        if (!more) flights.pop_back();
        continue;
      }
      Flight& flight = flights[i];
      objects.unpin(flight.pinned);
      const auto find = [&](std::uint32_t object) { return objects.find(object, flight.pinned); };
      looks.at_path();
      if (!flight.path.go_on(world, find, counts)) {
        ++i;
        continue;
      }
      picture.set(flight.place, flight.path.colour());
      if (more) more = begin(flight);
      if (!more) {
        flight = flights.back();
        flights.pop_back();
      }
    }
  }
}

}  // namespace headway::p_ray
