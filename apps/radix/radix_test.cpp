// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <radix/digits.hpp>
#include <vector>

namespace headway::radix {
namespace {

std::vector<Key> keys_of(const sorting::Input& input) {
  std::vector<Key> keys;
  for (std::uint64_t i = 0; i != input.keys; ++i) keys.push_back(input.key(i));
  return keys;
}

TEST(Digits, together_are_the_key) {
  for (unsigned bits = 4; bits <= 16; ++bits) {
    const Digits digits(bits);
    for (const Key key : keys_of({.keys = 100})) {
      Key joined = 0;
      for (unsigned pass = digits.passes(); pass-- > 0;) {
        EXPECT_LT(digits.bucket(key, pass), digits.buckets(pass));
        joined = Key(joined << bits) | Key(digits.bucket(key, pass));
      }
      EXPECT_EQ(joined, key);
    }
  }
  EXPECT_EQ(Digits(16).passes(), 2u);
  EXPECT_EQ(Digits(16).buckets_in_all(), 131'072u);
  EXPECT_EQ(Digits(11).buckets_in_all(), 2048u + 2048u + 1024u);
}

TEST(RingMessages, are_four_times_the_buckets_of_two_passes) {
  EXPECT_EQ(ring_messages(Digits(16), 0, 16), 4u * 65'536);
  EXPECT_EQ(ring_messages(Digits(16), 14, 16), 4u * 65'536);
  EXPECT_EQ(ring_messages(Digits(16), 15, 16), 2u * 65'536);
  EXPECT_EQ(ring_messages(Digits(16), 0, 1), 0u);
}

TEST(SortAndCount, sorts_and_sends_about_the_published_number_of_keys) {
  for (const unsigned bits : {4u, 11u, 16u}) {
    for (const std::size_t pes : {1u, 2u, 3u, 16u}) {
      const sorting::Input input{.keys = 40'000};
      std::vector<Key> keys = keys_of(input), expected = keys;
      const std::vector<std::uint64_t> sent = sort_and_count(keys, Digits(bits), pes);
      std::ranges::sort(expected);
      EXPECT_EQ(keys, expected);
      const double published = double(Digits(bits).passes() * input.keys) * double(pes - 1) / double(pes);
      const auto all = double(std::accumulate(sent.begin(), sent.end(), std::uint64_t(0)));
      // Keys of a bucket keep their order, so with few buckets, of which some lie on two PEs, more keys stay.
      const double less = (bits == 4 ? 0.1 : 0.02) * published, more = 0.02 * published;
      EXPECT_GE(all, published - less) << bits << " bits, " << pes << " PEs";
      EXPECT_LE(all, published + more) << bits << " bits, " << pes << " PEs";
    }
  }
}

TEST(SortAndCount, sends_no_key_that_is_in_its_place) {
  std::vector<Key> keys(1000, 7);
  for (const std::uint64_t sent : sort_and_count(keys, Digits(16), 4)) EXPECT_EQ(sent, 0u);
}

}  // namespace
}  // namespace headway::radix
