// SPDX-License-Identifier: BSD-3-Clause
/// The time of one collective after the other without skew: the loop, for Headway's program and its peers alike.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/base/clock.hpp>
#include <headway/base/random.hpp>
#include <message/laps.hpp>
#include <reduce/skew.hpp>
#include <reduce/work.hpp>

namespace headway::bench {

struct LatencyResult {
  double latency_us = 0;  // of a call: the median over parts of the loop, the mean over PEs
  double seconds = 0;
  std::uint64_t errors = 0;
};

/// Barriers that PEs enter at different times. Returns how many a PE left before all PEs had entered.
template <class Call>
std::uint64_t early_leavers(const ReduceWorld& world, Call& call) {
  if (!world.one_clock) return 0;  // times of different clocks cannot be compared
  constexpr std::uint64_t barriers = 20;
  constexpr double us_max = 200;
  Random random(world.me + 1);
  std::uint64_t errors = 0;
  for (std::uint64_t i = 0; i < barriers; ++i) {
    compute_until(base::monotonic_ns() + std::int64_t(random.fraction() * us_max * 1e3));
    const std::int64_t came = base::monotonic_ns();
    call.barrier();
    const std::int64_t went = base::monotonic_ns();
    errors += went < world.latest(came);
  }
  return errors;
}

/// Collective. `Call` has double reduce(double given, std::size_t root), which waits on the root and returns the sum
/// there; double allreduce(double); void barrier().
///
/// The root of reduction i is PE i modulo P. A root first waits for its result, and then gives its part to the next
/// reduction. So reductions follow each other without another collective between them, and the time of each runs from
/// the last part to the result. Two PEs play ping-pong.
template <class Call>
LatencyResult measure_latency(const ReduceWork& work, const ReduceWorld& world, Call& call) {
  const ReduceValues values(world.me, world.pes);
  const bool barriers = work.call == "barrier", allreduces = work.call == "allreduce";
  std::uint64_t errors = 0;
  const auto once = [&](std::uint64_t i) {
    double given = 0;
    values.fill(std::span(&given, 1), i);
    const auto check = [&](double sum) { errors += values.errors(std::span(&sum, 1), i); };
    if (barriers) return call.barrier();
    if (allreduces) return check(call.allreduce(given));
    const std::size_t root = i % world.pes;
    const double sum = call.reduce(given, root);
    if (root == world.me) check(sum);
  };
  if (barriers) errors += early_leavers(world, call);
  const std::uint64_t iterations = work.iterations_or_default();
  for (std::uint64_t i = 0; i < work.warming(); ++i) once(i);
  world.meet();
  const std::int64_t begin = base::monotonic_ns();
  Laps laps(iterations, begin);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    once(i);
    if (laps.due(i + 1)) laps.mark(base::monotonic_ns());
  }
  const std::int64_t passed_ns = base::monotonic_ns() - begin;
  LatencyResult result;
  result.latency_us = world.sum(2 * laps.one_way_us()) / double(world.pes);
  result.seconds = double(world.latest(passed_ns)) * 1e-9;
  result.errors = std::uint64_t(world.sum(double(errors)));
  return result;
}

inline void add_latency_result(Json& record, const LatencyResult& result) {
  record["latency_us"] = to_json(spread_of({result.latency_us}));
}

}  // namespace headway::bench
