// SPDX-License-Identifier: BSD-3-Clause
/// all_gather, scatter, all_to_all and reduce_scatter, and both forms of each collective, compared with a serial
/// program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/collective/exchange.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;

using Block = std::vector<std::uint32_t>;

constexpr Shape sizes[] = {
    {1, 1},
    {2, 1},
    {3, 1},
    {5, 2},
    {8, 8},
#if defined(HEADWAY_SIM) && !defined(__SANITIZE_THREAD__)
    {1, 1, "jitter=3"},
    {2, 2, "delay=30us,jitter=3"},
    {3, 3, "jitter=3,refuse=0.1"},
    {5, 5, "delay=30us,jitter=3,inbox=16,per-process=2"},
    {8, 8, "jitter=3,per-process=3"},
#endif
};

/// `longest` elements at most; some blocks are empty.
Block block_of(std::size_t from, std::size_t to, std::size_t longest) {
  Block block((from * 5 + to * 3) % 4 == 0 ? 0 : longest - (from + 2 * to) % (longest + 1));
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = std::uint32_t(from * 1'000'000 + to * 10'000 + i);
  return block;
}

std::string text_of(std::size_t from, std::size_t to) { return std::string(from + to, char('a' + from % 26)); }

/// All PEs, and a team of every second one in descending order where this PE is a member.
template <class Body>
void on_teams(Pe& pe, Body body) {
  body(Team(pe));
  std::vector<std::size_t> list;
  for (std::size_t p = pe.size(); p-- > 0;) {
    if (p % 2 == pe.id() % 2) list.push_back(p);
  }
  body(Team(pe, list));
}

constexpr std::size_t lengths[] = {0, 1, 7, 30'000};  // the last: blocks of several segments

TEST(AllGather, gives_each_the_blocks_of_all) {
  for (const Shape shape : sizes) {
    expect_run(shape, [](Pe& pe) {
      on_teams(pe, [](const Team& team) {
        for (const std::size_t longest : lengths) {
          const Block own = block_of(team.rank(), 0, longest);
          const std::vector<Block> all = all_gather(team, std::span(own));
          ASSERT_EQ(all.size(), team.size());
          for (std::size_t r = 0; r < all.size(); ++r) ASSERT_EQ(all[r], block_of(r, 0, longest));
        }
        const std::vector<std::string> texts = all_gather(team, text_of(team.rank(), 1));
        for (std::size_t r = 0; r < team.size(); ++r) ASSERT_EQ(texts.at(r), text_of(r, 1));
        const std::vector<int> ranks = all_gather_async(team, int(team.rank())).get();
        for (std::size_t r = 0; r < team.size(); ++r) ASSERT_EQ(ranks.at(r), int(r));
      });
    });
  }
}

TEST(Scatter, gives_each_its_block_of_the_root) {
  for (const Shape shape : sizes) {
    expect_run(shape, [](Pe& pe) {
      on_teams(pe, [](const Team& team) {
        const std::size_t n = team.size();
        for (std::size_t root = 0; root < n; root += 1 + n / 3) {
          const bool is_root = team.rank() == root;
          for (const std::size_t longest : lengths) {
            std::vector<Block> blocks;
            for (std::size_t r = 0; is_root && r < n; ++r) blocks.push_back(block_of(root, r, longest));
            ASSERT_EQ(scatter(team, blocks, root), block_of(root, team.rank(), longest));
            Block equal(is_root ? n * longest : 0);
            std::iota(equal.begin(), equal.end(), 0);
            Future<Block> own = scatter_async(team, std::span(equal), root);
            std::ranges::fill(equal, 7);  // the call has copied its argument
            const Block got = own.get();
            ASSERT_EQ(got.size(), longest);
            for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], team.rank() * longest + i);
          }
          std::vector<std::string> texts;
          for (std::size_t r = 0; is_root && r < n; ++r) texts.push_back(text_of(root, r));
          ASSERT_EQ(scatter(team, texts, root), text_of(root, team.rank()));
        }
      });
    });
  }
}

TEST(AllToAll, gives_each_its_block_of_each_whatever_their_lengths) {
  for (const Shape shape : sizes) {
    expect_run(shape, [](Pe& pe) {
      on_teams(pe, [](const Team& team) {
        const std::size_t n = team.size();
        for (const std::size_t longest : lengths) {
          std::vector<Block> own(n);
          for (std::size_t r = 0; r < n; ++r) own[r] = block_of(team.rank(), r, longest);
          const std::vector<Block> got = all_to_all(team, own);
          ASSERT_EQ(got.size(), n);
          for (std::size_t r = 0; r < n; ++r) ASSERT_EQ(got[r], block_of(r, team.rank(), longest));
        }
        std::vector<std::string> texts(n);
        for (std::size_t r = 0; r < n; ++r) texts[r] = text_of(team.rank(), r);
        const std::vector<std::string> got = all_to_all_async(team, texts).get();
        for (std::size_t r = 0; r < n; ++r) ASSERT_EQ(got.at(r), text_of(r, team.rank()));
      });
    });
  }
}

TEST(ReduceScatter, gives_each_its_block_of_the_reduction) {
  for (const Shape shape : sizes) {
    expect_run(shape, [](Pe& pe) {
      on_teams(pe, [](const Team& team) {
        const std::size_t n = team.size(), rank = team.rank();
        for (const std::size_t longest : lengths) {
          // Unsigned sums wrap. block_of(0, to) has the length of all blocks for `to`.
          const auto given = [&](std::size_t from, std::size_t to) {
            Block block = block_of(0, to, longest);
            for (std::uint32_t& element : block) element = element * 7 + std::uint32_t(from * from);
            return block;
          };
          std::vector<Block> own(n);
          for (std::size_t r = 0; r < n; ++r) own[r] = given(rank, r);
          Block expected = given(0, rank);
          for (std::size_t r = 1; r < n; ++r) {
            const Block other = given(r, rank);
            std::ranges::transform(expected, other, expected.begin(), std::plus<>());
          }
          ASSERT_EQ(reduce_scatter(team, own, std::plus<>()), expected);
          Block equal(n * longest, std::uint32_t(rank + 1));
          const Block sums = reduce_scatter_async(team, std::span(equal), std::plus<>()).get();
          ASSERT_EQ(sums, Block(longest, std::uint32_t(n * (n + 1) / 2)));
        }
        // Texts do not commute: the order is that of ranks.
        std::vector<std::string> texts(n);
        for (std::size_t r = 0; r < n; ++r) texts[r] = text_of(rank, r);
        std::string expected;
        for (std::size_t r = 0; r < n; ++r) expected += text_of(r, rank);
        const auto join = [](const std::string& a, const std::string& b) { return a + b; };
        ASSERT_EQ(reduce_scatter(team, texts, join), expected);
      });
    });
  }
}

TEST(Collectives, have_a_blocking_form_over_teams_and_for_all_values) {
  for (const Shape shape : sizes) {
    expect_run(shape, [](Pe& pe) {
      on_teams(pe, [](const Team& team) {
        const std::size_t n = team.size(), rank = team.rank(), sum = n * (n - 1) / 2;
        barrier(team);
        ASSERT_EQ(allreduce(team, rank, std::plus<>()), sum);
        std::vector<std::size_t> own{rank, 1};
        ASSERT_EQ(allreduce(team, std::span(own), std::plus<>(), {.ordered = true}),
                  (std::vector<std::size_t>{sum, n}));
        ASSERT_EQ(reduce(team, rank, std::plus<>(), n - 1), rank == n - 1 ? std::optional(sum) : std::nullopt);
        ASSERT_EQ(broadcast(team, std::string(rank, 'x'), n - 1), std::string(n - 1, 'x'));
        ASSERT_EQ(scan(team, rank, std::plus<>()), rank * (rank + 1) / 2);
        reduce_in_place(team, std::span(own), std::plus<>(), 0);
        if (rank == 0) {
          ASSERT_EQ(own[1], n);
        }
      });
      // All PEs: short values by boards or control messages, others by messages.
      const auto join = [](const std::string& a, const std::string& b) { return a + b; };
      ASSERT_EQ(allreduce(pe, std::string("ab"), join).size(), 2 * pe.size());
      const std::size_t own = pe.id() + 1;
      ASSERT_EQ(allreduce(pe, own, std::plus<>(), {.ordered = true}), pe.size() * (pe.size() + 1) / 2);
      ASSERT_EQ(allreduce(pe, std::span(&own, 1), std::plus<>()).at(0), pe.size() * (pe.size() + 1) / 2);
      barrier(pe);
    });
  }
}

TEST(BlockErrors, name_the_pe_and_both_lengths) {
  expect_run({3, 1}, [](Pe& pe) {
    const std::string on = "on PE " + std::to_string(pe.id().value) + ": ";
    const std::vector<int> four(4);
    expect_usage_error([&] { static_cast<void>(all_to_all(pe, std::span(four))); },
                       "all_to_all() " + on + "4 elements cannot be cut into 3 blocks of equal length");
    expect_usage_error([&] { static_cast<void>(reduce_scatter(pe, std::span(four), std::plus<>())); },
                       "reduce_scatter() " + on + "4 elements cannot be cut into 3 blocks of equal length");
    expect_usage_error([&] { static_cast<void>(all_to_all(pe, four)); },
                       "all_to_all() " + on + "4 blocks given, expected 3, one for each member of all PEs");
    expect_usage_error([&] { static_cast<void>(reduce_scatter(pe, std::vector<Block>(2), std::plus<>())); },
                       "reduce_scatter() " + on + "2 blocks given, expected 3");
    if (pe.id() == 1) {
      expect_usage_error([&] { static_cast<void>(scatter(pe, four, 1)); },
                         "scatter() " + on + "4 blocks given, expected 3");
    }
    pe.quiesce();
  });
}

TEST(BlockErrors, a_reduced_block_of_another_length_ends_the_run) {
  const Outcome outcome = catch_run({3, 1}, [](Pe& pe) {
    std::vector<Block> own(3, Block(5));
    if (pe.id() == 2) own[0].resize(4);
    static_cast<void>(reduce_scatter(pe, own, std::plus<>()));
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("PE 2 gave 4 elements for PE 0, expected 5 as PE 0 gave"), std::string::npos)
      << outcome.text;
}

TEST(BlockErrors, blocking_forms_are_refused_in_handlers_before_they_start) {
  expect_run({2, 1}, [](Pe& pe) {
    Aggregator<int> messages(pe);
    messages.on([&](int) {
      const int one = 1;
      expect_usage_error([&] { static_cast<void>(all_gather(pe, one)); }, "handler");
      expect_usage_error([&] { static_cast<void>(reduce(pe, one, std::plus<>(), 0)); }, "handler");
      expect_usage_error([&] { barrier(Team(pe)); }, "handler");
    });
    messages.send(1 - pe.id(), 1);
    pe.quiesce();
  });
}

}  // namespace
}  // namespace headway
