// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/random.hpp>
#include <headway/transfer/numbered_table.hpp>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace headway::transfer {
namespace {

using Table = NumberedTable<std::unique_ptr<int>>;

TEST(NumberedTable, finds_only_objects_in_the_table) {
  Table table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_FALSE(table.is_gone(0)) << "it never was";
  const std::uint64_t one = table.add(std::make_unique<int>(1)), two = table.add(std::make_unique<int>(2));
  EXPECT_NE(one, two);
  EXPECT_EQ(**table.find(one), 1);
  EXPECT_EQ(**table.find(two), 2);
  EXPECT_FALSE(table.is_gone(one));
  EXPECT_EQ(table.find(two + 1), nullptr);
  EXPECT_EQ(table.find(one + (std::uint64_t(1) << 32)), nullptr) << "a later use of its place";
  EXPECT_EQ(table.find(~std::uint64_t(0)), nullptr);
  EXPECT_FALSE(table.is_gone(~std::uint64_t(0)));
}

TEST(NumberedTable, the_number_of_a_removed_object_stays_invalid) {
  Table table;
  std::set<std::uint64_t> gone;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t number = table.add(std::make_unique<int>(i));
    EXPECT_FALSE(gone.contains(number));
    EXPECT_EQ(*table.take(number), i);
    gone.insert(number);
  }
  const std::uint64_t last = table.add(std::make_unique<int>(-1));
  for (const std::uint64_t number : gone) {
    EXPECT_EQ(table.find(number), nullptr);
    EXPECT_TRUE(table.is_gone(number));
  }
  EXPECT_EQ(**table.find(last), -1);
  EXPECT_LT(std::uint32_t(last), 1u) << "one place has served them all";
}

TEST(NumberedTable, objects_do_not_move) {
  NumberedTable<int> table;
  const std::uint64_t first = table.add(7);
  const int* const at = table.find(first);
  for (int i = 0; i < 10'000; ++i) table.add(i);
  EXPECT_EQ(table.find(first), at);
  EXPECT_EQ(*at, 7);
}

TEST(NumberedTable, is_as_a_map_of_all_that_was_ever_added) {
  NumberedTable<std::uint64_t> table;
  std::map<std::uint64_t, std::uint64_t> there;
  std::vector<std::uint64_t> all;
  Random random(5);
  for (int i = 0; i < 5000; ++i) {
    const std::uint64_t draw = random.next();
    if (there.empty() || draw % 5 < 3) {
      const std::uint64_t number = table.add(draw);
      EXPECT_TRUE(there.emplace(number, draw).second);
      all.push_back(number);
    } else {
      const auto one = there.lower_bound(draw % 3 == 0 ? 0 : all[draw % all.size()]);
      const auto taken = one == there.end() ? there.begin() : one;
      EXPECT_EQ(table.take(taken->first), taken->second);
      there.erase(taken);
    }
    const std::uint64_t any = all[random.next() % all.size()];
    const auto known = there.find(any);
    const std::uint64_t* const found = table.find(any);
    ASSERT_EQ(found != nullptr, known != there.end());
    if (found != nullptr) {
      EXPECT_EQ(*found, known->second);
    }
    EXPECT_EQ(table.is_gone(any), known == there.end());
  }
}

}  // namespace
}  // namespace headway::transfer
