// SPDX-License-Identifier: BSD-3-Clause
// Every transport handles the same messages of the same random programs.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/base/bytes.hpp>
#include <support/run_pes.hpp>
#include <vector>

#include "participant.hpp"
#include "simulated.hpp"

namespace seeds {
namespace {

using namespace headway::literals;
using headway::testing::Settings;
using headway::testing::Shape;
using headway::testing::Shared;

constexpr std::uint64_t seeds_in_all = 100;
constexpr ProgramLimits limits{
    .pes_max = 7, .messages_max = 1000, .bytes_max = 400'000, .budget_bytes_min = 1_MiB, .floods = false};

/// What each PE handles, as the sum of the messages' keys.
using Digests = std::vector<std::uint64_t>;

Digests run_local(const Program& program, std::size_t pes_per_process) {
  const Expectation expectation = expect(program);
  Shared<std::uint64_t> digests(program.pes);
  const Shape shape{program.pes, pes_per_process};
  const Settings settings{{"HEADWAY_BUDGET", std::to_string(program.budget_bytes)},
                          {"HEADWAY_TEST_SIZES", program.has_small_sizes ? "small" : "normal"}};
  headway::testing::expect_run(
      shape,
      [&](Pe& pe) {
        Ledger ledger;
        digests[pe.id()] = Participant(pe, program, expectation, ledger).run();
      },
      settings);
  return {digests.begin(), digests.end()};
}

TEST(Transports, agree_on_a_hundred_random_programs) {
  for (std::uint64_t seed = 1; seed <= seeds_in_all; ++seed) {
    Program program;
    draw(program, seed, limits);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + program.describe());
    const Verdict simulated = run_simulated(program);
    ASSERT_EQ(simulated.violation, "");
    ASSERT_EQ(run_local(program, 1), simulated.digests) << "as processes";
    if (program.pes == 1) continue;
    ASSERT_EQ(run_local(program, program.pes), simulated.digests) << "as threads";
    ASSERT_EQ(run_local(program, (program.pes + 1) / 2), simulated.digests) << "as both";
  }
}

}  // namespace
}  // namespace seeds
