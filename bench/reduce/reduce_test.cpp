// SPDX-License-Identifier: BSD-3-Clause
/// The counts of the loops of headway-reduce, on a world of one PE and with stand-ins for a collective.
#include <gtest/gtest.h>

#include <headway/base/clock.hpp>
#include <reduce/latency.hpp>
#include <reduce/skew.hpp>
#include <reduce/work.hpp>

namespace headway::bench {
namespace {

ReduceWorld world_of_one() {
  return {.me = 0,
          .pes = 1,
          .pes_per_process = 1,
          .one_clock = true,
          .meet = [] {},
          .sum = [](double value) { return value; },
          .latest = [](std::int64_t value) { return value; }};
}

/// A reduction over one PE: the sum is its own part, or wrong on request, and takes so much processor time.
struct StandIn {
  static constexpr bool by_thread = false;
  std::int64_t burn_ns = 0;
  bool wrong = false;
  int looks = 0;
  std::vector<double> sum = {};

  void begin(std::span<const double> given) {
    sum.assign(given.begin(), given.end());
    if (wrong) sum.back() += 1;
    for (const std::int64_t end = base::thread_cpu_ns() + burn_ns; base::thread_cpu_ns() < end;) {
    }
  }
  void look() { ++looks; }
  std::span<const double> end() { return sum; }
};

ReduceWork small() {
  ReduceWork work;
  work.elements = 3;
  work.skew_us_max = 50;
  work.settle_us = 50;
  work.iterations = 20;
  return work;
}

TEST(ReduceValues, the_sum_of_any_number_of_PEs_is_known_to_the_bit_and_wrong_elements_are_counted) {
  for (const std::size_t pes : {1, 2, 8, 33, 1024}) {
    for (const std::uint64_t i : {0, 1, 1023, 1024, 5000}) {
      std::vector<double> sum(1025), given(1025);
      for (std::size_t me = 0; me < pes; ++me) {
        ReduceValues(me, pes).fill(given, i);
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += given[e];
      }
      const ReduceValues values(0, pes);
      EXPECT_EQ(values.errors(sum, i), 0u);
      EXPECT_EQ(values.errors(sum, i + 1), sum.size());  // the sum of another iteration
      sum[7] += 1;
      sum[1024] = 0;
      EXPECT_EQ(values.errors(sum, i), 2u);
    }
  }
}

TEST(ReduceSkew, a_loop_counts_the_processor_time_of_calls_and_not_its_own_or_that_of_sleep) {
  constexpr double burn_us = 2000;
  StandIn costly{.burn_ns = std::int64_t(burn_us * 1e3)};
  const SkewResult result = measure_skew(small(), world_of_one(), costly, [] {});
  EXPECT_EQ(result.errors, 0u);
  EXPECT_GT(result.cpu_us, burn_us / 2);
  EXPECT_GT(result.in_calls_us, burn_us / 2);
  EXPECT_GT(result.without_us, 0);
  // A call takes ten times as long as an iteration has. In each of ten parts of two iterations only the first is in
  // time.
  EXPECT_GE(result.late_fraction, 0.5);
}

TEST(ReduceSkew, a_loop_looks_as_often_as_it_is_told) {
  ReduceWork work = small();
  work.looks = 3;
  StandIn cheap;
  measure_skew(work, world_of_one(), cheap, [] {});
  EXPECT_EQ(cheap.looks, 3 * int(work.iterations + work.warming()));
}

TEST(ReduceSkew, every_wrong_sum_is_counted) {
  StandIn wrong{.wrong = true};
  const ReduceWork work = small();
  const SkewResult result = measure_skew(work, world_of_one(), wrong, [] {});
  EXPECT_EQ(result.errors, work.iterations + work.warming());
}

/// On a world of two PEs: the other PE enters an hour later.
struct Leaves {
  double reduce(double given, std::size_t) { return given; }
  double allreduce(double given) { return given + 1; }
  void barrier() {}
};

TEST(ReduceLatency, wrong_sums_and_barriers_that_let_go_too_early_are_counted) {
  ReduceWork work;
  work.measure = "latency";
  work.iterations = 40;
  Leaves leaves;
  ReduceWorld world = world_of_one();
  EXPECT_EQ(measure_latency(work, world, leaves).errors, 0u);
  work.call = "allreduce";
  EXPECT_EQ(measure_latency(work, world, leaves).errors, work.iterations + work.warming());
  work.call = "barrier";
  EXPECT_EQ(measure_latency(work, world, leaves).errors, 0u);
  world.latest = [](std::int64_t ns) { return ns + 3'600'000'000'000; };
  EXPECT_EQ(measure_latency(work, world, leaves).errors, 20u);
}

}  // namespace
}  // namespace headway::bench
