// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <sorting/keys.hpp>
#include <sorting/local_sort.hpp>
#include <sorting/splitters.hpp>
#include <vector>

namespace headway::sorting {
namespace {

std::vector<Key> keys_of(const Input& input) {
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i != input.keys; ++i) keys.push_back(input.key(i));
  return keys;
}

TEST(Input, keys_stay_below_their_limit_and_reach_all_of_it) {
  for (const std::uint64_t distinct : {1u, 2u, 7u}) {
    const std::vector<Key> keys = keys_of({.keys = 500, .distinct = distinct});
    EXPECT_EQ(*std::ranges::max_element(keys), distinct - 1);
    EXPECT_EQ(*std::ranges::min_element(keys), 0u);
  }
  const std::vector<Key> keys = keys_of({.keys = 1000});
  EXPECT_GT(*std::ranges::max_element(keys), 0xf0000000u);
  EXPECT_NE(keys, keys_of({.keys = 1000, .seed = 2}));
}

TEST(Blocks, every_place_has_one_owner_in_the_order_of_pes) {
  for (const std::uint64_t keys : {1u, 2u, 5u, 16u, 1000u}) {
    for (const std::size_t pes : {1u, 2u, 3u, 5u, 8u, 16u, 64u}) {
      const Blocks blocks(keys, pes);
      std::uint64_t place = 0;
      for (std::size_t pe = 0; pe != pes; ++pe) {
        EXPECT_EQ(blocks.first(pe), place);
        for (std::uint64_t i = 0; i != blocks.count(pe); ++i) EXPECT_EQ(blocks.owner(place++), pe);
      }
      EXPECT_EQ(place, keys);
    }
  }
}

TEST(Blocks, owners_of_the_largest_places_are_exact) {
  for (const std::size_t pes : {1u, 2u, 3u, 7u, 1000u, 4096u}) {
    const Blocks blocks(keys_max, pes);
    for (std::size_t pe = 0; pe != pes; ++pe) {
      if (blocks.count(pe) == 0) continue;
      EXPECT_EQ(blocks.owner(blocks.first(pe)), pe);
      EXPECT_EQ(blocks.owner(blocks.first(pe + 1) - 1), pe);
    }
  }
}

TEST(Digest, finds_a_key_that_is_lost_doubled_or_changed) {
  const std::vector<Key> keys = keys_of({.keys = 100});
  const auto digest_of = [](const std::vector<Key>& all) {
    Digest digest;
    for (const Key key : all) digest.add(key);
    return digest;
  };
  const Digest all = digest_of(keys);
  std::vector<Key> other(keys.rbegin(), keys.rend());
  EXPECT_EQ(digest_of(other), all);
  other[3] = other[4];
  EXPECT_NE(digest_of(other), all);
  other = keys;
  ++other[0], --other[1];  // the same sum
  EXPECT_NE(digest_of(other), all);
  other = keys;
  other.pop_back();
  EXPECT_NE(digest_of(other), all);
}

TEST(Groups, every_item_arrives_once_at_its_destination_in_order) {
  for (const std::size_t pes : {1u, 2u, 3u, 16u, 5000u}) {
    for (const std::size_t count : {0u, 1u, 4096u, 50'000u}) {
      Groups<std::size_t> groups(pes);
      std::vector<std::vector<std::size_t>> found(pes), expected(pes);
      const auto destination_of = [&](std::size_t item) { return Random(item).next() % pes; };
      for (std::size_t item = 0; item != count; ++item) expected[destination_of(item)].push_back(item);
      std::size_t next = 0;
      groups.split(
          count,
          [&](std::size_t& item) {
            item = next++;
            return destination_of(item);
          },
          [&](std::size_t pe, std::span<const std::size_t> items) {
            found[pe].insert(found[pe].end(), items.begin(), items.end());
          });
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(LocalSort, both_sort_as_std_stable_sort) {
  for (const std::string& how : local_sorts) {
    for (const std::uint64_t keys : {0u, 1u, 2u, 1000u, 70'000u}) {
      for (const std::uint64_t distinct : {1ull, 9ull, 1ull << 32}) {
        std::vector<Key> sorted = keys_of({.keys = keys, .distinct = distinct}), expected = sorted;
        sort(sorted, how);
        std::ranges::stable_sort(expected);
        EXPECT_EQ(sorted, expected) << how;
      }
    }
  }
}

TEST(Splitters, destinations_are_those_of_a_search) {
  for (const std::size_t pes : {1u, 2u, 3u, 5u, 8u, 16u, 100u}) {
    for (const std::uint64_t distinct : {3ull, 1ull << 32}) {
      const std::vector<Key> keys = keys_of({.keys = 2000, .distinct = distinct});
      const std::vector<Key> splitters = choose_splitters(std::vector(keys.begin(), keys.begin() + 300), pes);
      ASSERT_EQ(splitters.size(), pes - 1);
      ASSERT_TRUE(std::ranges::is_sorted(splitters));
      for (const Key key : keys) {
        const auto expected = std::ranges::upper_bound(splitters, key) - splitters.begin();
        ASSERT_EQ(destination(splitters, key), std::size_t(expected));
      }
    }
  }
}

TEST(Splitters, many_samples_give_even_ranges) {
  const Input input{.keys = 100'000};
  constexpr std::size_t pes = 8;
  std::vector<Key> samples;
  for (std::size_t pe = 0; pe != pes; ++pe) {
    const std::vector<Key> own = draw_samples(input, pe * input.keys / pes, input.keys / pes, 1000);
    EXPECT_EQ(own.size(), 1000u);
    samples.insert(samples.end(), own.begin(), own.end());
  }
  const std::vector<Key> splitters = choose_splitters(samples, pes);
  std::vector<std::size_t> counts(pes);
  for (const Key key : keys_of(input)) ++counts[destination(splitters, key)];
  EXPECT_LT(*std::ranges::max_element(counts), input.keys / pes * 12 / 10);
}

}  // namespace
}  // namespace headway::sorting
