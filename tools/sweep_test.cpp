// SPDX-License-Identifier: BSD-3-Clause
#include "sweep.hpp"

#include <gtest/gtest.h>

#include <map>

namespace headway::tools {
namespace {

Candidate named(const std::string& name) { return {{{"NAME", name}}}; }

/// Candidates with a constant run time each, by name; "" is the defaults.
struct Fixed {
  std::map<std::string, double> seconds;
  std::map<std::string, unsigned> runs = {};

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all(1);
    for (const auto& [name, unused] : seconds) {
      if (!name.empty()) all.push_back(named(name));
    }
    return all;
  }
  Sweep sweep(std::size_t pairs) {
    return find_fastest(candidates(), pairs, [this](const Candidate& candidate) -> std::optional<double> {
      const std::string name = candidate.settings.empty() ? "" : candidate.settings[0].value;
      ++runs[name];
      return seconds[name] < 0 ? std::nullopt : std::optional(seconds[name]);
    });
  }
};

TEST(Sweep, the_fastest_is_found_and_compared_with_the_defaults) {
  Fixed fixed{{{"", 2}, {"a", 3}, {"b", 1}, {"c", 5}, {"d", 1.5}, {"e", 4}}};
  const Sweep sweep = fixed.sweep(7);
  EXPECT_EQ(sweep.candidates[sweep.fastest].name(), "NAME=b");
  ASSERT_TRUE(sweep.ratio);
  EXPECT_DOUBLE_EQ(sweep.ratio->median, 0.5);
  EXPECT_EQ(fixed.runs[""], 7u);
  EXPECT_EQ(fixed.runs["c"], 1u);  // left out after the first round
}

TEST(Sweep, where_nothing_is_faster_than_the_defaults_the_ratio_says_so) {
  Fixed fixed{{{"", 1}, {"a", 1.25}, {"b", 2}}};
  const Sweep sweep = fixed.sweep(3);
  ASSERT_TRUE(sweep.ratio);
  EXPECT_DOUBLE_EQ(sweep.ratio->median, 1.25);
}

TEST(Sweep, settings_with_which_the_program_fails_are_left_out) {
  Fixed fixed{{{"", 2}, {"a", -1}, {"b", 1}, {"c", -1}}};
  const Sweep sweep = fixed.sweep(3);
  EXPECT_EQ(sweep.candidates[sweep.fastest].name(), "NAME=b");
  EXPECT_TRUE(sweep.ratio);
  EXPECT_TRUE(sweep.candidates[1].failed);
}

TEST(Sweep, where_all_others_fail_nothing_is_compared) {
  Fixed fixed{{{"", 2}, {"a", -1}, {"b", -1}}};
  const Sweep sweep = fixed.sweep(3);
  EXPECT_EQ(sweep.fastest, 0u);
  EXPECT_FALSE(sweep.ratio);
  EXPECT_TRUE(sweep.candidates.front().seconds.empty());
}

TEST(Sweep, a_fastest_one_that_fails_beside_the_defaults_has_no_ratio) {
  std::size_t runs = 0;
  const Sweep sweep = find_fastest({Candidate(), named("a")}, 5, [&](const Candidate& candidate) {
    return candidate.settings.empty() || ++runs < 3 ? std::optional(1.0) : std::nullopt;
  });
  EXPECT_EQ(sweep.fastest, 1u);
  EXPECT_FALSE(sweep.ratio);
  EXPECT_TRUE(sweep.candidates[1].failed);
  EXPECT_EQ(runs, 3u);
}

/// With time for so many runs; the last one is ended where it would fail.
Sweep sweep_of_runs(std::size_t runs_max, bool last_is_ended) {
  std::size_t runs = 0;
  return find_fastest(
      {Candidate(), named("a"), named("b"), named("c")}, 3,
      [&](const Candidate& candidate) -> std::optional<double> {
        if (++runs == runs_max && last_is_ended) return std::nullopt;
        return candidate.settings.empty() ? 2.0 : candidate.settings[0].value == "b" ? 1.0 : 3.0;
      },
      [&] { return runs < runs_max; });
}

TEST(Sweep, whose_time_is_over_says_so_and_keeps_what_is_known) {
  for (const bool last_is_ended : {false, true}) {
    const Sweep in_rounds = sweep_of_runs(4, last_is_ended), in_pairs = sweep_of_runs(10, last_is_ended);
    EXPECT_TRUE(in_rounds.cut_short);
    EXPECT_FALSE(in_rounds.ratio);
    EXPECT_TRUE(in_pairs.cut_short);
    EXPECT_EQ(in_pairs.candidates[in_pairs.fastest].name(), "NAME=b");
    ASSERT_TRUE(in_pairs.ratio);
    EXPECT_EQ(in_pairs.pairs, last_is_ended ? 1u : 2u);
    for (const Sweep& sweep : {in_rounds, in_pairs}) {
      for (const Candidate& candidate : sweep.candidates) EXPECT_FALSE(candidate.failed);
    }
  }
  EXPECT_FALSE(sweep_of_runs(1000, false).cut_short);
}

TEST(Sweep, it_takes_as_many_runs_as_it_says) {
  for (unsigned count = 1; count < 40; ++count) {
    Fixed fixed{{{"", 1}}};
    for (unsigned i = 0; i < count; ++i) fixed.seconds["c" + std::to_string(i)] = 1 + 0.1 * i;
    fixed.sweep(5);
    std::size_t runs = 0;
    for (const auto& [name, times] : fixed.runs) runs += times;
    EXPECT_EQ(runs, runs_of_sweep(count + 1, 5)) << count;
  }
}

TEST(Sweep, candidates_are_the_defaults_and_buffers_by_threshold_and_topology) {
  EXPECT_EQ(candidates(2).size(), 1u + 5 * 2);
  EXPECT_EQ(candidates(16).size(), 1u + 5 * 2 * 2);
  EXPECT_EQ(candidates(2).front().name(), "the defaults");
  EXPECT_EQ(candidates(2)[1].name(), "HEADWAY_BUFFER_BYTES=1K HEADWAY_TOPOLOGY=1d HEADWAY_THRESHOLD=0.5");
}

}  // namespace
}  // namespace headway::tools
