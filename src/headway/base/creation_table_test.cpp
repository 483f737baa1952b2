// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/creation_table.hpp>
#include <headway/base/random.hpp>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace headway::base {
namespace {

TEST(CreationTable, a_number_counts_the_things_made_before_and_is_never_used_again) {
  CreationTable<int> table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_FALSE(table.was_made(0));
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    ASSERT_EQ(table.find(i), nullptr);
    ASSERT_EQ(table.add(int(i)), i);
    ASSERT_EQ(*table.find(i), int(i)) << "though it was looked for before it was made";
    table.remove(i);
    ASSERT_EQ(table.find(i), nullptr);
    ASSERT_TRUE(table.was_made(i));
  }
  EXPECT_EQ(table.find(CreationTable<int>::no_number), nullptr);
  EXPECT_FALSE(table.was_made(200'000));
}

TEST(CreationTable, numbers_that_are_equal_in_their_low_bits_are_told_apart) {
  CreationTable<int> table;
  const std::uint32_t first = table.add(-1);
  for (int i = 0; i < 70'000; ++i) table.remove(table.add(i));
  std::vector<std::uint32_t> later;
  for (int i = 0; i < 1'000; ++i) later.push_back(table.add(i));
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(*table.find(later[std::size_t(i)]), i);
    EXPECT_EQ(*table.find(first), -1);
  }
}

TEST(CreationTable, is_as_a_map_whatever_is_added_and_removed) {
  CreationTable<std::unique_ptr<std::uint32_t>> table;
  std::map<std::uint32_t, const void*> there;
  Random random(1);
  std::uint32_t made = 0;
  for (int step = 0; step < 100'000; ++step) {
    if (there.size() < 200 && random.one_in(2)) {
      const std::uint32_t number = table.add(std::make_unique<std::uint32_t>(made));
      ASSERT_EQ(number, made++);
      there[number] = table.find(number);
    } else if (!there.empty()) {
      const auto one = std::next(there.begin(), std::ptrdiff_t(random.below(there.size())));
      table.remove(one->first);
      there.erase(one);
    }
    const auto number = std::uint32_t(random.below(made + 10));
    const auto expected = there.find(number);
    ASSERT_EQ(table.find(number), expected == there.end() ? nullptr : expected->second) << "it stays where it was";
    ASSERT_EQ(std::as_const(table).find(number), table.find(number));
    if (step % 1'000 != 0) continue;
    std::vector<std::uint32_t> numbers, expected_numbers;
    table.for_each([&](std::uint32_t n, const auto& thing) {
      ASSERT_EQ(*thing, n);
      numbers.push_back(n);
    });
    for (const auto& [n, at] : there) expected_numbers.push_back(n);
    ASSERT_EQ(numbers, expected_numbers);
  }
}

TEST(CreationTable, visits_what_is_added_meanwhile) {
  CreationTable<int> table;
  table.add(3);
  std::vector<int> seen;
  table.for_each([&](std::uint32_t, int& value) {
    seen.push_back(value);
    if (value > 0) table.add(value - 1);
  });
  EXPECT_EQ(seen, (std::vector{3, 2, 1, 0}));
}

}  // namespace
}  // namespace headway::base
