// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/format_error.hpp>
#include <headway/rma/pool.hpp>
#include <headway/rma/reach.hpp>
#include <string>
#include <support/run_pes.hpp>
#include <support/transfers.hpp>
#include <vector>

namespace headway::rma {
namespace {

using testing::can_attach;
using testing::expect_run;
using testing::Settings;
using testing::Shape;
using testing::Shared;

constexpr std::size_t pes_max = 13;

std::vector<std::byte> bytes_of(std::size_t pe, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(pe * 31 + i);
  return bytes;
}

/// Each PE makes a key of heap memory and one of pool memory; calls body(pe, reach, heap keys of all PEs, pool keys of
/// all).
template <class Body>
void with_keys(Shape shape, const Settings& settings, Body body) {
  constexpr std::size_t size = 5000;
  Shared<std::array<BufferKey, pes_max>> heap, pooled;
  expect_run(
      shape,
      [&](Pe& pe) {
        Reach& reach = Reach::of(pe);
        Pool& pool = Pool::of(pe);
        std::vector<std::byte> mine = bytes_of(pe.id(), size);
        const std::uint64_t at = pool.allocate(size);
        std::byte* const in_pool = pool.memory().data() + at;
        std::memcpy(in_pool, mine.data(), size);
        (*heap)[pe.id()] = reach.key(mine, 77);
        (*pooled)[pe.id()] = reach.key({in_pool, size}, 78);
        pe.quiesce();
        body(pe, reach, *heap, *pooled, mine);
        pe.quiesce();
        pool.free(at);
      },
      settings);
}

TEST(Reach, memory_in_a_pool_or_in_the_process_is_mapped) {
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{3, 3}, Shape{5, 2}}) {
    with_keys(shape, {}, [&](Pe& pe, Reach& reach, auto& heap, auto& pooled, auto& mine) {
      for (std::size_t other = 0; other < pe.size(); ++other) {
        const bool same = other / shape.pes_per_process == pe.id() / shape.pes_per_process;
        const auto theirs = bytes_of(other, mine.size());
        const std::byte* const at = reach.mapped(pooled[other]);
        ASSERT_NE(at, nullptr);
        EXPECT_EQ(std::memcmp(at, theirs.data(), theirs.size()), 0);
        EXPECT_EQ(reach.mapped(heap[other]) != nullptr, same);
        if (same) {
          EXPECT_EQ(std::memcmp(reach.mapped(heap[other]), theirs.data(), theirs.size()), 0);
        }
        EXPECT_EQ(reach.is_mapped_by(other, mine.data(), mine.size()), same);
        EXPECT_TRUE(reach.is_mapped_by(other, Pool::of(pe).memory().data(), 1));
        EXPECT_EQ(heap[other].number, 77u);
        EXPECT_EQ(pooled[other].bytes, mine.size());
      }
    });
  }
}

TEST(Reach, that_a_key_asks_for_the_time_changes_nothing_else) {
  expect_run({2, 1}, [](Pe& pe) {
    Reach& reach = Reach::of(pe);
    Pool& pool = Pool::of(pe);
    const std::uint64_t at = pool.allocate(1000);
    const std::span<const std::byte> pooled(pool.memory().data() + at, 1000);
    const std::vector<std::byte> heap(pooled.size());
    const BufferKey plain = reach.key(pooled, 5), timed = reach.key(pooled, 5, true);
    EXPECT_FALSE(plain.is_timed());
    EXPECT_TRUE(timed.is_timed());
    reach.check(timed);
    EXPECT_EQ(timed.pool_offset(), plain.pool_offset());
    EXPECT_EQ(timed.pool_offset(), at);
    EXPECT_EQ(reach.mapped(timed), reach.mapped(plain));
    EXPECT_EQ(reach.key(heap, 5, true).pool_offset(), BufferKey::no_offset);
    pool.free(at);
  });
}

TEST(Reach, is_what_its_settings_say) {
  with_keys({2, 1}, {{"HEADWAY_TRANSFER", "frames"}}, [](Pe& pe, Reach& reach, auto& heap, auto& pooled, auto& mine) {
    const std::size_t other = 1 - pe.id();
    EXPECT_EQ(reach.mapped(pooled[other]), nullptr);
    EXPECT_FALSE(reach.may_attach(heap[other]));
    EXPECT_FALSE(reach.may_attach_to_this(other));
    EXPECT_FALSE(reach.is_mapped_by(other, Pool::of(pe).memory().data(), 1));
    EXPECT_FALSE(reach.copy_from(heap[other], 0, mine.data(), 1));
  });
  with_keys({2, 1}, {{"HEADWAY_TRANSFER", "mapped"}}, [](Pe& pe, Reach& reach, auto& heap, auto& pooled, auto&) {
    EXPECT_NE(reach.mapped(pooled[1 - pe.id()]), nullptr);
    EXPECT_FALSE(reach.may_attach(heap[1 - pe.id()]));
  });
}

TEST(Reach, attaches_from_any_offset_in_both_directions) {
  if (!can_attach()) GTEST_SKIP() << "the system does not let processes attach to others";
  with_keys({3, 1}, {{"HEADWAY_TRANSFER", "cma"}}, [](Pe& pe, Reach& reach, auto& heap, auto&, auto& mine) {
    const std::size_t other = (pe.id() + 1) % pe.size(), before = (pe.id() + pe.size() - 1) % pe.size();
    ASSERT_TRUE(reach.may_attach(heap[other]));
    std::vector<std::byte> copy(mine.size());
    ASSERT_TRUE(reach.copy_from(heap[other], 100, copy.data(), 900));
    EXPECT_EQ(std::memcmp(copy.data(), bytes_of(other, mine.size()).data() + 100, 900), 0);
    EXPECT_EQ(copy[900], std::byte(0)) << "it has copied more";
    pe.quiesce();
    const std::vector<std::byte> new_ones(10, std::byte(pe.id() + 200));
    ASSERT_TRUE(reach.copy_to(heap[other], 50, new_ones.data(), new_ones.size()));
    pe.quiesce();
    EXPECT_EQ(mine[49], bytes_of(pe.id(), mine.size())[49]);
    for (std::size_t i = 50; i < 60; ++i) EXPECT_EQ(mine[i], std::byte(before + 200));
    EXPECT_EQ(mine[60], bytes_of(pe.id(), mine.size())[60]);
  });
}

/// In another namespace the same number is another process, without the token of the key.
TEST(Reach, attaches_to_no_process_without_the_token_of_the_key) {
  if (!can_attach()) GTEST_SKIP() << "the system does not let processes attach to others";
  with_keys({2, 1}, {{"HEADWAY_TRANSFER", "cma"}}, [](Pe& pe, Reach& reach, auto& heap, auto&, auto& mine) {
    BufferKey strange = heap[1 - pe.id()];
    strange.token ^= 2;
    strange.check = strange.expected_check();
    EXPECT_FALSE(reach.copy_from(strange, 0, mine.data(), mine.size()));
    EXPECT_FALSE(reach.may_attach(strange)) << "and it is not tried again";
    EXPECT_EQ(mine, bytes_of(pe.id(), mine.size())) << "what is refused has changed something";
  });
}

template <class Body>
void expect_format_error(Body body, const std::string& text) {
  try {
    body();
    ADD_FAILURE() << "nothing is thrown";
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Reach, refuses_keys_that_no_pe_has_made) {
  with_keys({2, 1}, {}, [](Pe& pe, Reach& reach, auto& heap, auto& pooled, auto&) {
    const BufferKey good = heap[1 - pe.id()];
    reach.check(good);
    for (std::size_t byte = 0; byte < sizeof good; ++byte) {
      BufferKey damaged = good;
      reinterpret_cast<unsigned char*>(&damaged)[byte] ^= 0x10;
      expect_format_error([&] { reach.check(damaged); }, "no key of this run");
    }
    BufferKey of_nobody = good;
    of_nobody.pe = 2;
    of_nobody.check = of_nobody.expected_check();
    expect_format_error([&] { reach.check(of_nobody); }, "no key of this run");
    BufferKey beyond = pooled[1 - pe.id()];
    beyond.offset = Pool::of(pe).memory().size() - 10;
    beyond.check = beyond.expected_check();
    expect_format_error([&] { (void)reach.mapped(beyond); }, "'s pool, which has ");
  });
}

}  // namespace
}  // namespace headway::rma
