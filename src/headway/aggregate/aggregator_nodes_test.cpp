// SPDX-License-Identifier: BSD-3-Clause
// How many frames the routes cost, exactly: grids against one dimension, and schemes that know of processes against
// those that do not. On simulated time, and nothing is sent because of time or idleness.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/wait.hpp>
#include <headway/base/bytes.hpp>
#include <headway/launch/simulation.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headway {
namespace {

using namespace literals;

constexpr std::uint64_t messages_per_pair = 10;
constexpr std::int64_t longer_than_any_hop_ns = 100'000;

struct Frames {
  std::uint64_t all = 0, between_processes = 0, between_hosts = 0;
  std::uint64_t peak_buffer_bytes = 0;  // the largest of any PE
};

/// How the PEs of a run are spread, and how large buffers are.
struct Spread {
  std::size_t pes, pes_per_process = 1;
  std::vector<std::size_t> pes_per_host = {};
  std::size_t buffer_bytes = 4_KiB;
};

/// Runs send(pe, words) on every PE, and counts the frames until all messages are handled, which are `messages` in all.
template <class Send>
Frames frames_of(const Spread& spread, Topology topology, std::uint64_t messages, Send send) {
  Frames frames;
  launch::SimulateOptions simulated{.pes = spread.pes, .budget_bytes = 16_MiB};
  simulated.conditions.pes_per_process = spread.pes_per_process;
  simulated.conditions.pes_per_host = spread.pes_per_host;
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Aggregator<std::uint64_t> words(
        pe,
        {.buffer_bytes = spread.buffer_bytes, .timeout = no_timeout, .topology = topology, .flush_when_idle = false});
    words.on([&](std::uint64_t) {});
    send(pe, words);
    EXPECT_EQ(pe.quiesce(), messages);
    const AggregatorStatistics statistics = words.statistics();
    frames.all += statistics.frames;
    frames.between_processes += statistics.frames_between_processes;
    frames.between_hosts += statistics.frames_between_hosts;
    frames.peak_buffer_bytes = std::max(frames.peak_buffer_bytes, statistics.peak_buffer_bytes);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  return frames;
}

void send_some(Aggregator<std::uint64_t>& words, std::size_t to) {
  for (std::uint64_t i = 0; i < messages_per_pair; ++i) words.send(to, i);
}

/// Every PE sends to all PEs outside its row first. It sends to the PEs of its row later, once the messages that it
/// forwards to them have arrived.
Frames frames_on_a_square(std::size_t side, Topology topology) {
  const std::size_t pes = side * side;
  return frames_of({pes}, topology, messages_per_pair * pes * (pes - 1), [&](Pe& pe, auto& words) {
    const std::size_t row = pe.id() / side;
    for (std::size_t to = 0; to < pes; ++to) {
      if (to / side != row) send_some(words, to);
    }
    words.flush();
    for (const std::int64_t begin = pe.engine().now(); pe.engine().now() < begin + longer_than_any_hop_ns;)
      pe.progress();
    for (std::size_t to = row * side; to < (row + 1) * side; ++to) {
      if (to != pe.id()) send_some(words, to);
    }
  });
}

TEST(FramesOfRoutes, two_dimensions_take_frames_to_rows_and_columns_alone_where_few_messages_go_to_each_pair) {
  for (const std::size_t side : {4, 8}) {
    const std::size_t pes = side * side;
    const std::uint64_t straight = frames_on_a_square(side, grid(1)).all,
                        over_rows = frames_on_a_square(side, grid(2)).all;
    EXPECT_EQ(straight, pes * (pes - 1));
    EXPECT_EQ(over_rows, pes * 2 * (side - 1));
    EXPECT_LE(double(over_rows) / double(straight), side == 4 ? 0.42 : 0.24);
  }
}

/// Every PE sends to all PEs of other processes.
Frames frames_between(std::size_t pes, std::size_t pes_per_process, Topology topology) {
  std::uint64_t pairs = 0;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    for (std::size_t to = 0; to < pes; ++to) pairs += pe / pes_per_process != to / pes_per_process;
  }
  return frames_of({pes, pes_per_process}, topology, messages_per_pair * pairs, [&](Pe& pe, auto& words) {
    for (std::size_t to = 0; to < pes; ++to) {
      if (pe.id() / pes_per_process != to / pes_per_process) send_some(words, to);
    }
  });
}

TEST(FramesOfRoutes, a_pe_that_sends_to_processes_posts_a_frame_for_each_of_them) {
  const Frames ww = frames_between(16, 4, grid(1)), wps = frames_between(16, 4, grid(1, Scheme::wps));
  EXPECT_EQ(ww.all, 16u * 12);
  EXPECT_EQ(ww.between_processes, ww.all);
  EXPECT_EQ(wps.between_processes, 16u * 3);
  EXPECT_LE(wps.all, 16u * (3 + 9));  // a PE passes the frames of 3 processes on to 3 PEs, each frame alone or together
  // A last process of one PE, which passes on nothing.
  EXPECT_EQ(frames_between(13, 4, grid(1, Scheme::wps)).between_processes, 13u * 3);
}

TEST(FramesOfRoutes, processes_that_fill_buffers_together_post_one_for_each_process_and_a_third_of_the_frames_in_all) {
  for (const std::size_t pes : {16, 32, 64}) {
    const std::size_t processes = pes / 4;
    const Frames ww = frames_between(pes, 4, grid(1)), pp = frames_between(pes, 4, grid(1, Scheme::pp));
    EXPECT_EQ(ww.all, pes * (pes - 4));
    EXPECT_EQ(pp.between_processes, processes * (processes - 1));
    EXPECT_LE(3 * pp.all, ww.all) << pes << " PEs";
  }
  EXPECT_EQ(frames_between(13, 4, grid(1, Scheme::pp)).between_processes, 4u * 3);
}

TEST(FramesOfRoutes, a_grid_of_processes_takes_frames_to_its_rows_and_columns) {
  const Frames straight = frames_between(32, 2, grid(1, Scheme::wps));
  const Frames over_rows = frames_between(32, 2, grid(2, Scheme::wps));
  EXPECT_EQ(straight.between_processes, 32u * 15);
  EXPECT_LE(over_rows.between_processes, 32u * (3 + 3 + 3 * 3));
}

TEST(FramesOfRoutes, messages_within_a_process_do_not_leave_it) {
  for (const Topology topology : {grid(1, Scheme::wps), grid(2, Scheme::wps), grid(1, Scheme::pp)}) {
    const Frames frames = frames_of({12, 4}, topology, messages_per_pair * 48, [](Pe& pe, auto& words) {
      for (std::size_t i = 0; i < 4; ++i) send_some(words, pe.id() / 4 * 4 + i);
    });
    EXPECT_EQ(frames.between_processes, 0u);
    EXPECT_EQ(frames.all, 48u);
  }
}

/// Every PE sends so many messages to every other.
Frames frames_of_all_to_all(const Spread& spread, Topology topology, std::uint64_t per_pair) {
  return frames_of(spread, topology, per_pair * spread.pes * spread.pes, [&](Pe& pe, auto& words) {
    for (std::uint64_t i = 0; i < per_pair; ++i) {
      for (std::size_t to = 0; to < spread.pes; ++to) words.send((pe.id() + to) % spread.pes, i);
    }
  });
}

TEST(FramesOverHosts, are_one_for_each_pe_and_other_host_or_one_for_each_pair_of_hosts_where_messages_are_few) {
  const Spread four_hosts{.pes = 16, .pes_per_host = {4}};
  EXPECT_EQ(frames_of_all_to_all(four_hosts, grid(1), 10).between_hosts, 16u * 12);
  EXPECT_EQ(frames_of_all_to_all(four_hosts, grid(1, Scheme::whs), 10).between_hosts, 16u * 3);
  // A PE that sends for its host flushes when it waits for the end. Other PEs may still send to it then.
  const std::uint64_t together = frames_of_all_to_all(four_hosts, grid(1, Scheme::hh), 10).between_hosts;
  EXPECT_GE(together, 4u * 3);
  EXPECT_LT(together, 16u * 3);
}

TEST(FramesOverHosts, are_several_times_fewer_at_equal_memory_where_buffers_are_filled) {
  const Spread four_hosts{.pes = 16, .pes_per_host = {4}};
  for (const std::uint64_t per_pair : {200, 3'000}) {
    const Frames straight = frames_of_all_to_all(four_hosts, grid(1), per_pair);
    for (const Scheme scheme : {Scheme::whs, Scheme::hh}) {
      Spread larger = four_hosts;
      larger.buffer_bytes = 16_KiB;
      const Frames over_hosts = frames_of_all_to_all(larger, grid(1, scheme), per_pair);
      EXPECT_LE(over_hosts.peak_buffer_bytes, straight.peak_buffer_bytes);
      // A PE that waits for the end forwards each arriving message at once.
      const unsigned times = scheme == Scheme::whs ? 3 : 2;
      EXPECT_LE(times * over_hosts.between_hosts, straight.between_hosts) << to_string(grid(1, scheme));
    }
  }
}

TEST(FramesOverHosts, arrive_where_hosts_are_of_different_sizes) {
  for (const std::vector<std::size_t>& sizes : {std::vector<std::size_t>{5, 1, 3}, {1, 7}, {2, 2, 1}, {13}, {1}}) {
    for (const Topology topology :
         {grid(1, Scheme::whs), grid(2, Scheme::whs), grid(1, Scheme::hh), grid(2, Scheme::hh), grid(6, Scheme::hh)}) {
      const Frames frames = frames_of_all_to_all({.pes = 13, .pes_per_host = sizes}, topology, 50);
      EXPECT_EQ(frames.between_hosts == 0, sizes[0] == 13);
    }
  }
}

TEST(BuffersOfAProcess, small_messages_gather_also_where_many_pes_share_one) {
  std::uint64_t alone = 0, between_processes = 0;
  launch::SimulateOptions simulated{.pes = 64, .budget_bytes = 16_MiB};
  simulated.conditions.pes_per_process = 32;
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Aggregator<std::string_view> texts(
        pe, {.buffer_bytes = 8_KiB, .timeout = no_timeout, .topology = grid(1, Scheme::pp), .flush_when_idle = false});
    texts.on([](std::string_view) {});
    for (std::uint64_t i = 0; i < messages_per_pair; ++i) texts.send((pe.id() + 32) % 64, std::string(200, 'x'));
    EXPECT_EQ(pe.quiesce(), 64 * messages_per_pair);
    alone += texts.statistics().alone;
    between_processes += texts.statistics().frames_between_processes;
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(alone, 0u);
  EXPECT_LE(between_processes, 64 * messages_per_pair * 200 / 4_KiB);
}

TEST(BuffersOfAProcess, count_as_open_buffers_of_the_pe_that_opened_them) {
  launch::SimulateOptions simulated{.pes = 8, .budget_bytes = 16_MiB};
  simulated.conditions.pes_per_process = 4;
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Aggregator<std::uint64_t> words(
        pe, {.buffer_bytes = 16_KiB, .timeout = no_timeout, .topology = grid(1, Scheme::pp), .flush_when_idle = false});
    words.on([](std::uint64_t) {});
    if (pe.id() == 0) {  // one of its own after the other
      for (std::uint64_t i = 0; i < 8_KiB / 8; ++i) words.send(4, i);
    }
    pe.quiesce();
    const AggregatorStatistics statistics = words.statistics();
    EXPECT_EQ(statistics.peak_buffer_bytes, pe.id() == 0 ? 4_KiB + 16_KiB : 0);
    EXPECT_GE(statistics.peak_target_bytes, statistics.peak_buffer_bytes);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

// --- what an idle PE sends to other hosts

/// On a grid of 8 x 8 PEs each sends one message to all others and waits until as many have come. Frames of all.
std::uint64_t frames_where_idle_pes_pass_on(std::vector<std::size_t> pes_per_host) {
  constexpr std::size_t pes = 64;
  std::uint64_t frames = 0;
  launch::SimulateOptions simulated{.pes = pes, .budget_bytes = 16_MiB};
  simulated.conditions.pes_per_host = std::move(pes_per_host);
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 4_KiB, .topology = grid(2)});
    std::size_t handled = 0;
    words.on([&](std::uint64_t) { ++handled; });
    for (std::size_t step = 1; step < pes; ++step) words.send((pe.id() + step) % pes, step);
    wait_until(pe, [&] { return handled == pes - 1; });
    pe.quiesce();
    frames += words.statistics().frames;
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  return frames;
}

TEST(IdlePes, forward_fewer_frames_to_other_hosts_because_they_poll_between_any_two) {
  const std::uint64_t at_once = frames_where_idle_pes_pass_on({}), in_turn = frames_where_idle_pes_pass_on({1});
  EXPECT_LE(double(in_turn), 0.85 * double(at_once)) << in_turn << " and " << at_once;
}

TEST(IdlePes, send_one_frame_between_two_polls_and_the_rest_when_they_stop_waiting) {
  std::size_t handled = 0;
  launch::SimulateOptions simulated{.pes = 4};
  simulated.conditions.pes_per_host = {1};
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Aggregator<std::uint64_t> words(pe, {.buffer_bytes = 4_KiB, .timeout = no_timeout, .topology = grid(2)});
    words.on([&](std::uint64_t) { ++handled; });
    if (pe.id() == 0) {
      words.send(1, 1);  // in the own row: the last hop
      words.send(2, 1);
      std::size_t looks = 0;
      wait_until(pe, [&] {
        EXPECT_EQ(words.statistics().frames, looks);
        return ++looks == 2;
      });
      EXPECT_EQ(words.statistics().flush_idle, 2u);
      // A PE that does not wait may not poll again soon.
      words.send(1, 1);
      words.send(2, 1);
      pe.progress();
      EXPECT_EQ(words.statistics().flush_idle, 4u);
    }
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
  EXPECT_EQ(handled, 4u);
}

}  // namespace
}  // namespace headway
