// SPDX-License-Identifier: BSD-3-Clause
// Messages of fixed size that go in parts: their lengths are padded to their alignment, their arguments end before.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <memory>
#include <support/run_pes.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Settings;
using testing::Shape;

const Settings small_budget{{"HEADWAY_BUDGET", "1M"}};  // parts carry up to 64 KiB, frames by themselves 256 KiB

template <std::size_t n, std::size_t alignment = 1>
struct alignas(alignment) Block {
  std::uint8_t bytes[n];

  static std::uint8_t byte(std::uint64_t number, std::size_t at) {
    return std::uint8_t(at * 167 + at / 251 + number * 13);
  }
  static std::unique_ptr<Block> of(std::uint64_t number) {
    auto block = std::make_unique<Block>();
    for (std::size_t i = 0; i < n; ++i) block->bytes[i] = byte(number, i);
    return block;
  }
  bool is_of(std::uint64_t number) const {
    for (std::size_t i = 0; i < n; ++i) {
      if (bytes[i] != byte(number, i)) return false;
    }
    return true;
  }
};

/// Every PE sends three of them to each, and one more, by try_send() where that takes it.
template <std::size_t n, std::size_t alignment = 1>
void send_blocks(Pe& pe, bool ordered) {
  using Sent = Block<n, alignment>;
  Aggregator<std::uint64_t, Sent, std::uint16_t> blocks(pe, {.ordered = ordered});
  std::vector<std::uint64_t> next(pe.size());
  std::uint64_t wrong = 0;
  blocks.on([&](PeId source, std::uint64_t number, const Sent& block, std::uint16_t behind) {
    wrong += !block.is_of(number) || behind != std::uint16_t(number + 1);
    wrong += ordered && number != next[source];
    ++next[source];
  });
  for (std::uint64_t number = 0; number < 3; ++number) {
    const std::unique_ptr<Sent> block = Sent::of(number);
    for (std::size_t i = 0; i < pe.size(); ++i) {
      blocks.send((pe.id() + i) % pe.size(), number, *block, std::uint16_t(number + 1));
    }
  }
  // Of many parts try_send() may find one refused each time.
  const std::unique_ptr<Sent> last = Sent::of(3);
  const std::size_t to = (pe.id() + 1) % pe.size();
  bool sent = false;
  for (int i = 0; i < 100 && !sent; ++i) {
    sent = blocks.try_send(to, 3, *last, std::uint16_t(4));
    if (!sent) pe.progress();
  }
  if (!sent) blocks.send(to, 3, *last, std::uint16_t(4));
  EXPECT_EQ(pe.quiesce(), (3 * pe.size() + 1) * pe.size());
  EXPECT_EQ(wrong, 0u);
}

constexpr Shape fixed_shapes[] = {
    {2, 1},
    {3, 3},
#if defined(HEADWAY_SIM) && !defined(__SANITIZE_THREAD__)
    {3, 3, "delay=30us,refuse=0.2,inbox=16"},
    {4, 4, "refuse=0.1,past-caches=0.5,per-host=2"},
#endif
};

template <std::size_t n, std::size_t alignment = 1>
void expect_blocks_arrive() {
  for (const Shape shape : fixed_shapes) {
    for (const bool ordered : {false, true}) {
      SCOPED_TRACE(std::to_string(n) + " bytes aligned to " + std::to_string(alignment) + (ordered ? ", ordered" : ""));
      expect_run(
          shape, [ordered](Pe& pe) { send_blocks<n, alignment>(pe, ordered); }, small_budget);
    }
  }
}

TEST(LargeFixedMessage, in_one_frame_or_in_few_parts_arrives_whatever_its_length_is_modulo_its_alignment) {
  expect_blocks_arrive<70'001>();
  expect_blocks_arrive<131'071>();
  expect_blocks_arrive<131'075, 1>();
  expect_blocks_arrive<100'032, 32>();
}

TEST(LargeFixedMessage, in_parts_arrives_whatever_its_length_is_modulo_its_alignment) {
  expect_blocks_arrive<300'000>();
  expect_blocks_arrive<300'001>();
  expect_blocks_arrive<300'005>();
  expect_blocks_arrive<300'032, 64>();
}

TEST(LargeFixedMessage, needs_no_stack_of_its_size) {
  using Sent = Block<12'000'001>;  // more than threads have by default
  expect_run(
      {2, 2},
      [](Pe& pe) {
        Aggregator<std::uint64_t, Sent> blocks(pe);
        bool is_right = false;
        blocks.on([&](std::uint64_t number, const Sent& block) { is_right = block.is_of(number); });
        if (pe.id() == 0) blocks.send(1, 5, *Sent::of(5));
        EXPECT_EQ(pe.quiesce(), 1u);
        EXPECT_EQ(is_right, pe.id() == 1);
      },
      small_budget);
}

}  // namespace
}  // namespace headway
