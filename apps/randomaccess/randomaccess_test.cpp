// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <randomaccess/sequence.hpp>
#include <randomaccess/table.hpp>
#include <vector>

namespace headway::randomaccess {
namespace {

TEST(Sequence, starts_where_stepping_arrives) {
  std::uint64_t a = 1;
  for (std::uint64_t n = 0; n < 3000; ++n, a = step(a)) ASSERT_EQ(starts(n), a) << "n = " << n;
}

TEST(Sequence, distant_offsets_agree_with_their_parts) {
  for (const std::uint64_t n : {1ull << 40, (1ull << 53) + 12345, 0xfedcba9876543210ull}) {
    EXPECT_EQ(starts(n), multiply(starts(n / 2), starts(n - n / 2)));
    EXPECT_EQ(starts(n + 1), step(starts(n)));
  }
}

TEST(Sequence, returns_to_its_start_after_its_period) {
  EXPECT_EQ(starts(1317624576693539401ull), 1u);  // PERIOD of HPCC's RandomAccess.h
}

TEST(Share, parts_are_disjoint_and_complete) {
  for (const std::uint64_t pes : {1, 2, 3, 5, 7, 64}) {
    for (const std::uint64_t updates : {0, 1, 63, 64, 1000}) {
      std::uint64_t next = 0;
      for (std::uint64_t pe = 0; pe < pes; ++pe) {
        const Share share = share_of(updates, pe, pes);
        EXPECT_EQ(share.begin, next);
        next = share.end;
      }
      EXPECT_EQ(next, updates);
    }
  }
}

TEST(Blocks, every_word_has_one_owner_and_one_slot) {
  for (const unsigned log2 : {1u, 3u, 10u}) {
    for (const std::size_t pes : {1, 2, 3, 5, 7, 8, 13, 16, 64}) {
      const std::uint64_t words = 1ull << log2;
      std::vector<int> owned(words, 0);
      for (std::size_t me = 0; me < pes; ++me) {
        with_blocks(log2, pes, me, [&](const auto& blocks) {
          const std::size_t begin = blocks.begin(me), end = blocks.begin(me + 1);
          for (std::uint64_t word = 0; word < words; ++word) {
            const std::uint64_t a = word | 0xabcd000000000000ull;  // the high bits of an update do not count
            EXPECT_LT(blocks.owner(a), pes);
            if (blocks.owner(a) != me) continue;
            ++owned[word];
            EXPECT_EQ(begin + blocks.slot(a), word);
            EXPECT_LT(begin + blocks.slot(a), end);
          }
        });
      }
      EXPECT_EQ(owned, std::vector<int>(words, 1)) << words << " words on " << pes << " PEs";
    }
  }
}

TEST(Table, a_replay_undoes_a_complete_run_and_finds_a_lost_update) {
  constexpr unsigned log2 = 8;
  constexpr std::uint64_t updates = 4 << log2;
  const AnyBlocks blocks(log2, 3, 1);
  for (const bool lose_one : {false, true}) {
    Table table(blocks, 1);
    std::uint64_t a = starts(0);
    bool lost = !lose_one;
    for (std::uint64_t j = 0; j < updates; ++j) {
      a = step(a);
      if (blocks.owner(a) != 1) continue;
      if (lost) table.data()[blocks.slot(a)] ^= a;
      lost = true;
    }
    EXPECT_EQ(table.undo_and_count_errors(blocks, 1, updates), lose_one ? 1u : 0u);
  }
}

}  // namespace
}  // namespace headway::randomaccess
