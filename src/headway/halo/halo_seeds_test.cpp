// SPDX-License-Identifier: BSD-3-Clause
/// Random plans by seed, on the simulated transport.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <headway/halo/random_plans_test.hpp>
#include <headway/launch/simulation.hpp>

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

}  // namespace
}  // namespace headway
