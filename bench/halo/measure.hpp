// SPDX-License-Identifier: BSD-3-Clause
/// Verifies and measures a method to exchange, for Headway's program and its peers alike. A method is a class that has
///
///     Method(...)         collective set-up, by the function `make`
///     exchange(clock)     one exchange; calls clock.phase("pack") and so on when a phase has ended, and
///                         clock.compute() once, if possible while the exchange is under way
///     errors(round)       after an exchange: the number of wrong elements
///     corrupt()           changes one bit of a received element
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <halo/values.hpp>
#include <halo/work.hpp>
#include <map>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::bench {

/// The PEs, for what their programs do about a measurement. All but `me` are the same on each.
struct HaloWorld {
  std::size_t me = 0, pes = 1;
  std::function<void()> meet;
  std::function<std::int64_t()> now_ns;
  std::function<double(double)> sum, most;
};

/// Measures no phases.
class NoHaloClock {
 public:
  NoHaloClock(const HaloWorld& world, std::uint64_t compute_us)
      : world_(&world), compute_ns_(std::int64_t(compute_us) * 1000) {}
  void phase(const char*) {}
  bool computes() const { return compute_ns_ != 0; }
  /// The work of the program: occupies the core.
  void compute() {
    if (!computes()) return;
    const std::int64_t end = world_->now_ns() + compute_ns_;
    while (world_->now_ns() < end) {
    }
  }

 protected:
  const HaloWorld* world_;

 private:
  std::int64_t compute_ns_;
};

/// Adds up phases, without computation.
class HaloClock : public NoHaloClock {
 public:
  HaloClock(const HaloWorld& world, std::uint64_t compute_us) : NoHaloClock(world, compute_us), last_(world.now_ns()) {}
  void compute() {
    NoHaloClock::compute();
    begin();
  }
  void begin() { last_ = world_->now_ns(); }
  void phase(const char* name) {
    const std::int64_t now = world_->now_ns();
    ns_[name] += now - last_;
    last_ = now;
  }
  const std::map<std::string, std::int64_t>& ns() const { return ns_; }

 private:
  std::int64_t last_;
  std::map<std::string, std::int64_t> ns_;
};

struct HaloResult {
  Spread us;                                // of an exchange: over the parts of the run
  double setup_us = 0;                      // the slowest PE; the median of several
  std::map<std::string, double> phases_us;  // mean over exchanges and PEs
  std::uint64_t exchanges = 0, errors = 0;
  std::uint64_t messages = 0;     // of an exchange, all PEs together
  std::size_t message_bytes = 0;  // mean
  double seconds = 0;
};

inline constexpr std::uint64_t halo_parts_max = 20, halo_checked_rounds = 3;
inline constexpr std::size_t halo_setups = 3;

/// How many exchanges are measured where no option states it: 256 MiB of all PEs together.
inline std::uint64_t default_halo_exchanges(double bytes) {
  return std::uint64_t(std::clamp(double(256 << 20) / std::max(bytes, 1.0), 20.0, 2000.0));
}

struct NoHaloReport {
  void operator()(const auto&) const {}
};

/// Collective. Exchanges of some rounds with new values, then timed ones, then a round again, then timed phases. Calls
/// report(method) last.
template <class T, class Make, class Report = NoHaloReport>
HaloResult measure_halo(const HaloWork& work, const HaloWorld& world, const HaloLists& lists,
                        const HaloArrays<T>& arrays, Make make, Report report = {}) {
  HaloResult result;
  std::vector<double> setups_us;
  const auto timed_make = [&] {
    world.meet();
    const std::int64_t begin = world.now_ns();
    auto made = make();
    setups_us.push_back(world.most(double(world.now_ns() - begin) * 1e-3));
    return made;
  };
  for (std::size_t i = 1; i < halo_setups; ++i) {
    auto made = timed_make();
    world.meet();
  }
  auto method = timed_make();
  result.setup_us = spread_of(setups_us).median;

  NoHaloClock none(world, work.compute_us);
  const auto check = [&](std::uint64_t round) {
    world.meet();
    fill_halo(arrays, world.me, round);
    world.meet();
    method->exchange(none);
    world.meet();
    if (work.corrupt) method->corrupt();
    result.errors += method->errors(round);
  };
  for (std::uint64_t round = 1; round <= halo_checked_rounds; ++round) check(round);

  const double bytes = world.sum(double(lists.received() * sizeof(T) * arrays.size()));
  result.messages = std::uint64_t(world.sum(double(lists.sends.size())));
  result.message_bytes = std::size_t(bytes / std::max(double(result.messages), 1.0));
  result.exchanges = work.exchanges != 0 ? work.exchanges : default_halo_exchanges(bytes);
  const std::uint64_t parts = std::min(halo_parts_max, result.exchanges);
  for (std::uint64_t i = 0; i <= result.exchanges / 10; ++i) method->exchange(none);  // buffers and caches are warm
  std::vector<double> parts_us;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t count = result.exchanges * (part + 1) / parts - result.exchanges * part / parts;
    world.meet();
    const std::int64_t begin = world.now_ns();
    for (std::uint64_t i = 0; i < count; ++i) method->exchange(none);
    const double ns = world.most(double(world.now_ns() - begin));
    parts_us.push_back(ns * 1e-3 / double(count));
    result.seconds += ns * 1e-9;
  }
  result.us = spread_of(parts_us);
  check(halo_checked_rounds + 1);

  HaloClock clock(world, work.compute_us);
  world.meet();
  for (std::uint64_t i = 0; i < result.exchanges; ++i) {
    clock.begin();
    method->exchange(clock);
  }
  world.meet();
  for (const char* name : {"post", "pack", "wait", "unpack", "begin", "end", "all"}) {
    const auto found = clock.ns().find(name);
    const double ns = world.sum(found == clock.ns().end() ? 0 : double(found->second));
    const double has = world.sum(found == clock.ns().end() ? 0 : 1);
    if (has > 0) result.phases_us[name] = ns * 1e-3 / double(result.exchanges) / double(world.pes);
  }
  result.errors = std::uint64_t(world.sum(double(result.errors)));
  report(*method);
  return result;
}

inline void add_halo_result(Json& record, const HaloWork& work, const HaloResult& result) {
  record["case"] = work.name;
  if (work.name == "recorded") record["application"] = work.application;
  if (!work.plan.empty()) record["plan"] = work.plan;
  record["elements"] = work.elements;
  record["fields"] = work.fields;
  record["element_bytes"] = work.bytes;
  if (work.name == "grid27" || work.name == "blocks") {
    record["width"] = work.width;
    record["points"] = work.points;
  }
  record["exchanges"] = result.exchanges;
  if (work.compute_us != 0) record["compute_us"] = work.compute_us;
  record["us"] = to_json(result.us);
  record["setup_us"] = result.setup_us;
  record["phases_us"] = result.phases_us;
  record["errors"] = result.errors;
}

}  // namespace headway::bench
