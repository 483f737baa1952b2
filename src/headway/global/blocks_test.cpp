// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/random.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/global/array.hpp>
#include <headway/global/memory.hpp>
#include <numeric>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>
#if defined(HEADWAY_SIM)
#include <headway/launch/simulation.hpp>
#endif

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;
using testing::shapes;

using Indices = std::vector<std::uint64_t>;

struct Point {
  double x, y, z;
  bool operator==(const Point&) const = default;
};
struct Large {
  std::array<std::uint32_t, 5001> content;  // more than one piece
  bool operator==(const Large&) const = default;
};

template <class T>
T value_of(std::uint64_t i) {
  if constexpr (std::is_same_v<T, Point>) {
    return {double(i), -double(i), double(i) / 3};
  } else if constexpr (std::is_same_v<T, Large>) {
    Large large;
    for (std::size_t j = 0; j < large.content.size(); ++j) large.content[j] = std::uint32_t(i * 7919 + j);
    return large;
  } else {
    return T(i * 0x9e3779b97f4a7c15 >> 7);
  }
}

/// Blocks of random numbers and sizes that fit n elements, and where they begin.
struct RandomStrides {
  std::size_t begin;
  global::Strides strides;

  RandomStrides(Random& random, std::size_t n, bool overlapping) {
    begin = random.below(n / 2);
    const std::size_t room = n - begin;
    strides.block = random.one_in(3) ? 1 : random.size(1, std::max<std::size_t>(1, room / 3));
    strides.stride =
        overlapping && random.one_in(4) ? random.below(strides.block + 1) : strides.block + random.size(0, room / 4);
    const std::size_t most = 1 + (room - strides.block) / std::max<std::size_t>(1, strides.stride);
    strides.count = random.size(0, std::min<std::size_t>(most, 4 * n / strides.block));
  }
  std::size_t size() const { return strides.block * strides.count; }
  /// Of each element, in their order.
  Indices places() const {
    Indices result;
    for (std::size_t i = 0; i < strides.count; ++i) {
      for (std::size_t j = 0; j < strides.block; ++j) result.push_back(begin + i * strides.stride + j);
    }
    return result;
  }
};

/// Each PE writes to and reads from the part of the one behind it, and has an array beside it that is written as that
/// one should be.
template <class T>
void agree_with_arrays(Pe& pe, GlobalMemory& memory, std::uint64_t seed, std::size_t n, int rounds) {
  DistArray<T> a(pe, n * pe.size(), n);
  const PeId next = (pe.id() + 1) % pe.size();
  const GlobalPtr<T> begin = a[n * next];
  for (std::size_t i = 0; i < n; ++i) a.local()[i] = value_of<T>(n * pe.id() + i);
  std::vector<T> expected(n);
  for (std::size_t i = 0; i < n; ++i) expected[i] = value_of<T>(n * next + i);
  barrier(pe);
  Random random(seed * 1000 + pe.id());
  for (int round = 0; round < rounds; ++round) {
    // Two gets and a put at once, of places that no other PE writes meanwhile: the put writes the second half.
    const std::size_t half = n / 2;
    const RandomStrides strided(random, half, true);
    std::vector<T> got(strided.size());
    memory.get_strided(begin + std::ptrdiff_t(strided.begin), strided.strides, std::span(got));
    Indices indices(random.size(0, half));
    for (std::uint64_t& index : indices) index = random.below(half);
    std::vector<T> got_indexed(indices.size());
    memory.get_indexed(begin, indices, std::span(got_indexed));

    const RandomStrides put(random, n - half, false);
    std::vector<T> values(put.size());
    for (T& value : values) value = value_of<T>(random.next());
    memory.put_strided(begin + std::ptrdiff_t(half + put.begin), put.strides, values);
    const Indices written = put.places();
    for (std::size_t i = 0; i < values.size(); ++i) expected[half + written[i]] = values[i];
    memory.sync();
    const Indices places = strided.places();
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[places[i]]) << "seed " << seed;
    for (std::size_t i = 0; i < indices.size(); ++i) ASSERT_EQ(got_indexed[i], expected[indices[i]]) << "seed " << seed;

    Indices all(n);
    std::iota(all.begin(), all.end(), std::uint64_t(0));
    for (std::size_t i = n; i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
    all.resize(random.size(0, n));
    std::vector<T> more(all.size());
    for (T& value : more) value = value_of<T>(random.next());
    memory.put_indexed(begin, all, more);
    for (std::size_t i = 0; i < all.size(); ++i) expected[all[i]] = more[i];
    memory.sync();
    std::vector<T> whole(n);
    memory.get(begin, std::span(whole));
    memory.sync();
    ASSERT_EQ(whole, expected) << "seed " << seed << ", round " << round;
  }
  barrier(pe);
  // The owner finds the written values and no others.
  std::vector<T> mine(n);
  memory.get_indexed(a[n * pe.id()], Indices{0, n - 1}, std::span(mine).first(2));
  memory.sync();
  ASSERT_EQ(mine[0], a.local()[0]);
  ASSERT_EQ(mine[1], a.local()[n - 1]);
  pe.quiesce();
}

void agree_with_arrays_of_all_types(Pe& pe, GlobalMemory& memory, std::uint64_t seed) {
  agree_with_arrays<std::uint8_t>(pe, memory, seed, 40'000, 3);
  agree_with_arrays<std::uint16_t>(pe, memory, seed, 1000, 4);
  agree_with_arrays<std::uint32_t>(pe, memory, seed, 100, 4);
  agree_with_arrays<std::uint64_t>(pe, memory, seed, 5000, 6);
  agree_with_arrays<Point>(pe, memory, seed, 2000, 4);
  agree_with_arrays<Large>(pe, memory, seed, 12, 2);
}

#if defined(HEADWAY_SIM) && !defined(__SANITIZE_THREAD__)  // which has one thread to look at there
TEST(Blocks, agree_with_arrays_on_simulated_pes) {
  for (const std::size_t pes : {1, 2, 3, 5}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const launch::SimulateResult result =
          launch::simulate({.pes = pes, .seed = seed, .budget_bytes = 1_MiB}, [&](Pe& pe) {
            GlobalMemory memory(pe);
            agree_with_arrays_of_all_types(pe, memory, seed);
            pe.quiesce();
            return 0;
          });
      EXPECT_EQ(result.status, 0) << result.text << ", " << pes << " PEs, seed " << seed;
    }
  }
}
#endif

TEST(Blocks, agree_with_arrays_mapped_and_by_messages) {
  std::uint64_t seed = 10;
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{3, 3}, Shape{5, 2}}) {
    for (const bool mapped : {true, false}) {
#if defined(__SANITIZE_THREAD__)
      if (mapped && shape.pes_per_process > 1 && shape.pes_per_process < shape.pes) continue;  // see memory_test.cpp
#endif
      ++seed;
      expect_run(shape, [mapped, seed](Pe& pe) {
        GlobalMemory memory(pe, {.mapped = mapped});
        agree_with_arrays_of_all_types(pe, memory, seed);
        pe.quiesce();
      });
    }
  }
}

TEST(Blocks, a_handler_may_ask_for_more_than_goes_at_once) {
  for (const bool mapped : {true, false}) {
    expect_run({2, 1}, [mapped](Pe& pe) {
      GlobalMemory memory(pe, {.mapped = mapped});
      constexpr std::size_t n = 600'000;  // words, of which 1 MiB is on its way at once
      DistArray<std::uint64_t> a(pe, n * pe.size());
      for (std::size_t i = 0; i < n; ++i) a.local()[i] = n * pe.id() + i;
      const std::size_t other = n * (1 - pe.id());
      Indices indices(n / 2);
      for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = n - 1 - i;
      std::vector<std::uint64_t> odd(n / 2), backwards(n / 2);
      Aggregator<std::uint64_t> asked(pe);
      asked.on([&](std::uint64_t) {
        memory.get_strided(a[other + 1], {.stride = 2, .count = n / 2}, std::span(odd));
        memory.get_indexed(a[other], Indices(indices), std::span(backwards));  // which is gone when it returns
      });
      barrier(pe);
      asked.send(1 - pe.id(), 1);
      pe.quiesce();
      memory.sync();
      for (std::size_t i = 0; i < n / 2; ++i) {
        ASSERT_EQ(odd[i], other + 1 + 2 * i);
        ASSERT_EQ(backwards[i], other + n - 1 - i);
      }
      barrier(pe);
    });
  }
}

TEST(Blocks, a_strided_get_is_one_message_for_each_piece) {
  expect_run({2, 1}, [](Pe& pe) {
    GlobalMemory memory(pe, {.mapped = false});
    DistArray<std::uint64_t> a(pe, 2 * 10'000);
    barrier(pe);
    std::vector<std::uint64_t> column(1000);
    const auto sent = [&] {
      std::uint64_t sum = 0;
      for (const AggregatorStatistics& one : memory.statistics()) sum += one.messages;
      return sum;
    };
    const std::uint64_t before = sent();
    if (pe.id() == 0) memory.get_strided(a[10'000], {.stride = 10, .count = 1000}, std::span(column));
    memory.sync();
    EXPECT_EQ(sent() - before, pe.id() == 0 ? 1u : 0u) << "8000 bytes are in one piece";
    const std::uint64_t between = sent();
    if (pe.id() == 0) memory.put_strided(a[10'000], {.stride = 10, .count = 1000}, column);
    memory.sync();
    EXPECT_LE(sent() - between, 2u) << "the values, and the question whether they are in place";
    barrier(pe);
  });
}

TEST(Blocks, nothing_is_asked_for_nothing) {
  for (const bool mapped : {true, false}) {
    expect_run({2, 1}, [mapped](Pe& pe) {
      GlobalMemory memory(pe, {.mapped = mapped});
      DistArray<std::uint64_t> a(pe, 8);
      barrier(pe);
      const GlobalPtr<std::uint64_t> other = a[4 * (1 - pe.id())];
      const std::span<std::uint64_t> none;
      memory.get_strided(other, {.block = 3, .stride = 5, .count = 0}, none);
      memory.get_strided(other, {.block = 0, .stride = 5, .count = 7}, none);
      memory.put_strided(other, {.block = 3, .stride = 5, .count = 0}, none);
      memory.put_strided(other, {.block = 0, .stride = 0, .count = 7}, none);
      memory.get_indexed(other, {}, none);
      memory.put_indexed(other, {}, none);
      memory.sync();
      for (const std::uint64_t word : a.local()) EXPECT_EQ(word, 0u);
      barrier(pe);
    });
  }
}

TEST(Blocks, what_cannot_be_is_refused_with_its_numbers) {
  for (const bool mapped : {true, false}) {
    expect_run({2, 1}, [mapped](Pe& pe) {
      GlobalMemory memory(pe, {.mapped = mapped});
      DistArray<std::uint64_t> a(pe, 200);
      barrier(pe);
      const GlobalPtr<std::uint64_t> other = a[100 * (1 - pe.id())];
      std::vector<std::uint64_t> values(12, 7);
      const std::span to(values);
      constexpr std::uint64_t huge = ~std::uint64_t(0);
      expect_usage_error([&] { memory.put_strided(other, {.block = 4, .stride = 3, .count = 3}, values); },
                         "put of blocks of 4 elements at a stride of 3 elements: they would overlap");
      expect_usage_error([&] { memory.put_strided(other, {.block = 4, .stride = 5, .count = 2}, values); },
                         "2 blocks of 4 elements are not 12 elements");
      const global::Strides wraps{.block = huge / 2 + 1, .stride = 5, .count = 2};
      expect_usage_error([&] { memory.get_strided(other, wraps, to.first(0)); },
                         "2 blocks of 9223372036854775808 elements are not 0 elements");
      expect_usage_error([&] { memory.get_strided(other, {.block = 1, .stride = huge / 8 + 1, .count = 12}, to); },
                         "is longer than any shared memory");
      expect_usage_error([&] { memory.get_strided(other, {.stride = std::uint64_t(1) << 40, .count = 12}, to); },
                         "8 bytes, number ");
      expect_usage_error(
          [&] {
            memory.get_indexed(other, Indices{1, 2, 3}, to);
          },
          "3 indices are given for 12 elements");
      expect_usage_error(
          [&] {
            memory.put_indexed(other, Indices{1, 2, 3}, values);
          },
          "3 indices are given for 12 elements");
      for (const std::uint64_t index : {huge, huge / 8 + 1, std::uint64_t(1) << 42}) {
        expect_usage_error(
            [&] {
              memory.get_indexed(other, Indices{3, index}, to.first(2));
            },
            "8 bytes, number " + std::to_string(index) + " of those every 8 bytes from " +
                std::to_string(other.offset()) + " on, are not in the ");
        expect_usage_error(
            [&] {
              memory.put_indexed(other, Indices{3, index}, to.first(2));
            },
            "of PE " + std::to_string(other.pe().value) + "'s shared memory");
      }
      expect_usage_error([&] { memory.get_indexed(GlobalPtr<std::uint64_t>(), Indices{3}, to.first(1)); }, "null");
      memory.sync();
      EXPECT_EQ(values, std::vector<std::uint64_t>(12, 7));
      barrier(pe);
      for (const std::uint64_t word : a.local()) EXPECT_EQ(word, 0u);
    });
  }
}

TEST(Blocks, what_lies_outside_ends_the_run_with_its_place) {
  for (const bool indexed : {false, true}) {
    const Outcome outcome = catch_run({2, 1}, [indexed](Pe& pe) {
      GlobalMemory memory(pe, {.mapped = false});
      barrier(pe);
      const GlobalPtr<std::uint64_t> p(1, 4096);
      const std::vector<std::uint64_t> values(2, 1);
      constexpr std::uint64_t far = (std::uint64_t(1) << 41) - 4096;
      if (pe.id() == 0 && !indexed) memory.put_strided(p, {.stride = far, .count = 2}, values);
      if (pe.id() == 0 && indexed) memory.put_indexed(p, Indices{0, far}, values);
      pe.quiesce();
    });
    EXPECT_NE(outcome.status, 0);
    EXPECT_NE(outcome.text.find("of PE 1's shared memory, which has "), std::string::npos) << outcome.text;
  }
}

}  // namespace
}  // namespace headway
