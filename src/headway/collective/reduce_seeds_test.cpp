// SPDX-License-Identifier: BSD-3-Clause
/// Random sequences of collectives by seed, many in flight at once on overlapping teams of late and slow PEs, compared
/// with a serial program. On the simulated transport.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <headway/am/epoch.hpp>
#include <headway/am/task.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/collectives.hpp>
#include <headway/launch/simulation.hpp>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <support/team_player.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::run_step;
using testing::Step;

struct Script {
  std::vector<std::vector<std::size_t>> teams;
  std::vector<Step> steps;
};

Script script_of(std::uint64_t seed, std::size_t pes) {
  Random random(seed * 77);
  Script script;
  for (std::uint64_t t = random.between(1, 4); t > 0; --t) {
    std::vector<std::size_t> all(pes);
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t i = pes; i > 1; --i) std::swap(all[i - 1], all[random.between(0, i - 1)]);
    if (t != 1) all.resize(random.between(1, pes));
    script.teams.push_back(all);
  }
  for (std::uint64_t s = random.between(5, 40); s > 0; --s) {
    Step step{};
    step.what = testing::Collective(random.between(0, testing::collectives - 1));
    step.team = random.between(0, script.teams.size() - 1);
    step.root = random.between(0, script.teams[step.team].size() - 1);
    step.count = random.between(0, 9) == 0 ? random.between(4'000, 60'000) : random.between(0, 40);
    step.all = random.between(0, 1) == 0;
    step.ordered = random.between(0, 1) == 0;
    step.number = seed * 1000 + s;
    script.steps.push_back(step);
  }
  return script;
}

launch::SimulateOptions options_of(std::uint64_t seed, std::size_t pes) {
  Random random(seed);
  launch::SimulateOptions options{.pes = pes, .seed = seed};
  if (seed % 4 != 0) options.conditions = sim::random_conditions(random, options.pes);
  options.budget_bytes = std::size_t(1) << random.between(18, 21);
  return options;
}

void require_nothing_left(Pe& pe) {
  const collective::Collectives& all = collective::Collectives::of(pe);
  if (all.size() != 0 || all.early() != 0) throw std::logic_error("descriptors or messages are left");
}

launch::SimulateResult run_seed(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 5, 8, 13, 33};
  const launch::SimulateOptions options = options_of(seed, sizes[seed % std::size(sizes)]);
  const Script script = script_of(seed, options.pes);
  return launch::simulate(options, [&](Pe& pe) {
    Random own(seed * 100 + pe.id());  // how late it is
    std::vector<std::unique_ptr<Team>> teams;
    std::uint64_t done = 0, mine = 0;
    for (const std::vector<std::size_t>& list : script.teams) {
      const bool is_member = std::ranges::count(list, std::size_t(pe.id())) != 0;
      teams.push_back(is_member ? std::make_unique<Team>(pe, list) : nullptr);
    }
    std::optional<Epoch> epoch;
    if (seed % 3 == 0) epoch.emplace(pe);
    for (const Step& step : script.steps) {
      if (own.between(0, 4) == 0) {
        for (std::uint64_t i = own.between(0, 200); i > 0; --i) pe.progress();
      }
      if (!teams[step.team]) continue;
      ++mine;
      // It makes all its calls before it waits for any, so that they are in the same order on all members.
      if (own.between(0, 2) == 0)
        run_task(pe, run_step(*teams[step.team], step, done));
      else
        spawn(pe, run_step(*teams[step.team], step, done));
    }
    if (epoch)
      epoch->wait();
    else
      pe.quiesce();
    if (done != mine) throw std::logic_error(fmt::format("{} of {} are done", done, mine));
    require_nothing_left(pe);
    return 0;
  });
}

/// Members make the teams of different lists, call and destroy in orders of their own.
launch::SimulateResult run_teams(std::uint64_t seed) {
  constexpr std::size_t sizes[] = {1, 2, 3, 4, 5, 8, 13, 33}, phases = 3;
  Random random(seed * 33);
  const launch::SimulateOptions options = options_of(seed, sizes[seed % std::size(sizes)]);
  const testing::TeamScriptLimits limits{
      .lines_max = random.one_in(5) ? 60u : 8u, .elements_max = 12, .many_elements = 20'000, .phases = phases};
  const testing::TeamScript script = testing::draw_team_script(random, options.pes, limits);
  return launch::simulate(options, [&](Pe& pe) {
    Random own(seed * 100 + pe.id());
    testing::TeamPlayer player(pe, script);
    for (std::size_t phase = 0; phase < phases; ++phase) {
      while (player.take_one(own, phase)) {
        if (!own.one_in(5)) continue;
        for (std::uint64_t i = own.below(100); i > 0; --i) pe.progress();
      }
      pe.quiesce();
      player.check_done();
      require_nothing_left(pe);
    }
    return 0;
  });
}

/// COLLECTIVE_SEED and COLLECTIVE_SEEDS: the first, and how many.
template <class Run>
void expect_seeds(std::uint64_t seeds, Run run) {
  const char* first = std::getenv("COLLECTIVE_SEED");
  const std::uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* count = std::getenv("COLLECTIVE_SEEDS");
  const std::uint64_t end = begin + (count == nullptr ? seeds : std::strtoull(count, nullptr, 10));
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const launch::SimulateResult result = run(seed);
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  }
}

TEST(CollectiveSeeds, random_collectives_give_what_a_serial_program_does) { expect_seeds(30, run_seed); }

TEST(TeamSeeds, teams_that_are_made_in_other_orders_on_each_member_are_the_same) { expect_seeds(30, run_teams); }

}  // namespace
}  // namespace headway
