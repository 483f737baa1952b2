// SPDX-License-Identifier: BSD-3-Clause
/// Processor time of reductions under random skew: the loop, for Headway's program and its peers alike. PEs compute by
/// sleeping. So a process's processor time is the cost of the calls plus the cost of the loop; a loop without calls
/// gives the latter, to subtract.
#pragma once

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/clock.hpp>
#include <headway/base/random.hpp>
#include <reduce/work.hpp>
#include <span>
#include <vector>

namespace headway::bench {

#if defined(HEADWAY_SMPI)
inline constexpr bool time_is_simulated = true;  // all clocks are one, and processor time is time in a call
#else
inline constexpr bool time_is_simulated = false;
#endif

/// Computes until then. By sleeping: PEs that share a core would take it from one another, and the time that they wait
/// for it would count as no PE's cost.
inline void compute_until(std::int64_t ns) {
#if defined(HEADWAY_SMPI)
  if (const std::int64_t left = ns - base::monotonic_ns(); left > 0) {
    const timespec span{left / 1'000'000'000, left % 1'000'000'000};
    nanosleep(&span, nullptr);
  }
#else
  const timespec until{ns / 1'000'000'000, ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
#endif
}

/// The PEs, for what their programs do about a measurement. All but `me` are the same on each.
struct ReduceWorld {
  std::size_t me = 0, pes = 1, pes_per_process = 1;
  bool one_clock = true;  // of all PEs: they are on one host
  std::function<void()> meet;
  std::function<double(double)> sum;
  std::function<std::int64_t(std::int64_t)> latest;

  bool begins_process() const { return me % pes_per_process == 0; }
};

/// Processor time of a PE. Of its thread alone, or of its process: threads of the library count, and what PEs share of
/// a process that has several is counted by one of them, from when all have come to when all are through.
class ProcessorTime {
 public:
  ProcessorTime(const ReduceWorld& world, bool of_thread) : world_(&world), of_thread_(of_thread) {
    if (is_shared()) world.meet();
    begin_ns_ = now_ns();
  }
  std::int64_t passed_ns() const {
    if (is_shared()) world_->meet();
    return of_thread_ || world_->begins_process() ? now_ns() - begin_ns_ : 0;
  }

 private:
  bool is_shared() const { return !of_thread_ && world_->pes_per_process > 1; }
  std::int64_t now_ns() const {
    return base::clock_ns(of_thread_ ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID);
  }

  const ReduceWorld* world_;
  bool of_thread_;
  std::int64_t begin_ns_;
};

/// Calls nothing: measures the loop itself, without the threads of the library. end() returns this PE's part, which the
/// loop reads like a sum; it is wrong.
struct NoReduction {
  static constexpr bool by_thread = true;
  std::span<const double> given;
  void begin(std::span<const double> values) { given = values; }
  void look() {}
  std::span<const double> end() { return given; }
};

/// A PE's part of a loop.
struct SkewCosts {
  std::int64_t processor_ns = 0;
  std::int64_t in_calls_ns = 0;  // from when calls begin to when they return
  std::int64_t loop_ns = 0;
  std::uint64_t late = 0;  // iterations that began late, for the one before had taken longer than it has
  std::uint64_t errors = 0;
};

/// Iteration i begins at the same moment on all PEs. Each computes for its random skew, calls begin(), computes for the
/// catch-up delay, the same for all, with some looks between, and calls end(), which gives the sum to PE 0. Then it
/// sleeps until the next iteration begins. So PEs do not drift apart, and the skew of each is the one drawn by `seed`.
template <class Reduction>
SkewCosts run_skewed(const ReduceWork& work, const ReduceWorld& world, std::uint64_t iterations, std::uint64_t seed,
                     Reduction& reduction) {
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // ns by which the system may let this thread sleep longer
  const ReduceValues values(world.me, world.pes);
  const auto skew_ns_max = std::int64_t(work.skew_us_max * 1e3), settle_ns = std::int64_t(work.settle_us * 1e3);
  const std::int64_t catch_up_ns = skew_ns_max + settle_ns, period_ns = skew_ns_max + catch_up_ns + settle_ns;
  std::vector<double> given(work.elements);
  Random random(seed * world.pes + world.me);
  SkewCosts costs;
  const auto timed = [&costs](auto call) {
    const std::int64_t begin = base::monotonic_ns();
    call();
    costs.in_calls_ns += base::monotonic_ns() - begin;
  };

  world.meet();
  constexpr std::int64_t all_have_met_ns = 10'000'000;
  const std::int64_t now = base::monotonic_ns(), latest = world.latest(now);
  const std::int64_t first = (world.one_clock ? latest : now) + all_have_met_ns;
  const ProcessorTime processor(world, Reduction::by_thread);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    const std::int64_t begin = first + std::int64_t(i) * period_ns;
    costs.late += base::monotonic_ns() > begin;
    compute_until(begin + std::int64_t(random.fraction() * double(skew_ns_max)));
    values.fill(given, i);
    timed([&] { reduction.begin(given); });
    const std::int64_t called = base::monotonic_ns();
    for (std::uint64_t look = 1; look <= work.looks; ++look) {
      compute_until(called + catch_up_ns / std::int64_t(work.looks + 1) * std::int64_t(look));
      timed([&] { reduction.look(); });
    }
    compute_until(called + catch_up_ns);
    std::span<const double> sum;
    timed([&] { sum = reduction.end(); });
    if (world.me == 0) costs.errors += (sum.size() != given.size()) + values.errors(sum, i);
  }
  costs.processor_ns = processor.passed_ns();
  costs.loop_ns = base::monotonic_ns() - first;
  return costs;
}

struct SkewResult {
  double cpu_us = 0;         // of a PE and call, less `without_us`
  double without_us = 0;     // the same of the loop without reductions
  double in_calls_us = 0;    // time from call to return, the PE asleep or not
  double late_fraction = 0;  // of iterations
  double seconds = 0;
  std::uint64_t errors = 0;
};

/// Collective. Loops without and with reductions alternate, since the cost of waking up changes over time on a machine;
/// the results are medians over their pairs. All PEs call settle() after a loop: it completes the calls still under
/// way.
template <class Reduction>
SkewResult measure_skew(const ReduceWork& work, const ReduceWorld& world, Reduction& reduction,
                        const std::function<void()>& settle) {
  const std::uint64_t iterations = work.iterations_or_default();
  const std::uint64_t parts = std::min<std::uint64_t>(10, iterations);
  const auto run = [&](auto& what, std::uint64_t count, std::uint64_t seed) {
    const SkewCosts costs = run_skewed(work, world, count, seed, what);
    settle();
    return costs;
  };
  std::uint64_t errors = run(reduction, work.warming(), parts).errors;
  std::vector<double> cpu_us, without_us, in_calls_us;
  std::int64_t loops_ns = 0;
  std::uint64_t late = 0;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t count = iterations * (part + 1) / parts - iterations * part / parts;
    const auto mean_us = [&](std::int64_t ns) {
      return world.sum(double(ns) * 1e-3) / double(count) / double(world.pes);
    };
    NoReduction nothing;
    const SkewCosts without = run(nothing, count, part), with = run(reduction, count, part);
    in_calls_us.push_back(mean_us(with.in_calls_ns - without.in_calls_ns));
    without_us.push_back(time_is_simulated ? 0 : mean_us(without.processor_ns));
    cpu_us.push_back(time_is_simulated ? in_calls_us.back() : mean_us(with.processor_ns - without.processor_ns));
    loops_ns += with.loop_ns;
    late += with.late;
    errors += with.errors;
  }
  SkewResult result;
  result.cpu_us = spread_of(cpu_us).median;
  result.without_us = spread_of(without_us).median;
  result.in_calls_us = spread_of(in_calls_us).median;
  result.late_fraction = world.sum(double(late)) / double(iterations) / double(world.pes);
  result.seconds = double(world.latest(loops_ns)) * 1e-9;
  result.errors = std::uint64_t(world.sum(double(errors)));
  return result;
}

inline void add_skew_result(Json& record, const SkewResult& result) {
  record["cpu_us"] = to_json(spread_of({result.cpu_us}));
  record["in_calls_us"] = to_json(spread_of({result.in_calls_us}));
  record["cpu_us_without"] = to_json(spread_of({result.without_us}));
  record["late_fraction"] = to_json(spread_of({result.late_fraction}));
}

}  // namespace headway::bench
