// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <headway/rma/fastest_path.hpp>

namespace headway::rma {
namespace {

constexpr unsigned all = 0b111;
constexpr std::uint64_t large = 4'000'000;  // which is tried three times

/// Makes transfers with paths that take `ns`, and counts the picks of each path.
template <std::size_t paths>
std::array<int, paths> pick(FastestPath<paths>& fastest, std::uint64_t bytes, unsigned possible,
                            const std::array<std::int64_t, paths>& ns, int transfers) {
  std::array<int, paths> picked{};
  for (int i = 0; i < transfers; ++i) {
    const auto [path, timed] = fastest.pick(bytes, possible);
    EXPECT_LT(path, paths);
    ++picked[path];
    if (timed) fastest.learn(path, bytes, ns[path]);
  }
  return picked;
}

TEST(FastestPath, tries_each_three_times_and_stays_with_the_fastest) {
  FastestPath<3> fastest;
  EXPECT_EQ((pick<3>(fastest, large, all, {300, 100, 200}, 9)), (std::array{3, 3, 3}));
  const auto picked = pick<3>(fastest, large, all, {300, 100, 200}, 640);
  EXPECT_GE(picked[1], 610);
  EXPECT_GE(picked[0], 1) << "now and then another";
  EXPECT_GE(picked[2], 1);
}

TEST(FastestPath, tries_short_transfers_until_they_have_moved_8_MiB_at_most_64_times) {
  FastestPath<2> fastest;
  EXPECT_EQ((pick<2>(fastest, 1 << 20, 0b11, {100, 200}, 16)), (std::array{8, 8}));
  EXPECT_EQ((pick<2>(fastest, 256 << 10, 0b11, {100, 200}, 64)), (std::array{32, 32}));
  EXPECT_EQ((pick<2>(fastest, 8, 0b11, {100, 200}, 128)), (std::array{64, 64}));
  EXPECT_EQ((pick<2>(fastest, 0, 0b11, {100, 200}, 128)), (std::array{64, 64}));
}

TEST(FastestPath, no_path_pays_for_all_new_pages_nor_for_caches_that_another_path_left) {
  FastestPath<3> fastest;
  std::size_t last = 3;
  for (int i = 0; i < 9; ++i) {
    const std::size_t path = fastest.pick(large, all).path;
    EXPECT_TRUE(i >= 3 || path == std::size_t(i));
    // Touched for the first time, after another, by itself.
    fastest.learn(path, large, (i < 3 ? 1000 : path != last ? 500 : 100) + 10 * std::int64_t(path));
    last = path;
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fastest.pick(large, all).path, 0u);
}

TEST(FastestPath, a_path_whose_trials_took_too_long_is_picked_soon) {
  FastestPath<2> fastest;
  const std::array<std::int64_t, 2> at_first = {190, 110};  // the first, while memory is touched for the first time
  pick<2>(fastest, large, 0b11, at_first, 6);
  EXPECT_GE((pick<2>(fastest, large, 0b11, {60, 100}, 16)[0]), 12);
}

TEST(FastestPath, a_path_is_tested_twice_in_a_row) {
  FastestPath<2> fastest;
  pick<2>(fastest, large, 0b11, {100, 110}, 6);
  std::size_t last = 0, pairs = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t path = fastest.pick(large, 0b11).path;
    fastest.learn(path, large, path == 0 ? 100 : last == path ? 90 : 150);
    pairs += path == 1 && last == 1;
    last = path;
  }
  EXPECT_GT(pairs, 900u) << "faster after itself";
}

TEST(FastestPath, asks_for_the_time_of_each_large_transfer_and_of_each_eighth_short_one) {
  FastestPath<2> fastest;
  const auto timed = [&fastest](std::uint64_t bytes, int picks) {
    int count = 0;
    for (int i = 0; i < picks; ++i) {
      const auto pick = fastest.pick(bytes, 0b11);
      count += pick.timed;
      if (pick.timed) fastest.learn(pick.path, bytes, 100);
    }
    return count;
  };
  EXPECT_EQ(timed(large, 100), 100);
  EXPECT_EQ(timed(8192, 128), 128) << "all that are tried";
  timed(8192, 64);
  EXPECT_EQ(timed(8192, 64), 9) << "each eighth, and the second of two looks at the other";
}

TEST(FastestPath, picks_another_path_for_short_transfers_too) {
  FastestPath<2> fastest;
  pick<2>(fastest, 8192, 0b11, {100, 200}, 300);
  EXPECT_GT((pick<2>(fastest, 8192, 0b11, {400, 200}, 1000)[1]), 700);
}

TEST(FastestPath, never_picks_an_impossible_path) {
  FastestPath<3> fastest;
  const auto picked = pick<3>(fastest, large, 0b101, {300, 1, 200}, 1000);
  EXPECT_EQ(picked[1], 0);
  EXPECT_GT(picked[2], 900);
  EXPECT_EQ(pick<3>(fastest, large, 0b001, {300, 1, 200}, 200)[0], 200) << "there is no choice";
}

TEST(FastestPath, picks_another_path_when_the_times_change) {
  FastestPath<2> fastest;
  EXPECT_GT((pick<2>(fastest, large, 0b11, {100, 200}, 300)[0]), 280);
  // The time of a used path rises by at most a twentieth with each use: it doubles in 15 uses.
  EXPECT_GT((pick<2>(fastest, large, 0b11, {400, 200}, 300)[1]), 250);
  // An unused path is tested once in 64 transfers.
  EXPECT_GT((pick<2>(fastest, large, 0b11, {50, 200}, 300)[0]), 200);
}

TEST(FastestPath, one_interruption_changes_nothing) {
  FastestPath<2> fastest;
  pick<2>(fastest, large, 0b11, {100, 200}, 63);
  fastest.learn(0, large, 1'000'000);
  EXPECT_GE((pick<2>(fastest, large, 0b11, {100, 200}, 32)[0]), 30) << "but for the looks at the other";
}

TEST(FastestPath, a_much_slower_path_is_tested_less_often) {
  FastestPath<3> fastest;
  const std::array<std::int64_t, 3> ns = {100, 300, 900};
  pick<3>(fastest, large, all, ns, 9);
  const auto soon = pick<3>(fastest, large, all, ns, 100);
  EXPECT_EQ(soon[0], 100) << "and not at all soon after the beginning";
  const auto picked = pick<3>(fastest, large, all, ns, 64 * 64);
  EXPECT_GE(picked[1], 20);
  EXPECT_LE(picked[1], 32) << "costs two transfers in 128";
  EXPECT_GE(picked[2], 5);
  EXPECT_LE(picked[2], 8) << "costs eight in 512";
  // A seldom tested path is used when it has become faster.
  EXPECT_GT((pick<3>(fastest, large, all, {100, 300, 50}, 5000)[2]), 3500);
}

TEST(FastestPath, sizes_learn_by_themselves) {
  FastestPath<2> fastest;
  EXPECT_GT((pick<2>(fastest, large, 0b11, {100, 200}, 200)[0]), 185);
  EXPECT_GT((pick<2>(fastest, 2 * large, 0b11, {200, 100}, 200)[1]), 185);
  EXPECT_GT((pick<2>(fastest, large, 0b11, {100, 200}, 50)[0]), 45);
  EXPECT_GT((pick<2>(fastest, 0, 0b11, {100, 200}, 300)[0]), 220) << "nothing, too, is a size";
  EXPECT_GT((pick<2>(fastest, ~std::uint64_t(0), 0b11, {100, 200}, 50)[0]), 40);
}

TEST(FastestPath, of_many_concurrent_transfers_only_three_of_a_path_are_trials) {
  FastestPath<2> fastest;
  std::array<int, 2> picked{};
  for (int i = 0; i < 40; ++i) ++picked[fastest.pick(large, 0b11).path];
  EXPECT_GE(picked[0], 25);
  EXPECT_LE(picked[1], 3 + 2 * 5);
}

}  // namespace
}  // namespace headway::rma
