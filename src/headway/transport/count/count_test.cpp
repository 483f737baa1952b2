// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <headway/transport/count/endpoint.hpp>
#include <headway/transport/sim/world.hpp>
#include <string>
#include <utility>
#include <vector>

namespace headway::count {
namespace {

using Posted = transport::Endpoint::Posted;

/// One PE of a simulated world, with counts. The test sets its activity.
class Pe {
 public:
  explicit Pe(transport::Endpoint& inner) : endpoint(inner, [this] { return activity; }) {}

  void send(std::size_t target, std::size_t payload_bytes, std::uint32_t count = 1,
            transport::FrameKind kind = transport::FrameKind::messages) {
    transport::Frame* const frame = endpoint.try_claim(transport::frame_overhead + payload_bytes, 0);
    ASSERT_NE(frame, nullptr);
    frame->header = {};
    frame->header.payload_bytes = std::uint32_t(payload_bytes);
    frame->header.count = count;
    frame->header.source = std::uint16_t(endpoint.id());
    frame->header.kind = std::uint8_t(kind);
    std::memset(frame->payload(), 0, payload_bytes);
    Posted posted = Posted::refused;
    while ((posted = endpoint.try_post(target, frame, frame->payload() + payload_bytes, true)) == Posted::refused)
      endpoint.sleep(1'000);
    if (posted != Posted::lent) endpoint.drop(frame);
  }
  void receive() {
    transport::Arrival arrival;
    while (!endpoint.poll(arrival)) endpoint.sleep(1'000'000'000);
    endpoint.release(arrival);
  }
  void receive_waiting(Activity how) {
    activity = how;
    receive();
    activity = Activity::working;
  }

  Activity activity = Activity::working;
  CountedEndpoint endpoint;
};

/// The counts of each PE after `body`.
std::vector<PeCounts> counts_of(std::size_t pes, const std::function<void(Pe&)>& body,
                                const sim::Conditions& conditions = {}) {
  sim::World world({.pes = pes, .conditions = conditions, .frame_memory_bytes = std::size_t(1) << 20});
  std::vector<PeCounts> counts(pes);
  const sim::World::End end = world.run(
      [&](std::size_t id) {
        Pe pe(world.endpoint(id));
        body(pe);
        counts[id] = pe.endpoint.counts();
      },
      sim::forever / 2, [] { return true; });
  EXPECT_EQ(end, sim::World::End::finished);
  return counts;
}

TEST(Counts, frames_bytes_and_messages_of_each_pe) {
  const std::vector<PeCounts> counts = counts_of(3, [](Pe& pe) {
    switch (pe.endpoint.id()) {
      case 0:
        pe.send(1, 100, 7);
        pe.send(1, 1000, 30);
        pe.send(2, 16, 1, transport::FrameKind::control);
        pe.send(0, 50);  // to itself: not counted
        pe.receive();
        break;
      case 1:
        pe.receive();
        pe.receive();
        break;
      default: pe.receive();
    }
  });
  EXPECT_EQ(counts[0].frames_sent, 3u);
  EXPECT_EQ(counts[0].bytes_sent, 3 * sizeof(transport::FrameHeader) + 1116);
  EXPECT_EQ(counts[0].messages_in_frames, 37u);
  EXPECT_EQ(counts[0].control_frames, 1u);
  EXPECT_EQ(counts[0].receivers, 2u);
  EXPECT_EQ(counts[0].frames_received, 0u);
  EXPECT_EQ(counts[1].frames_received, 2u);
  EXPECT_EQ(counts[1].bytes_received, 2 * sizeof(transport::FrameHeader) + 1100);
  EXPECT_EQ(counts[2].frames_received, 1u);
  EXPECT_EQ(counts[1].frames_sent + counts[2].frames_sent, 0u);
}

TEST(Counts, a_burst_ends_when_the_pe_waits_for_another) {
  const std::vector<PeCounts> counts = counts_of(2, [](Pe& pe) {
    const std::size_t other = 1 - pe.endpoint.id();
    for (unsigned round = 0; round < 5; ++round) {
      for (unsigned i = 0; i < 3; ++i) pe.send(other, 8);
      constexpr Activity how[] = {Activity::waiting, Activity::waiting_all, Activity::waiting_all, Activity::waiting,
                                  Activity::waiting};
      for (unsigned i = 0; i < 3; ++i) pe.receive_waiting(how[round]);
    }
    pe.endpoint.count_read();
    pe.send(other, 8);
    pe.receive();  // without waiting in the library: no turn
  });
  for (const PeCounts& pe : counts) {
    EXPECT_EQ(pe.bursts, 6u);
    EXPECT_EQ(pe.turns, 5u);
    EXPECT_EQ(pe.reads, 1u);
    EXPECT_EQ(pe.turns_of_all, 2u);
    EXPECT_GE(pe.waits_of_all, 2u);
    EXPECT_LT(pe.waits_of_all, pe.waits);
    // bursts of 3 frames at once, about 2 us apart, and one frame
    EXPECT_NEAR(double(pe.gap_delay_ns[10]), 16 * gap_ns_of(10) - double(pe.run_ns), 0.05 * 16 * gap_ns_of(10));
    EXPECT_LE(pe.gap_delay_ns[0], pe.gap_delay_ns[1]);
    EXPECT_EQ(pe.burst_frames_max, 3u);
    EXPECT_EQ(pe.frames_sent, 16u);
    EXPECT_GE(pe.waits, 5u);
    EXPECT_GT(pe.waiting_ns, 0u);
    EXPECT_LE(pe.waiting_ns + pe.burst_ns, pe.run_ns + pe.run_ns);
  }
}

TEST(Counts, a_wait_takes_the_latency_of_the_network) {
  sim::Conditions conditions;
  conditions.latency_ns = 50'000;
  const std::vector<PeCounts> counts = counts_of(
      2,
      [](Pe& pe) {
        for (unsigned round = 0; round < 10; ++round) {
          if (pe.endpoint.id() == 0) pe.send(1, 8);
          pe.receive_waiting(Activity::waiting);
          if (pe.endpoint.id() == 1) pe.send(0, 8);
        }
      },
      conditions);
  EXPECT_EQ(counts[0].waits, 10u);
  EXPECT_GE(counts[0].waiting_ns, 10 * 2 * 50'000u);
  EXPECT_LE(counts[0].waiting_ns, counts[0].run_ns);
}

TEST(Counts, charged_computation_passes_on_the_simulated_clock) {
  const std::vector<PeCounts> counts = counts_of(1, [](Pe& pe) { pe.endpoint.charge(5'000'000); });
  EXPECT_GE(counts[0].run_ns, 5'000'000u);
  EXPECT_LT(counts[0].run_ns, 6'000'000u);
}

TEST(Counts, posts_that_a_full_queue_refuses_are_retries) {
  sim::Conditions conditions;
  conditions.inbox_frames = 1;
  const std::vector<PeCounts> counts = counts_of(
      2,
      [](Pe& pe) {
        if (pe.endpoint.id() == 0) {
          for (unsigned i = 0; i < 4; ++i) pe.send(1, 8);
        } else {
          for (unsigned i = 0; i < 4; ++i) pe.receive();
        }
      },
      conditions);
  EXPECT_EQ(counts[0].frames_sent, 4u);
  EXPECT_GT(counts[0].retries, 0u);
}

TEST(Counts, aggregators_are_read_when_they_leave_and_at_the_end) {
  const AggregatorCounts first{.messages = 10, .full = 2, .peak_buffer_bytes = 100, .buffer_bytes = 64};
  const AggregatorCounts second{.messages = 5, .idle = 1, .peak_buffer_bytes = 50, .buffer_bytes = 128};
  const std::vector<PeCounts> counts = counts_of(1, [&](Pe& pe) {
    EXPECT_EQ(CountedEndpoint::of(pe.endpoint), &pe.endpoint);
    auto read = [](const void* self) { return *static_cast<const AggregatorCounts*>(self); };
    pe.endpoint.enter(&first, read);
    pe.endpoint.enter(&second, read);
    pe.endpoint.leave(&first);
    pe.endpoint.leave(&first);  // once
  });
  EXPECT_EQ(counts[0].aggregators.messages, 15u);
  EXPECT_EQ(counts[0].aggregators.full, 2u);
  EXPECT_EQ(counts[0].aggregators.idle, 1u);
  EXPECT_EQ(counts[0].aggregators.peak_buffer_bytes, 150u);
  EXPECT_EQ(counts[0].aggregators.buffer_bytes, 128u);
}

TEST(Counts, an_endpoint_of_a_run_without_counts_has_none) {
  sim::World world({.pes = 1, .frame_memory_bytes = std::size_t(1) << 20});
  EXPECT_EQ(CountedEndpoint::of(world.endpoint(0)), nullptr);
}

TEST(Counts, further_turns_of_one_wait_are_those_of_handlers) {
  const std::vector<PeCounts> counts = counts_of(2, [](Pe& pe) {
    const std::size_t other = 1 - pe.endpoint.id();
    for (unsigned wait = 0; wait < 4; ++wait) {
      for (unsigned answer = 0; answer < 3; ++answer) {
        pe.send(other, 8);
        pe.receive_waiting(Activity::waiting);
      }
      pe.endpoint.leave_wait();
    }
    pe.send(other, 8);
    pe.receive_waiting(Activity::waiting_all);
  });
  for (const PeCounts& pe : counts) {
    EXPECT_EQ(pe.turns, 13u);
    EXPECT_EQ(pe.turns_of_all, 1u);
    EXPECT_EQ(pe.turns_of_handlers, 8u);
  }
}

// A word in shared memory may end a wait. The computation after it does not count as waiting.
TEST(Counts, a_wait_that_ends_without_a_frame_is_forgotten) {
  const std::vector<PeCounts> counts = counts_of(2, [](Pe& pe) {
    if (pe.endpoint.id() == 1) {
      pe.endpoint.charge(30'000'000);
      return pe.send(0, 8);
    }
    transport::Arrival arrival;
    pe.activity = Activity::waiting;
    EXPECT_FALSE(pe.endpoint.poll(arrival));
    pe.activity = Activity::working;
    pe.endpoint.leave_wait();
    pe.endpoint.charge(20'000'000);
    pe.receive_waiting(Activity::waiting);
  });
  EXPECT_GE(counts[0].waiting_ns, 9'000'000u);
  EXPECT_LE(counts[0].waiting_ns, 12'000'000u);
}

std::uint64_t sum_of(const std::uint64_t (&ns)[spendings]) { return ns[0] + ns[1] + ns[2] + ns[3]; }

// Program, handlers, posts and polls alternate; some computation is charged in each of the two.
void work_and_exchange(Pe& pe) {
  const std::size_t other = 1 - pe.endpoint.id();
  for (unsigned round = 0; round < 10; ++round) {
    pe.endpoint.charge(7'001);
    pe.send(other, 100);
    pe.activity = Activity::waiting;
    transport::Arrival arrival;
    while (!pe.endpoint.poll(arrival)) pe.endpoint.sleep(1'000'000'000);
    pe.endpoint.charge(3'003);  // its handler
    pe.endpoint.release(arrival);
    pe.endpoint.end_handler();
    pe.activity = Activity::working;
    pe.endpoint.leave_wait();
  }
}

TEST(Times, on_a_simulated_clock_computation_is_what_was_charged) {
  sim::Conditions conditions;
  conditions.latency_ns = 50'000;
  const std::vector<PeCounts> counts = counts_of(2, work_and_exchange, conditions);
  for (const PeCounts& pe : counts) {
    EXPECT_EQ(pe.spent_ns[0], 10 * 7'001u);
    EXPECT_EQ(pe.spent_ns[1], 10 * 3'003u);
    EXPECT_EQ(sum_of(pe.spent_ns), pe.run_ns);
    EXPECT_GE(pe.spent_ns[2], 20 * conditions.overhead_ns);
    EXPECT_GE(pe.spent_ns[3], 10 * 50'000u);
  }
}

TEST(Times, charges_in_a_wait_are_not_waiting) {
  const std::vector<PeCounts> counts = counts_of(2, [](Pe& pe) {
    transport::Arrival arrival;
    pe.activity = Activity::waiting;
    EXPECT_FALSE(pe.endpoint.poll(arrival));
    pe.endpoint.charge(5'000);
    EXPECT_FALSE(pe.endpoint.poll(arrival));
    pe.activity = Activity::working;
    pe.endpoint.leave_wait();
  });
  EXPECT_EQ(counts[0].spent_ns[0], 5'000u);
  EXPECT_EQ(sum_of(counts[0].spent_ns), counts[0].run_ns);
}

TEST(Times, work_in_a_post_is_communication_and_tasks_are_handlers) {
  const std::vector<PeCounts> counts = counts_of(2, [](Pe& pe) {
    if (pe.endpoint.id() == 1) return;
    pe.endpoint.begin_work(transport::Observer::Work::handlers);
    pe.endpoint.charge(1'000);
    pe.endpoint.begin_work(transport::Observer::Work::communication);
    pe.endpoint.end_work();
    pe.endpoint.charge(500);
    pe.endpoint.end_work();
    pe.endpoint.charge(200);
  });
  EXPECT_EQ(counts[0].spent_ns[0], 200u);
  EXPECT_EQ(counts[0].spent_ns[1], 1'500u);
}

TEST(Times, parts_of_any_clock_sum_up_to_the_run_time) {
  for (const TimeSplit::Sums& sums :
       {TimeSplit::Sums{1, 2, 3, 4}, {0, 0, 0, 7}, {1ull << 50, 3, 1ull << 49, 12345}, {0, 0, 0, 0}}) {
    for (const std::uint64_t run_ns : {0ull, 10ull, 1'000'003ull, 1ull << 52}) {
      std::uint64_t ns[spendings];
      TimeSplit::to_ns(sums, run_ns, ns);
      EXPECT_EQ(sum_of(ns), run_ns);
    }
  }
}

TEST(Times, phases_have_the_times_of_those_inside) {
  sim::World world({.pes = 1, .frame_memory_bytes = std::size_t(1) << 20});
  std::vector<PhaseCounts> phases;
  world.run(
      [&](std::size_t id) {
        Pe pe(world.endpoint(id));
        for (unsigned round = 0; round < 3; ++round) {
          pe.endpoint.begin_phase("outer");
          pe.endpoint.charge(1'000);
          pe.endpoint.begin_phase("inner");
          pe.endpoint.charge(100);
          pe.endpoint.end_phase();
          pe.endpoint.end_phase();
        }
        pe.endpoint.begin_phase("inner");
        pe.endpoint.charge(7);
        pe.endpoint.end_phase();
        pe.endpoint.counts();
        phases = pe.endpoint.phases();
      },
      sim::forever / 2, [] { return true; });
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_STREQ(phases[0].name, "outer");
  EXPECT_STREQ(phases[1].name, "inner");
  EXPECT_EQ(phases[0].parent, no_parent);
  EXPECT_EQ(phases[1].parent, 0u);
  EXPECT_EQ(phases[2].parent, no_parent);
  EXPECT_EQ(phases[0].calls, 3u);
  EXPECT_EQ(phases[0].ns[0], 3'300u);
  EXPECT_EQ(phases[1].ns[0], 300u);
  EXPECT_EQ(phases[2].ns[0], 7u);
  EXPECT_EQ(phases[0].hardware[0], not_counted);
}

TEST(Times, many_different_phases_count_together) {
  sim::World world({.pes = 1, .frame_memory_bytes = std::size_t(1) << 20});
  std::vector<PhaseCounts> phases;
  world.run(
      [&](std::size_t id) {
        Pe pe(world.endpoint(id));
        for (unsigned i = 0; i < 200; ++i) {
          pe.endpoint.begin_phase("phase " + std::to_string(i));
          pe.endpoint.charge(10);
          pe.endpoint.end_phase();
        }
        pe.endpoint.counts();
        phases = pe.endpoint.phases();
      },
      sim::forever / 2, [] { return true; });
  ASSERT_EQ(phases.size(), phases_max);
  std::uint64_t sum = 0;
  for (const PhaseCounts& phase : phases) sum += phase.ns[0];
  EXPECT_EQ(sum, 2'000u);
}

}  // namespace
}  // namespace headway::count
