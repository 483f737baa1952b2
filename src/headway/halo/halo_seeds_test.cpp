// SPDX-License-Identifier: BSD-3-Clause
/// Random plans by seed, on the simulated transport.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <headway/halo/random_plans_test.hpp>
#include <headway/launch/simulation.hpp>
#include <string>
#include <vector>

namespace headway {
namespace {

launch::SimulateOptions options_of(std::uint64_t seed, std::size_t pes) {
  Random random(seed * 77);
  launch::SimulateOptions options{.pes = pes, .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  if (seed % 5 == 0) options.sizes = base::small_sizes;
  return options;
}

TEST(HaloSeeds, random_plans_move_what_a_serial_computation_says) {
  constexpr std::size_t sizes[] = {1, 2, 3, 4, 5, 8, 13, 33};
  const char* const first = std::getenv("HALO_SEED");
  const char* const count = std::getenv("HALO_SEEDS");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const std::uint64_t seeds = count == nullptr ? 80 : std::strtoull(count, nullptr, 10);
  for (std::uint64_t seed = begin; seed < begin + seeds; ++seed) {
    const launch::SimulateResult result =
        launch::simulate(options_of(seed, sizes[seed % std::size(sizes)]), [&](Pe& pe) {
          random_plans::run(pe, seed, false);
          pe.quiesce();
          return 0;
        });
    ASSERT_EQ(result.status, 0) << "HALO_SEED=" << seed << " HALO_SEEDS=1: " << result.text;
  }
}

/// Frames that a PE sends on average to set up an exchange with two neighbours of a ring, and to set up their plan.
struct SetupFrames {
  double exchange = 0, plan = 0;
};

SetupFrames setup_frames(std::size_t pes) {
  constexpr int times = 8;
  const auto frames = [pes](int plans, int exchanges) {
    const launch::SimulateResult result = launch::simulate({.pes = pes}, [&](Pe& pe) {
      const std::size_t left = (pe.id() + pes - 1) % pes, right = (pe.id() + 1) % pes;
      const std::vector<halo::Place> needed{{left, 1}, {right, 0}};
      const std::vector<halo::PartnerIndices> sends{{left, {0}}, {right, {1}}};
      const std::vector<halo::PartnerIndices> receives{{left, {2}}, {right, {3}}};
      std::vector<double> values(4);
      for (int i = 0; i != plans; ++i) halo::Plan::receiving(pe, 2, needed);
      const halo::Plan plan = halo::Plan::both(pe, sends, receives);
      for (int i = 0; i != exchanges; ++i) halo::Exchange(pe, plan, {halo::field(values)});
      return 0;
    });
    EXPECT_EQ(result.status, 0) << result.text;
    return double(result.frames);
  };
  const double none = frames(0, 0), per_pe = double(times * pes);
  return {.exchange = (frames(0, times) - none) / per_pe, .plan = (frames(times, 0) - none) / per_pe};
}

TEST(HaloSeeds, frames_of_set_up_do_not_grow_with_the_pes) {
  const SetupFrames few = setup_frames(16);
  EXPECT_NEAR(few.exchange, 2, 0.1);  // a message for each partner
  EXPECT_GE(few.plan, 2);             // and those of an epoch
  const SetupFrames many = setup_frames(1024);
  RecordProperty("plan_of_16", std::to_string(few.plan));
  RecordProperty("plan_of_1024", std::to_string(many.plan));
  EXPECT_NEAR(many.exchange, few.exchange, 0.15);  // the end of a run may need a frame more of each PE: 0.125
  EXPECT_LE(many.plan, 1.1 * few.plan);
}

}  // namespace
}  // namespace headway
