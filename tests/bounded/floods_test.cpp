// SPDX-License-Identifier: BSD-3-Clause
// Floods at 64 PEs, where two cores run them: what all PEs hold stays within the formula of docs/memory.md.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <headway/headway.hpp>

#include "watched_run.hpp"

namespace {

using namespace headway;
using namespace headway::literals;
using headway::testing::Shared;
using headway::testing::Watched;

constexpr std::size_t pes = 64;
constexpr std::size_t budget = 1_MiB;
constexpr std::size_t bytes_in_all = 192_MiB;  // three times all budgets
const headway::testing::Settings settings{{"HEADWAY_PES", "64"},    {"HEADWAY_PES_PER_PROCESS", "1"},
                                          {"HEADWAY_BUDGET", "1M"}, {"HEADWAY_SPILL", "64M"},
                                          {"HEADWAY_BIND", "none"}, {"HEADWAY_STALL", "60s"}};

struct Block1K {
  std::uint64_t words[128];
};

/// Counts that the PEs of a flood report to the test.
struct Told {
  std::atomic<std::uint64_t> handled, spilled_bytes, pes_with_staging_buffers;
};

using Flood = std::function<void(Pe&, Aggregator<Block1K>&)>;

/// Every PE makes the same aggregators and the same handler; `flood` sends.
Watched run_flood(Topology topology, Told& told, unsigned handler_us, const Flood& flood) {
  return headway::testing::watched_run(
      settings,
      [&](Pe& pe) {
        Aggregator<Block1K> blocks(pe, {.topology = topology});
        std::uint64_t handled = 0;
        blocks.on([&](const Block1K& block) {
          ++handled;
          if (handler_us != 0 && pe.id() == 5 && handled % 16 == 0) usleep(handler_us);
          // A tree of messages, where a flood sends one with a depth.
          for (std::uint64_t i = 0; i < 2 && block.words[0] != 0; ++i) {
            blocks.send((pe.id() * 7 + handled + i) % pes, Block1K{{block.words[0] - 1}});
          }
        });
        flood(pe, blocks);
        pe.quiesce();
        told.handled += handled;
        told.spilled_bytes += blocks.statistics().spilled_bytes_peak;
        told.pes_with_staging_buffers += blocks.statistics().frames_past_caches != 0;
      },
      100'000, [] {});
}

/// What 64 PEs take that have done a little of everything, but hold nothing.
std::size_t idle_bytes(Topology topology) {
  Shared<Told> told;
  const Watched idle = run_flood(topology, *told, 0, [](Pe& pe, Aggregator<Block1K>& blocks) {
    blocks.send((pe.id() + 1) % pes, Block1K{});
    pe.quiesce();
    usleep(1'500'000);
  });
  EXPECT_EQ(idle.status, 0);
  return idle.peak_bytes;
}

void expect_bounded(const char* name, Topology topology, std::uint64_t messages, unsigned handler_us,
                    const Flood& flood) {
  const std::size_t idle = idle_bytes(topology);
  Shared<Told> told;
  const Watched flooded = run_flood(topology, *told, handler_us, flood);
  EXPECT_EQ(flooded.status, 0);
  EXPECT_EQ(told->handled.load(), messages);
  const std::size_t table = budget / 8, staging = budget / 8;
  const std::size_t budgets = pes * (budget + table) + told->pes_with_staging_buffers * staging;
  const std::size_t bound = idle + budgets + told->spilled_bytes;
  std::printf("%s: peak %.1f MiB; idle %.1f + budgets, tables and staging buffers %.1f + spilled at most %.1f MiB\n",
              name, double(flooded.peak_bytes) / 0x1p20, double(idle) / 0x1p20, double(budgets) / 0x1p20,
              double(told->spilled_bytes) / 0x1p20);
  // A tenth more: for the allocator's overhead on the spill, and for pages that are first touched late.
  EXPECT_LT(double(flooded.peak_bytes), 1.1 * double(bound));
}

constexpr std::uint64_t blocks_in_all = bytes_in_all / sizeof(Block1K);

void all_to_one(Pe&, Aggregator<Block1K>& blocks) {
  for (std::uint64_t i = 0; i < blocks_in_all / pes; ++i) blocks.send(5, Block1K{});
}

TEST(Floods, all_to_one_that_is_slow) { expect_bounded("all to one, 1d", grid(1), blocks_in_all, 500, all_to_one); }
TEST(Floods, all_to_one_that_is_slow_over_a_grid) {
  expect_bounded("all to one, 2d", grid(2), blocks_in_all, 500, all_to_one);
}

TEST(Floods, one_to_all) {
  expect_bounded("one to all, 1d", grid(1), blocks_in_all, 0, [](Pe& pe, Aggregator<Block1K>& blocks) {
    for (std::uint64_t i = 0; pe.id() == 3 && i < blocks_in_all; ++i) blocks.send(i % pes, Block1K{});
  });
}

TEST(Floods, all_to_all_with_one_slow_pe) {
  expect_bounded("all to all, one slow, 1d", grid(1), blocks_in_all, 500, [](Pe& pe, Aggregator<Block1K>& blocks) {
    for (std::uint64_t i = 0; i < blocks_in_all / pes; ++i) blocks.send((pe.id() * 3 + i) % pes, Block1K{});
  });
}

TEST(Floods, handlers_that_send_two_for_one) {
  constexpr std::uint64_t depth = 11;
  expect_bounded("handlers, two for one, 1d", grid(1), pes * ((2 << depth) - 1), 0,
                 [](Pe& pe, Aggregator<Block1K>& blocks) { blocks.send((pe.id() + 1) % pes, Block1K{{depth}}); });
}

}  // namespace
