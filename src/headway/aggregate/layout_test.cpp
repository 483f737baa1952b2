// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <headway/aggregate/layout.hpp>
#include <vector>

namespace headway {
namespace {

template <class T>
class Layout : public ::testing::Test {};
using Layouts = ::testing::Types<Block, Cyclic>;
TYPED_TEST_SUITE(Layout, Layouts, );

constexpr std::size_t sizes[] = {0, 1, 2, 3, 7, 8, 12, 13, 64, 100, 1000};
constexpr std::size_t pe_counts[] = {1, 2, 3, 5, 8, 13, 64, 101};

TYPED_TEST(Layout, every_index_has_one_owner_and_one_place_there) {
  for (const std::size_t n : sizes) {
    for (const std::size_t pes : pe_counts) {
      const TypeParam layout(n, pes);
      std::vector<std::vector<int>> taken(pes);
      for (std::size_t pe = 0; pe < pes; ++pe) taken[pe].resize(layout.count(pe));
      for (std::size_t global = 0; global < n; ++global) {
        const PeId owner = layout.owner(global);
        const std::size_t local = layout.local(global);
        ASSERT_LT(owner.value, pes) << "index " << global << " of " << n << " over " << pes;
        ASSERT_LT(local, layout.count(owner)) << "index " << global << " of " << n << " over " << pes;
        EXPECT_EQ(layout.global(owner, local), global);
        ++taken[owner][local];
      }
      for (const std::vector<int>& places : taken) {
        EXPECT_TRUE(std::ranges::all_of(places, [](int times) { return times == 1; }));
      }
    }
  }
}

TYPED_TEST(Layout, shares_differ_by_at_most_one_and_lower_pes_have_the_larger) {
  for (const std::size_t n : sizes) {
    for (const std::size_t pes : pe_counts) {
      const TypeParam layout(n, pes);
      std::size_t sum = 0;
      for (std::size_t pe = 0; pe < pes; ++pe) {
        sum += layout.count(pe);
        EXPECT_LE(layout.count(0) - layout.count(pe), 1u);
        EXPECT_GE(layout.count(pe == 0 ? 0 : pe - 1), layout.count(pe));
      }
      EXPECT_EQ(sum, n);
    }
  }
}

TYPED_TEST(Layout, indices_near_the_top_of_the_type_do_not_overflow) {
  const std::size_t n = std::size_t(1) << 62;
  const TypeParam layout(n, 7);
  for (const std::size_t global : {std::size_t(0), n / 7, n / 2, n - 2, n - 1}) {
    const PeId owner = layout.owner(global);
    EXPECT_LT(owner.value, 7u);
    EXPECT_EQ(layout.global(owner, layout.local(global)), global);
  }
}

TEST(Block, a_pe_owns_consecutive_indices_from_its_first) {
  for (const std::size_t n : sizes) {
    for (const std::size_t pes : pe_counts) {
      const Block block(n, pes);
      std::size_t next = 0;
      for (std::size_t pe = 0; pe < pes; ++pe) {
        EXPECT_EQ(block.first(pe), next);
        for (std::size_t local = 0; local < block.count(pe); ++local, ++next) {
          EXPECT_EQ(block.owner(next).value, pe);
          EXPECT_EQ(block.local(next), local);
        }
      }
    }
  }
}

TEST(Cyclic, neighbours_lie_on_neighbouring_pes) {
  const Cyclic cyclic(100, 7);
  for (std::size_t global = 0; global < 100; ++global) EXPECT_EQ(cyclic.owner(global).value, global % 7);
}

}  // namespace
}  // namespace headway
