// SPDX-License-Identifier: BSD-3-Clause
// Memory stays bounded when receivers are slow or handlers send more than they receive.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <headway/headway.hpp>

#include "watched_run.hpp"

namespace {

using namespace headway;
using headway::testing::Shared;
using headway::testing::Watched;
using headway::testing::watched_run;

constexpr std::size_t mega = 1'000'000;

struct FloodState {
  std::atomic<std::uint64_t> received;  // by the slow PE, bytes
  std::atomic<std::uint64_t> bounces;   // between the two other PEs
  std::atomic<bool> flooded;
};

struct Block1K {
  std::uint64_t words[128];
};

void flood(Pe& pe, Topology topology, std::size_t bytes_in_all, FloodState& state) {
  const std::size_t slow = pe.size() - 1;
  Aggregator<Block1K> blocks(pe, {.topology = topology});
  std::uint64_t checksum = 0, count = 0;
  blocks.on([&](const Block1K& block) {
    checksum += block.words[0] + block.words[127];
    state.received.fetch_add(sizeof block, std::memory_order_relaxed);
    if (++count % 128 == 0) usleep(1000);  // slow
  });
  // Two PEs that take part in the flood keep a message going to and fro.
  Aggregator<std::uint64_t> bounce(pe);
  bounce.on([&](Pe& here, const std::uint64_t& left) {
    state.bounces.fetch_add(1, std::memory_order_relaxed);
    if (!state.flooded.load(std::memory_order_relaxed)) bounce.send(PeId(3 - here.id()), left + 1);
  });
  if (pe.id() == 1) bounce.send(2, 0);

  const std::size_t mine = bytes_in_all / sizeof(Block1K) / slow;
  if (pe.id() != slow) {
    for (std::size_t i = 0; i < mine; ++i) {
      Block1K block{};
      block.words[0] = i;
      block.words[127] = 2 * i;
      blocks.send(slow, block);
    }
  }
  // The bouncing ends when the flood has been received; until then progress is all there is to do.
  while (state.received.load() < mine * slow * sizeof(Block1K)) pe.progress();
  state.flooded = true;
  pe.quiesce();
  const std::uint64_t expected = pe.id() == slow ? slow * 3 * (mine * (mine - 1) / 2) : 0;
  if (checksum != expected) std::_Exit(1);
}

void expect_bounded_flood(Topology topology) {
  constexpr std::size_t pes = 8;
  constexpr std::size_t budget = 16 * 1024 * 1024;
  Shared<FloodState> state;
  std::size_t rounds = 0, samples = 0, samples_without_a_bounce = 0;
  std::uint64_t bounces_before = 0;
  const Watched watched = watched_run(
      {{"HEADWAY_PES", "8"}, {"HEADWAY_BUDGET", "16M"}, {"HEADWAY_BIND", "none"}},
      [&](Pe& pe) { flood(pe, topology, 1000 * mega, *state); }, 200'000,
      [&] {
        if (++rounds % 5 != 0) return;  // bounces are sampled once a second
        const std::uint64_t bounces = state->bounces.load();
        if (state->received > 0 && !state->flooded) {
          ++samples;
          if (bounces == bounces_before) ++samples_without_a_bounce;
        }
        bounces_before = bounces;
      });
  EXPECT_EQ(watched.status, 0);
  EXPECT_GT(samples, 5u) << "the flood was over too soon to be watched";
  EXPECT_EQ(samples_without_a_bounce, 0u) << "of " << samples << " samples";
  EXPECT_LT(watched.peak_bytes, pes * budget + 64 * 1024 * 1024);
  std::printf("peak %.1f MiB of %.1f MiB, %zu samples, %llu bounces\n", double(watched.peak_bytes) / 0x1p20,
              double(pes * budget) / 0x1p20 + 64, samples, static_cast<unsigned long long>(state->bounces.load()));
}

TEST(Bounded, a_flood_to_a_slow_pe_stays_within_the_budgets_and_stops_nobody_else_1d) { expect_bounded_flood(grid(1)); }
TEST(Bounded, a_flood_to_a_slow_pe_stays_within_the_budgets_and_stops_nobody_else_2d) { expect_bounded_flood(grid(2)); }

TEST(Bounded, handlers_that_send_two_messages_for_each_end_and_the_spill_is_reported) {
  Shared<std::atomic<std::uint64_t>> spilled;
  const int status = headway::testing::run_pes(4, 1,
                                               [&](Pe& pe) {
                                                 Aggregator<std::uint64_t> cascade(pe, {.buffer_bytes = 4096});
                                                 std::uint64_t next = pe.id();
                                                 cascade.on([&](const std::uint64_t& depth) {
                                                   if (depth == 0) return;
                                                   cascade.send(next++ % pe.size(), depth - 1);
                                                   cascade.send(next++ % pe.size(), depth - 1);
                                                 });
                                                 if (pe.id() == 0) cascade.send(0, 20);
                                                 const std::uint64_t handled = pe.quiesce();
                                                 spilled->fetch_add(cascade.statistics().spilled_frames);
                                                 return handled == (1u << 21) - 1 ? 0 : 1;
                                               },
                                               {{"HEADWAY_BUDGET", "1M"}});
  EXPECT_EQ(status, 0);
  EXPECT_GT(spilled->load(), 0u);
}

}  // namespace
