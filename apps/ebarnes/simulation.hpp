// SPDX-License-Identifier: BSD-3-Clause
/// One PE's bodies, and the steps of all PEs: bodies move to the PE of their zone, the tree is made, each PE walks it
/// for its bodies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/headway.hpp>
#include <support/work.hpp>
#include <utility>
#include <vector>

#include "access.hpp"
#include "cache.hpp"
#include "tree.hpp"
#include "zones.hpp"

namespace headway::ebarnes {

struct Ways {
  bool blocking = true;  // a walk waits for each cell; else `walks` of them go on in turn
  std::size_t walks = 256, cache_cells = 32768;
};

class Simulation {
 public:
  /// Collective, like all calls.
  Simulation(Pe& pe, GlobalMemory& memory, const Options& options, const Ways& ways, const apps::Work& work)
      : pe_(pe),
        work_(work),
        access_(pe, memory),
        options_(options),
        ways_(ways),
        tree_(pe, access_, options),
        cache_(ways.cache_cells),
        walks_(ways.blocking ? 1 : ways.walks) {
    Sums sums;
    for (std::uint64_t id = options.bodies * pe.id() / pe.size(); id < options.bodies * (pe.id() + 1) / pe.size(); ++id)
      sums.add(bodies_.emplace_back(plummer(options, id)));
    sums = allreduce(pe, sums, std::plus<>());
    for (Body& body : bodies_) sums.center(body, options.bodies);
  }

  void step() {
    for (Body& body : bodies_) {
      kick(body, options_.time_step / 2);
      drift(body, options_.time_step);
    }
    pull();
    for (Body& body : bodies_) kick(body, options_.time_step / 2);
  }

  /// Gives all bodies the forces at their places.
  void pull() {
    const Cube cube(allreduce(pe_, reach_of(bodies_), [](double a, double b) { return std::max(a, b); }));
    for (Body& body : bodies_) body.key = cube.key(body.at);
    move_to_zones();
    tree_.build(cube, bodies_);
    tree_.sum_up(cube);
    cache_.clear();
    if (ways_.blocking)
      walk_one_by_one();
    else
      walk_in_turn();
    for (const Body& body : bodies_) access_.counts.interactions += body.cost;
    barrier(pe_);  // from here on cells may change
  }

  std::vector<Body>& bodies() { return bodies_; }
  const Counts& counts() const { return access_.counts; }

 private:
  /// Zones of the Morton curve with about equal costs.
  void move_to_zones() {
    std::ranges::sort(bodies_, {}, &Body::key);
    std::vector<Sample> all;
    for (const auto& samples : all_gather(pe_, std::span<const Sample>(samples_of(bodies_, samples_each(pe_.size())))))
      all.insert(all.end(), samples.begin(), samples.end());
    const std::vector<std::uint64_t> ends = zone_ends(std::move(all), pe_.size());
    std::vector<std::vector<Body>> parts(pe_.size());
    for (const Body& body : bodies_) parts[zone_of(ends, body.key)].push_back(body);
    access_.counts.bodies_moved += bodies_.size() - parts[pe_.id()].size();
    bodies_.clear();
    for (const std::vector<Body>& part : all_to_all(pe_, parts))
      bodies_.insert(bodies_.end(), part.begin(), part.end());
    std::ranges::sort(bodies_, {}, &Body::key);
  }

  void walk_one_by_one() {
    Walk& walk = walks_[0];
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      walk.begin(i, bodies_[i].at, bodies_[i].id, tree_.root());
      walk.go_on(options_, [&](std::uint64_t cell) -> const Cell* {
        if (access_.is_own(cell)) return &access_.own(cell);
        ++access_.counts.opened;
        std::uint32_t entry = cache_.find(cell);
        if (entry == Cache::none) {
          entry = ask_for(cell);
          access_.sync();
        }
        return &cache_.copy(entry);
      });
      walk.give(bodies_[i]);
      work_.done(double(bodies_[i].cost));
      pe_.progress();  // others may wait for cells of this PE
    }
  }

  /// A walk that needs a cell of another PE asks for it, and the next one goes on. When all wait, so does the PE, for
  /// all cells together. In one turn each walk asks for one cell at most, so with a cache of twice as many cells none
  /// is replaced before its walk has seen it.
  void walk_in_turn() {
    std::size_t next = 0, active = 0;
    const auto begin = [&](Walk& walk) {
      if (next == bodies_.size()) return false;
      walk.begin(next, bodies_[next].at, bodies_[next].id, tree_.root());
      ++next;
      return true;
    };
    while (active < walks_.size() && begin(walks_[active])) ++active;
    std::vector<std::uint32_t> asked;
    const auto find = [&](std::uint64_t cell) -> const Cell* {
      if (access_.is_own(cell)) return &access_.own(cell);
      const std::uint32_t entry = cache_.find(cell);
      if (entry == Cache::none) {
        asked.push_back(ask_for(cell));
        return nullptr;
      }
      if (!cache_[entry].arrived) return nullptr;
      ++access_.counts.opened;
      return &cache_.copy(entry);
    };
    while (active > 0) {
      for (std::size_t w = 0; w < active;) {
        Walk& walk = walks_[w];
        bool waits = false, more = true;
        while (more && !(waits = !walk.go_on(options_, find))) {
          walk.give(bodies_[walk.body()]);
          work_.done(double(bodies_[walk.body()].cost));
          more = begin(walk);
          pe_.progress();
        }
        if (waits)
          ++w;
        else
          std::swap(walk, walks_[--active]);
      }
      access_.sync();
      for (const std::uint32_t entry : asked) cache_[entry].arrived = true;
      asked.clear();
    }
  }

  std::uint32_t ask_for(std::uint64_t cell) {
    ++access_.counts.misses;
    const std::uint32_t entry = cache_.replace(cell);
    access_.get(place(cell), std::span(&cache_.copy(entry), 1));
    return entry;
  }

  Pe& pe_;
  apps::Work work_;  // an interaction
  Access access_;
  Options options_;
  Ways ways_;
  Tree tree_;
  Cache cache_;
  std::vector<Walk> walks_;
  std::vector<Body> bodies_;  // by key
};

}  // namespace headway::ebarnes
