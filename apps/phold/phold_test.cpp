// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "simulation.hpp"

namespace headway::phold {
namespace {

TEST(Phold, events_are_handled_in_the_order_of_their_times) {
  State state(Options{.events = 50, .seed = 3}, 0);
  const Options options{.processes = 4, .events = 50, .seed = 3};
  double before = 0;
  for (int i = 0; i < 50; ++i) {
    const double time = state.next_time();
    EXPECT_GE(time, before);
    const Next next = state.handle(options, 0);
    EXPECT_GE(next.when.time, time + options.lookahead);
    EXPECT_LT(next.destination, 4u);
    EXPECT_LE(next.words, 16u);
    before = time;
  }
  EXPECT_EQ(state.next_time(), never);
  EXPECT_EQ(state.handled(), 50u);
  EXPECT_EQ(state.errors(), 0u);
}

TEST(Phold, of_events_at_the_same_time_the_lower_source_is_first_whoever_comes_first) {
  const auto checksum = [](std::vector<When> order) {
    State state;
    for (const When& when : order) state.add({when, {word_of(when, 0)}});
    while (state.next_time() != never) state.handle({.processes = 1}, 0);
    EXPECT_EQ(state.errors(), 0u);
    return state.checksum();
  };
  const When a{1, 2, 7}, b{1, 3, 1}, c{1, 3, 2};
  EXPECT_EQ(checksum({a, b, c}), checksum({c, b, a}));
  EXPECT_NE(checksum({a, b, c}), checksum({a, b}));
}

TEST(Phold, content_that_is_not_what_was_made_is_an_error) {
  State state;
  const When when{1, 2, 3};
  state.add({when, {word_of(when, 0), word_of(when, 1) ^ 1}});
  state.handle({.processes = 1}, 0);
  EXPECT_EQ(state.errors(), 1u);
}

TEST(Phold, events_are_conserved_and_another_seed_is_another_simulation) {
  const Options options{.processes = 30, .events = 4, .end_time = 12, .seed = 5};
  const Outcome outcome = simulate(options);
  EXPECT_EQ(outcome.waiting, 120u);
  EXPECT_EQ(outcome.errors, 0u);
  EXPECT_GT(outcome.handled, 120u * 4);
  EXPECT_EQ(outcome, simulate(options));
  Options other = options;
  other.seed = 6;
  EXPECT_NE(outcome.checksum, simulate(other).checksum);
}

}  // namespace
}  // namespace headway::phold
