// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <headway/base/random.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "directory.hpp"
#include "german.hpp"
#include "mcs.hpp"
#include "peterson.hpp"
#include "serial.hpp"
#include "table.hpp"

namespace headway::murphi {
namespace {

template <class Model>
void expect_counts(std::uint64_t states, std::uint64_t rules, std::uint64_t shortest_bug) {
  const Counts found = search_alone(Model(false), 1'000'000);
  EXPECT_EQ(std::pair(found.states, found.rules), std::pair(states, rules));
  EXPECT_EQ(found.violations, 0);
  const Counts wrong = search_alone(Model(true), 1'000'000);
  EXPECT_GT(wrong.violations, 0);
  EXPECT_EQ(wrong.levels, shortest_bug);
}

TEST(Models, have_as_many_states_and_rules_as_published) {
  expect_counts<Peterson<2>>(47, 94, 9);
  expect_counts<Peterson<3>>(882, 2646, 15);
  expect_counts<Peterson<4>>(22281, 89124, 21);
  expect_counts<German<2>>(3381, 9888, 9);
  expect_counts<German<3>>(58077, 235764, 9);
  expect_counts<Mcs<2, true>>(159, 318, 9);
  expect_counts<Mcs<3, true>>(7597, 22791, 9);
  expect_counts<Mcs<2, false>>(1098, 2196, 9);
}

TEST(Models, have_as_many_states_and_rules_as_another_model_checker_found) {
  expect_counts<Directory<2>>(2780, 8036, 9);
}

/// States of which many come again, of a size that is not a multiple of a word.
template <std::size_t bytes>
Packed<bytes> state_at(std::uint64_t number) {
  Packed<bytes> state{};
  std::memcpy(state.data() + bytes - sizeof number, &number, sizeof number);
  return state;
}

TEST(StateTable, keeps_each_state_once_with_its_first_link) {
  constexpr std::size_t bytes = 13;
  StateTable<bytes> table({});
  Arrivals<bytes> arrivals(table);
  std::vector<std::uint64_t> numbers;
  std::unordered_map<std::uint64_t, Link> first;
  const auto added = [&](std::uint64_t index) { EXPECT_LT(index, table.size()); };
  Random random(3);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    const std::uint64_t number = random.below(40'000);
    const Link link{i, std::uint16_t(i % 7), Rule(i % 11)};
    first.try_emplace(number, link);
    arrivals.push(hash_of(state_at<bytes>(number)), state_at<bytes>(number), link, added);
  }
  arrivals.drain(added);
  ASSERT_EQ(table.size(), first.size());
  for (const auto& [number, link] : first) {
    const std::uint32_t index = table.find(hash_of(state_at<bytes>(number)), state_at<bytes>(number));
    ASSERT_NE(index, table.none);
    EXPECT_EQ(table.link(index), link);
    EXPECT_EQ(table.state(index), state_at<bytes>(number));
  }
  EXPECT_EQ(table.find(hash_of(state_at<bytes>(50'000)), state_at<bytes>(50'000)), table.none);
}

TEST(StateTable, keeps_apart_states_of_the_same_hash) {
  StateTable<8> table({});
  for (std::uint64_t number = 0; number < 300; ++number) EXPECT_TRUE(table.insert(7, state_at<8>(number), {}));
  for (std::uint64_t number = 0; number < 300; ++number) EXPECT_FALSE(table.insert(7, state_at<8>(number), {}));
  EXPECT_EQ(table.find(7, state_at<8>(299)), 299);
}

TEST(StateTable, says_what_is_full) {
  StateTable<8> few({.states_max = 2});
  EXPECT_TRUE(few.insert(1, state_at<8>(1), {}));
  EXPECT_TRUE(few.insert(2, state_at<8>(2), {}));
  EXPECT_FALSE(few.insert(1, state_at<8>(1), {}));
  EXPECT_THROW(few.insert(3, state_at<8>(3), {}), SettingError);
  StateTable<8> small({.bytes_max = 1'000'000});
  EXPECT_THROW(
      {
        for (std::uint64_t number = 0; number < 100'000; ++number) {
          small.insert(hash_of(state_at<8>(number)), state_at<8>(number), {});
        }
      },
      SettingError);
  EXPECT_GT(small.size(), 10'000);
  EXPECT_LE(small.bytes_peak(), 1'000'000);
}

TEST(Owners, have_equal_parts) {
  for (const std::size_t pes : {1, 2, 3, 8, 13}) {
    std::vector<std::uint64_t> of(pes);
    for (std::uint64_t number = 0; number < 100'000; ++number) ++of[owner_of(hash_of(state_at<9>(number)), pes)];
    for (const std::uint64_t count : of) EXPECT_NEAR(double(count), 1e5 / double(pes), 2000);
  }
}

}  // namespace
}  // namespace headway::murphi
