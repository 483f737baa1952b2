// SPDX-License-Identifier: BSD-3-Clause
// The shares of the budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/am/staging_memory.hpp>
#include <headway/base/random.hpp>
#include <headway/launch/simulation.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headway::am {
namespace {

constexpr std::size_t frame_bytes = 1024, budget_bytes = 64 * frame_bytes, pes = 9;

/// Claims frames with `hops_left` to all PEs in turn until each claim is refused. Returns their number.
std::size_t claim_all(FrameStore& store, std::uint8_t hops_left,
                      std::vector<std::pair<std::size_t, OpenFrame>>& claimed) {
  const std::size_t before = claimed.size();
  for (bool any = true; any;) {
    any = false;
    for (std::size_t target = 0; target < pes; ++target) {
      const OpenFrame frame = store.try_claim(target, frame_bytes, hops_left);
      if (frame) claimed.emplace_back(target, frame);
      any |= bool(frame);
    }
  }
  return claimed.size() - before;
}

void expect_claims(const std::vector<std::pair<std::uint8_t, std::size_t>>& claims_by_hops) {
  const launch::SimulateResult result = launch::simulate({.pes = pes, .budget_bytes = budget_bytes}, [&](Pe& pe) {
    FrameStore& store = pe.engine().store();
    std::vector<std::pair<std::size_t, OpenFrame>> claimed;
    for (const auto& [hops_left, claims] : claims_by_hops) EXPECT_EQ(claim_all(store, hops_left, claimed), claims);
    for (const auto& [target, frame] : claimed) store.drop(target, frame);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

// Of 64 frames: all with 0 hops left, 2/3 with 1, 1/2 with 2.
TEST(FrameStore, frames_with_fewer_hops_left_find_memory_whatever_others_hold) {
  expect_claims({{2, 32}, {1, 42 - 32}, {0, 64 - 42}});
}

TEST(FrameStore, memory_of_frames_with_fewer_hops_left_counts_for_those_with_more) {
  expect_claims({{1, 42}, {2, 0}, {0, 64 - 42}});
  expect_claims({{0, 64}, {1, 0}, {2, 0}});
}

TEST(FrameStore, one_receiver_gets_a_quarter_of_the_budget) {
  const launch::SimulateResult result = launch::simulate({.pes = 2, .budget_bytes = budget_bytes}, [&](Pe& pe) {
    FrameStore& store = pe.engine().store();
    std::vector<OpenFrame> claimed;
    for (OpenFrame frame; (frame = store.try_claim(1, frame_bytes, 0));) claimed.push_back(frame);
    EXPECT_EQ(claimed.size(), 16u);
    EXPECT_TRUE(!store.try_claim(1, frame_bytes, 2)) << "frames with more hops left come on top";
    for (const OpenFrame& frame : claimed) store.drop(1, frame);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

TEST(StagingMemory, holds_a_bounded_number_of_buffers_and_guards_all_memory_outside_them) {
  constexpr std::size_t bytes = 16 * 1024, buffer_bytes = 3000;
  StagingMemory memory(bytes);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::byte*> buffers;
    while (std::byte* const buffer = memory.try_take(buffer_bytes)) buffers.push_back(buffer);
    ASSERT_EQ(buffers.size(), bytes / 4096);
    for (std::byte* const buffer : buffers) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer) % 64, 0u);
      std::fill_n(buffer, buffer_bytes, std::byte(1));
#if defined(__SANITIZE_ADDRESS__)
      EXPECT_FALSE(__asan_address_is_poisoned(buffer + buffer_bytes - 1));
      EXPECT_TRUE(__asan_address_is_poisoned(buffer + buffer_bytes));
#endif
      memory.give(buffer);
#if defined(__SANITIZE_ADDRESS__)
      EXPECT_TRUE(__asan_address_is_poisoned(buffer));
#endif
    }
  }
  EXPECT_EQ(StagingMemory(512).try_take(100), nullptr);
}

// Staging buffers take an eighth of the budget at most, and none of it for good.
TEST(FrameStore, frames_for_remote_cores_are_written_in_staging_buffers_while_memory_for_those_lasts) {
  launch::SimulateOptions options{.pes = pes, .budget_bytes = budget_bytes};
  options.conditions.past_caches = 1;
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    FrameStore& store = pe.engine().store();
    for (int round = 0; round < 3; ++round) {
      std::vector<std::pair<std::size_t, OpenFrame>> claimed;
      std::size_t buffers = 0;
      for (std::size_t i = 0; i < 60; ++i) {
        claimed.emplace_back(i % pes, store.try_claim(i % pes, frame_bytes / 2, 0, Writing::in_pieces));
        EXPECT_FALSE(claimed.back().second.past_caches) << "nobody is to write this past the caches";
        buffers += claimed.back().second.memory == OpenFrame::Memory::staging;
      }
      EXPECT_EQ(buffers, budget_bytes / 8 / frame_bytes);
      claimed.emplace_back(0, store.try_claim(0, frame_bytes, 0, Writing::at_once));
      EXPECT_TRUE(claimed.back().second.past_caches);
      EXPECT_EQ(claimed.back().second.memory, OpenFrame::Memory::claimed);
      claimed.emplace_back(1, store.try_claim(1, frame_bytes, 0));
      EXPECT_FALSE(claimed.back().second.past_caches);
      for (const auto& [target, frame] : claimed) store.drop(target, frame);
      EXPECT_EQ(store.outstanding_bytes_with_hops(0), 0u);
    }
    EXPECT_EQ(store.frames_past_caches(), 3u) << "those of staging buffers count when they are written out";
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

/// Sends frames of every length and of payloads and tails of every length, and looks at all of their bytes.
class Patterns final : public FrameHandler {
 public:
  explicit Patterns(Engine& engine) : engine_(&engine), id_(engine.add_handler(*this)) {}
  ~Patterns() override { engine_->remove_handler(id_); }

  void send(std::size_t target, std::size_t bytes, std::uint32_t payload, std::uint32_t tail) {
    const OpenFrame open = engine_->store().claim_or_spill(target, bytes, 0, Writing::in_pieces);
    staged += open.memory == OpenFrame::Memory::staging;
    for (std::uint32_t i = 0; i < payload; ++i) open.frame->payload()[i] = byte(i);
    for (std::uint32_t i = 1; i <= tail; ++i) open.end()[-std::ptrdiff_t(i)] = byte(1000 + i);
    transport::FrameHeader& header = open.frame->header;
    header = {};
    header.payload_bytes = payload;
    header.tail_bytes = tail;
    header.count = 1;
    engine_->stamp(header, id_, signature(), 0, engine_->scope());
    engine_->count_created(1);
    engine_->store().post(target, open);
  }

  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override {
    const transport::FrameHeader& header = arrival.header;
    for (std::uint32_t i = 0; i < header.payload_bytes; ++i) wrong += arrival.payload[i] != byte(i);
    for (std::uint32_t i = 1; i <= header.tail_bytes; ++i)
      wrong += arrival.tail_end[-std::ptrdiff_t(i)] != byte(1000 + i);
    ++received;
    next = 1;
    engine_->count_handled(1);
    return Result::done;
  }
  bool flush_open(FlushReason) override { return false; }
  bool flush_idle(IdleFlush) override { return false; }
  std::int64_t due() const override { return never; }
  bool flush_due(std::int64_t) override { return false; }
  std::uint16_t signature() const override { return 1; }
  std::string description() const override { return "patterns"; }
  bool ready() const override { return true; }

  std::uint64_t received = 0, wrong = 0, staged = 0;

 private:
  static std::byte byte(std::uint32_t i) { return std::byte(i * 37 >> 3 ^ i); }
  Engine* engine_;
  std::uint32_t id_;
};

TEST(FrameStore, frames_written_in_staging_buffers_arrive_at_all_lengths_of_frame_payload_and_tail) {
  for (const double refuse : {0.0, 0.3}) {
    launch::SimulateOptions options{.pes = 2};
    options.conditions.past_caches = 1;
    options.conditions.refuse = refuse;
    const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
      constexpr std::uint64_t frames = 3000;
      Patterns patterns(pe.engine());
      pe.quiesce();
      Random random(pe.id());
      for (std::uint64_t i = 0; i < frames; ++i) {
        const std::size_t room = random.size(1, 1000);
        const std::size_t payload = random.size(0, room), tail = random.one_in(3) ? 0 : random.size(0, room - payload);
        patterns.send(random.below(2), transport::frame_overhead + room, std::uint32_t(payload), std::uint32_t(tail));
        if (i % 50 == 49) pe.quiesce();
      }
      pe.quiesce();
      EXPECT_EQ(patterns.wrong, 0u);
      EXPECT_GT(patterns.received, frames / 2);
      EXPECT_GT(patterns.staged, frames / 6);  // refused ones spill
      return 0;
    });
    EXPECT_EQ(result.status, 0) << result.text;
  }
}

}  // namespace
}  // namespace headway::am
