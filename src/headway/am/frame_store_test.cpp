// The shares of the budget.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/am/simulation.hpp>
#include <vector>

namespace headway::am {
namespace {

constexpr std::size_t frame_bytes = 1024, budget_bytes = 64 * frame_bytes, pes = 9;

/// Claims frames with so many hops left to all PEs in turn, until each refuses. Returns how many.
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
  const SimulateResult result = simulate({.pes = pes, .budget_bytes = budget_bytes}, [&](Pe& pe) {
    FrameStore& store = pe.engine().store();
    std::vector<std::pair<std::size_t, OpenFrame>> claimed;
    for (const auto& [hops_left, claims] : claims_by_hops) EXPECT_EQ(claim_all(store, hops_left, claimed), claims);
    for (const auto& [target, frame] : claimed) store.drop(target, frame);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

// Of 64 frames: all, 2/3 and 1/2 for those with 0, 1 and 2 hops left.
TEST(FrameStore, frames_nearer_their_end_find_room_whatever_those_with_more_hops_left_hold) {
  expect_claims({{2, 32}, {1, 42 - 32}, {0, 64 - 42}});
}

TEST(FrameStore, what_frames_nearer_their_end_hold_counts_for_those_with_more_hops_left) {
  expect_claims({{1, 42}, {2, 0}, {0, 64 - 42}});
  expect_claims({{0, 64}, {1, 0}, {2, 0}});
}

TEST(FrameStore, one_target_gets_a_quarter) {
  const SimulateResult result = simulate({.pes = 2, .budget_bytes = budget_bytes}, [&](Pe& pe) {
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

// Drafts take an eighth of the budget at most, and none of it for good.
TEST(FrameStore, frames_whose_lines_are_far_are_written_in_drafts_while_there_is_room_for_those) {
  SimulateOptions options{.pes = pes, .budget_bytes = budget_bytes};
  options.conditions.far = 1;
  const SimulateResult result = simulate(options, [&](Pe& pe) {
    FrameStore& store = pe.engine().store();
    for (int round = 0; round < 3; ++round) {
      std::vector<std::pair<std::size_t, OpenFrame>> claimed;
      std::size_t drafts = 0;
      for (std::size_t i = 0; i < 60; ++i) {
        claimed.emplace_back(i % pes, store.try_claim(i % pes, frame_bytes, 0, Writing::in_pieces));
        EXPECT_TRUE(claimed.back().second.is_far);
        drafts += claimed.back().second.memory == OpenFrame::Memory::draft;
      }
      EXPECT_EQ(drafts, 8u);
      claimed.emplace_back(0, store.try_claim(0, frame_bytes, 0, Writing::at_once));
      EXPECT_TRUE(claimed.back().second.is_far);
      EXPECT_EQ(claimed.back().second.memory, OpenFrame::Memory::claimed);
      claimed.emplace_back(1, store.try_claim(1, frame_bytes, 0));
      EXPECT_FALSE(claimed.back().second.is_far);
      for (const auto& [target, frame] : claimed) store.drop(target, frame);
      EXPECT_EQ(store.outstanding_bytes_with_hops(0), 0u);
    }
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

}  // namespace
}  // namespace headway::am
