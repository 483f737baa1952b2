// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <halo/lists.hpp>
#include <halo/packing.hpp>
#include <halo/values.hpp>
#include <headway/base/error.hpp>
#include <set>

namespace headway::bench {
namespace {

HaloWork work_of(const std::string& name, std::size_t elements = 0) {
  HaloWork work;
  work.name = name;
  work.elements = elements;
  work.complete();
  return work;
}

std::vector<HaloLists> all_lists(const HaloWork& work, std::size_t pes) {
  std::vector<HaloLists> all;
  for (std::size_t me = 0; me < pes; ++me) all.push_back(make_halo_lists(work, me, pes));
  return all;
}

std::vector<HaloWork> small_works() {
  std::vector<HaloWork> works = {work_of("row", 7), work_of("random", 20), work_of("grid27", 3), work_of("blocks", 2),
                                 work_of("particles", 900)};
  works.push_back(work_of("grid27", 4));
  works.back().width = 2;
  works.back().points = 7;
  for (const std::string& application : halo_applications) {
    works.push_back(work_of("recorded"));
    works.back().application = application;
  }
  return works;
}

TEST(HaloLists, every_send_list_has_its_receive_list) {
  for (const HaloWork& work : small_works()) {
    for (const std::size_t pes : {1, 2, 3, 5, 8, 12}) {
      const std::vector<HaloLists> all = all_lists(work, pes);
      std::uint64_t sent = 0, received = 0;
      for (std::size_t me = 0; me < pes; ++me) {
        sent += all[me].sent();
        received += all[me].received();
        EXPECT_TRUE(std::ranges::is_sorted(all[me].sends, {}, &HaloPartner::pe));
        std::set<std::uint64_t> ghosts;
        for (const HaloPartner& from : all[me].receives) {
          const auto& sends = all[from.pe].sends;
          const auto found = std::ranges::find(sends, me, &HaloPartner::pe);
          ASSERT_NE(found, sends.end()) << work.name << " " << pes;
          EXPECT_EQ(found->indices, from.remote) << work.name << " " << pes;
          ASSERT_EQ(from.indices.size(), from.remote.size());
          ghosts.insert(from.indices.begin(), from.indices.end());
        }
        EXPECT_EQ(ghosts.size(), all[me].received()) << "two elements for one ghost: " << work.name;
        for (const HaloPartner& to : all[me].sends) {
          EXPECT_LT(std::ranges::max(to.indices), all[me].owned);
          for (const std::uint64_t index : to.indices) EXPECT_FALSE(ghosts.contains(index)) << work.name;
        }
        EXPECT_TRUE(ghosts.empty() || *ghosts.rbegin() < all[me].elements) << work.name;
      }
      EXPECT_EQ(sent, received) << work.name << " " << pes;
      EXPECT_TRUE(pes == 1 || sent > 0) << work.name;
    }
  }
}

TEST(HaloLists, cases_have_the_expected_numbers_of_elements) {
  EXPECT_EQ(make_halo_lists(work_of("row", 7), 1, 3).received(), 14u);
  EXPECT_EQ(make_halo_lists(work_of("row", 7), 0, 3).received(), 7u);
  EXPECT_EQ(make_halo_lists(work_of("random", 20), 0, 2).received(), 20u);
  EXPECT_EQ(make_halo_lists(work_of("random", 20), 4, 12).received(), 160u);
  EXPECT_EQ(make_halo_lists(work_of("grid27", 10), 3, 8).received(), 12u * 12 * 12 - 1000);
  EXPECT_EQ(make_halo_lists(work_of("grid27", 10), 3, 27).receives.size(), 26u);
  HaloWork star = work_of("grid27", 10);
  star.points = 7;
  star.width = 2;
  EXPECT_EQ(make_halo_lists(star, 3, 8).received(), 6u * 2 * 100);
  EXPECT_EQ(make_halo_lists(work_of("blocks", 2), 0, 2).received(), 64u * (64 - 8));
}

TEST(HaloLists, the_seed_decides_random_plans) {
  HaloWork work = work_of("random", 50);
  const auto first = make_halo_lists(work, 0, 2).sends.at(0).indices;
  EXPECT_EQ(first, make_halo_lists(work, 0, 2).sends.at(0).indices);
  work.seed = 2;
  EXPECT_NE(first, make_halo_lists(work, 0, 2).sends.at(0).indices);
}

class PlanFile : public ::testing::Test {
 protected:
  ~PlanFile() override { std::remove(path_.c_str()); }
  HaloWork with(const std::string& text) const {
    std::ofstream(path_) << text;
    HaloWork work;
    work.plan = path_;
    work.complete();
    return work;
  }

 private:
  std::string path_ = ::testing::TempDir() + "headway_halo_plan_test.txt";
};

TEST_F(PlanFile, lists_are_read) {
  const HaloWork work = with("# example\npes 2\nowned 0 100\nsend 0 1: 5 7-9 3  # five\nsend 1 0: 2\nsend 1 1: 0\n");
  const HaloLists first = make_halo_lists(work, 0, 2), second = make_halo_lists(work, 1, 2);
  EXPECT_EQ(first.owned, 100u);
  EXPECT_EQ(second.owned, 3u);
  ASSERT_EQ(first.sends.size(), 1u);
  EXPECT_EQ(first.sends[0].indices, (std::vector<std::uint64_t>{5, 7, 8, 9, 3}));
  ASSERT_EQ(second.receives.size(), 2u);
  EXPECT_EQ(second.receives[0].indices, (std::vector<std::uint64_t>{3, 4, 5, 6, 7}));
  EXPECT_EQ(second.receives[1].indices, (std::vector<std::uint64_t>{8}));
  EXPECT_THROW(make_halo_lists(work, 0, 3), SettingError);
}

TEST_F(PlanFile, mistakes_are_refused) {
  for (const char* text :
       {"", "send 0 1: 2\n", "pes 0\n", "pes 2\npes 2\n", "pes 2\nsend 0 2: 1\n", "pes 2\nsend 0 1: x\n",
        "pes 2\nsend 0 1: 5-4\n", "pes 2\nowned 0 5\nsend 0 1: 5\n", "pes 2\nrecv 0 1: 5\n"}) {
    EXPECT_THROW(make_halo_lists(with(text), 0, 2), SettingError) << text;
  }
}

using Elements = ::testing::Types<HaloElement<4>, HaloElement<8>, HaloElement<16>, HaloElement<24>, HaloElement<88>>;
template <class T>
class HaloValues : public ::testing::Test {};
TYPED_TEST_SUITE(HaloValues, Elements);

/// Packs and unpacks between the arrays of all PEs: the check accepts that, and reports one changed bit.
TYPED_TEST(HaloValues, a_changed_bit_a_stale_round_and_a_wrong_sender_are_errors) {
  using T = TypeParam;
  const HaloWork work = work_of("particles", 900);
  constexpr std::size_t pes = 4, fields = 2;
  const std::vector<HaloLists> all = all_lists(work, pes);
  std::vector<std::vector<T>> memory;
  std::vector<HaloArrays<T>> arrays(pes);
  memory.reserve(pes * fields);
  for (std::size_t me = 0; me < pes; ++me) {
    for (std::size_t field = 0; field < fields; ++field) {
      memory.emplace_back(all[me].elements);
      arrays[me].emplace_back(memory.back());
    }
    fill_halo(arrays[me], me, 1);
    EXPECT_EQ(count_halo_errors(all[me], arrays[me], 1), fields * all[me].received());
  }
  for (std::size_t me = 0; me < pes; ++me) {
    HandPackedSide<T> sends(all[me].sends, fields);
    for (std::size_t i = 0; i < all[me].sends.size(); ++i) {
      sends.lists[i].pack(arrays[me], sends.of(i));
      const HaloLists& to = all[all[me].sends[i].pe];
      const auto found = std::ranges::find(to.receives, me, &HaloPartner::pe);
      ASSERT_NE(found, to.receives.end());
      HandPackedList(*found, fields).unpack(sends.of(i), arrays[all[me].sends[i].pe]);
    }
  }
  for (std::size_t me = 0; me < pes; ++me) {
    EXPECT_EQ(count_halo_errors(all[me], arrays[me], 1), 0u);
    EXPECT_EQ(count_halo_errors(all[me], arrays[me], 2), fields * all[me].received());
    corrupt_halo(all[me], arrays[me]);
    EXPECT_EQ(count_halo_errors(all[me], arrays[me], 1), 1u);
  }
}

}  // namespace
}  // namespace headway::bench
