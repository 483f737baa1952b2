// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/base/random.hpp>
#include <headway/model/loggp.hpp>
#include <probe/result.hpp>

namespace headway::bench {
namespace {

constexpr model::LogGP network{.latency_ns = 2000, .overhead_ns = 300, .gap_ns = 500, .gap_per_byte_ns = 0.25};

/// The times of a machine with these parameters, up to an error of each.
ProbeLaunch launch_of(const model::LogGP& machine, std::uint64_t seed, double noise = 0) {
  Random random(seed);
  const auto measured = [&](double ns) { return ns * (1 + noise * (2 * random.fraction() - 1)); };
  ProbeLaunch launch;
  for (int i = 0; i != 60; ++i) {
    const std::size_t bytes = i < 9 ? 1 : random.size(1, 65536);
    ProbeSample sample{.bytes = bytes, .messages = 32};
    sample.one_ns = measured(parametrized_round_trip_ns(machine, 1, 0, double(bytes)));
    sample.burst_ns = measured(parametrized_round_trip_ns(machine, 32, 0, double(bytes)));
    if (bytes <= short_bytes_max) {
      sample.delay_ns = 5000;
      sample.delayed_ns = measured(parametrized_round_trip_ns(machine, 32, sample.delay_ns, double(bytes)));
    }
    sample.receive_ns = measured(machine.overhead_ns);
    launch.samples.push_back(sample);
  }
  for (const std::size_t bytes : {8, 64, 1024}) {
    launch.costs.push_back({bytes, false, measured(machine.overhead_ns), measured(machine.overhead_ns)});
    launch.costs.push_back({bytes, true, measured(10), measured(20)});
  }
  return launch;
}

std::vector<ProbeLaunch> launches_of(const model::LogGP& machine, std::size_t count, double noise = 0) {
  std::vector<ProbeLaunch> launches;
  for (std::size_t i = 0; i != count; ++i) launches.push_back(launch_of(machine, i + 1, noise));
  return launches;
}

TEST(ProbeResult, times_of_the_model_give_its_parameters) {
  const ProbeResult found = evaluate(launches_of(network, 6));
  EXPECT_EQ(found.launches, 6);
  EXPECT_NEAR(found.overhead_of_sender.value, 300, 1);
  EXPECT_NEAR(found.overhead_of_receiver.value, 300, 1);
  EXPECT_NEAR(found.latency.value, 2000, 1);
  ASSERT_EQ(found.segments.size(), 1);
  EXPECT_NEAR(found.gap().value, 500, 1);
  EXPECT_NEAR(found.gap_per_byte().value, 0.25, 0.001);
  EXPECT_NEAR(found.item.value, 20, 1e-9);
  EXPECT_EQ(found.costs.size(), 6);
  EXPECT_LT(found.residual, 1e-6);
}

TEST(ProbeResult, intervals_hold_the_parameters_of_noisy_times) {
  constexpr int experiments = 20;
  int held[5] = {};
  for (int experiment = 0; experiment != experiments; ++experiment) {
    std::vector<ProbeLaunch> launches;
    for (std::uint64_t i = 0; i != 6; ++i) launches.push_back(launch_of(network, 100 * experiment + i, 0.01));
    const ProbeResult found = evaluate(launches);
    const auto holds = [](const model::Estimate& estimate, double truth) {
      EXPECT_LE(estimate.low, estimate.value);
      EXPECT_LE(estimate.value, estimate.high);
      return estimate.low <= truth && truth <= estimate.high;
    };
    held[0] += holds(found.overhead_of_sender, 300);
    held[1] += holds(found.overhead_of_receiver, 300);
    held[2] += holds(found.latency, 2000);
    held[3] += holds(found.gap(), 500);
    held[4] += holds(found.gap_per_byte(), 0.25);
  }
  for (const int one : held) EXPECT_GE(one, 17) << "of " << experiments << " intervals of 95 %";
}

TEST(ProbeResult, a_value_is_never_negative_and_says_that_it_reaches_0) {
  std::vector<ProbeLaunch> launches = launches_of(network, 6);
  for (ProbeLaunch& launch : launches) {
    for (ProbeSample& sample : launch.samples) sample.receive_ns = 9000;
  }
  const ProbeResult below = evaluate(launches);
  EXPECT_TRUE(below.latency.is_below_zero);
  EXPECT_EQ(below.latency.value, 0);
  EXPECT_EQ(to_json(below.latency)["below_zero"], true);
  for (ProbeSample& sample : launches[0].samples) sample.receive_ns = 0;
  const ProbeResult around = evaluate(launches);
  EXPECT_TRUE(around.latency.includes_zero);
  EXPECT_EQ(around.latency.low, 0);
  EXPECT_GT(around.latency.high, 0);
  EXPECT_EQ(to_json(around.latency)["includes_zero"], true);
  EXPECT_FALSE(to_json(around.latency).contains("below_zero"));
}

TEST(ProbeResult, a_disturbed_sample_that_gives_no_time_leaves_the_residual_a_part) {
  std::vector<ProbeLaunch> launches = launches_of(network, 6, 0.01);
  launches[0].samples[3].burst_ns = launches[0].samples[3].one_ns / 2;
  const ProbeResult found = evaluate(launches);
  EXPECT_GT(found.residual, 0);
  EXPECT_LT(found.residual, 0.02);
  EXPECT_NEAR(found.gap_per_byte().value, 0.25, 0.01);
}

TEST(ProbeResult, a_launch_survives_its_json) {
  const ProbeLaunch launch = launch_of(network, 3, 0.01), read = probe_launch_of(Json::parse(to_json(launch).dump()));
  EXPECT_EQ(to_json(read).dump(), to_json(launch).dump());
  const std::string head = csv_head(), lines = csv_of({"local", "process", "0-1 shared cache", 1}, read);
  EXPECT_EQ(std::ranges::count(lines, ',') % std::ranges::count(head, ','), 0);
  EXPECT_EQ(lines.find("local,process,0-1 shared cache,1,"), 0u) << lines;
  EXPECT_EQ(lines, csv_of({"local", "process", "0-1 shared cache", 1}, launch));
}

TEST(ProbeResult, a_damaged_record_is_refused_with_the_field) {
  Json json = to_json(launch_of(network, 3));
  json["samples"][0].erase("burst_ns");
  try {
    probe_launch_of(json);
    FAIL() << "it was read";
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("burst_ns"), std::string::npos) << error.what();
  }
}

TEST(ProbeResult, too_few_samples_are_refused) {
  EXPECT_THROW(evaluate({}), SettingError);
  std::vector<ProbeLaunch> launches = launches_of(network, 1);
  launches[0].samples.resize(2);
  EXPECT_THROW(evaluate(launches), SettingError);
}

TEST(ProbeResult, sizes_of_powers_of_two_have_a_latency_and_a_bandwidth) {
  const std::vector<MeasuredSize> sizes = measured_sizes(launches_of(network, 3));
  ASSERT_FALSE(sizes.empty());
  EXPECT_EQ(sizes.front().bytes, 1);
  EXPECT_NEAR(sizes.front().one_way_us, 2.6, 0.001);
  EXPECT_NEAR(sizes.front().megabytes_a_second, 2, 0.01);
  for (std::size_t i = 1; i < sizes.size(); ++i) EXPECT_LT(sizes[i - 1].bytes, sizes[i].bytes);
}

}  // namespace
}  // namespace headway::bench
