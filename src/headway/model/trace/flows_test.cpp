// SPDX-License-Identifier: BSD-3-Clause
/// Frames joined from both sides, and clocks of hosts.
#include <gtest/gtest.h>

#include <headway/model/trace/flows.hpp>
#include <headway/model/trace/made_trace_test.hpp>

namespace headway::model::trace {
namespace {

using State = FrameEnd::State;

Flows flows_of(const std::vector<PeTrace>& traces) {
  Flows flows(traces.size());
  for (const PeTrace& trace : traces) flows.add(trace);
  flows.finish();
  return flows;
}

PeTrace on_host(PeTrace trace, std::uint32_t host, std::int64_t clock_ahead_ns = 0) {
  trace.header.host = host;
  trace.header.process = 100 + trace.header.pe;
  for (Record& record : trace.records) record.time_ns += clock_ahead_ns;
  return trace;
}

/// Two PEs that each send the other one `frames` frames, of `ns` each way.
std::vector<PeTrace> exchange(std::size_t frames, std::int64_t there_ns, std::int64_t back_ns) {
  MadeTrace first(0, 2), second(1, 2);
  std::int64_t at = 100;
  for (std::size_t frame = 0; frame < frames; ++frame, at += 10'000) {
    first.post(at, 1).take(at + 5000 + back_ns, 1);
    second.take(at + there_ns, 0).post(at + 5000, 0);
  }
  return {first.end(at + 50'000), second.end(at + 50'000)};
}

TEST(Flows, every_frame_that_was_taken_has_one_number_at_both_ends) {
  const Flows flows = flows_of({MadeTrace(0, 2).post(100, 1).post(200, 1).take(900, 1).end(1000),
                                MadeTrace(1, 2).take(300, 0).take(400, 0).post(500, 0).end(1000)});
  EXPECT_EQ(flows.counts().joined, 3u);
  EXPECT_EQ(flows.counts().undelivered, 0u);
  ASSERT_EQ(flows.of(0).size(), 3u);
  ASSERT_EQ(flows.of(1).size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const FrameEnd &here = flows.of(0)[i], &there = flows.of(1)[i];
    EXPECT_EQ(here.number, there.number);
    EXPECT_NE(here.number, 0u);
    EXPECT_EQ(here.other_ns, there.time_ns);
    EXPECT_EQ(there.other_ns, here.time_ns);
    EXPECT_NE(here.is_posted, there.is_posted);
  }
}

TEST(Flows, a_frame_that_is_never_taken_is_undelivered) {
  const Flows flows = flows_of({MadeTrace(0, 2).post(100, 1).post(200, 1).control_post(250, 1).end(1000),
                                MadeTrace(1, 2).take(300, 0).end(1000)});
  EXPECT_EQ(flows.counts().joined, 1u);
  EXPECT_EQ(flows.counts().undelivered, 1u);
  EXPECT_EQ(flows.counts().undelivered_control, 1u);
  EXPECT_EQ(flows.of(0)[1].state, State::undelivered);
}

TEST(Flows, frames_that_the_receiver_may_have_lost_are_not_called_undelivered) {
  MadeTrace sender(0, 3);
  PeTrace receiver = MadeTrace(1, 3).take(250, 0).take(350, 0).take(450, 0).end(1000);
  receiver.lost = 2;  // `begin` and the frame posted at 100
  receiver.records.erase(receiver.records.begin(), receiver.records.begin() + 2);
  PeTrace other = MadeTrace(2, 3).end(1000);
  const Flows flows = flows_of({sender.post(100, 1).post(300, 1).post(400, 1).post(500, 1).end(1000), receiver, other});
  EXPECT_EQ(flows.counts().joined, 2u);
  EXPECT_EQ(flows.of(0)[0].state, State::unknown);
  EXPECT_EQ(flows.of(0)[1].state, State::joined);
  EXPECT_EQ(flows.of(0)[3].state, State::undelivered);
}

TEST(Flows, a_frame_without_its_post_has_no_number) {
  PeTrace sender = MadeTrace(0, 2).post(100, 1).post(200, 1).end(1000);
  sender.lost = 2;
  sender.records.erase(sender.records.begin(), sender.records.begin() + 2);
  const Flows flows = flows_of({sender, MadeTrace(1, 2).take(300, 0).take(400, 0).end(1000)});
  EXPECT_EQ(flows.counts().joined, 1u);
  EXPECT_EQ(flows.counts().unknown, 1u);
  EXPECT_EQ(flows.of(1)[0].state, State::unknown);
  EXPECT_EQ(flows.of(1)[0].number, 0u);
}

TEST(Flows, sequences_may_wrap) {
  PeTrace sender = MadeTrace(0, 2).post(100, 1).post(200, 1).post(300, 1).end(1000);
  PeTrace receiver = MadeTrace(1, 2).take(400, 0).take(500, 0).end(1000);
  for (std::uint32_t i = 0; i < 3; ++i) sender.records[1 + i].sequence = 0xffffffff + i;
  receiver.records[1].sequence = 0xffffffff;
  receiver.records[2].sequence = 0;
  const Flows flows = flows_of({sender, receiver});
  EXPECT_EQ(flows.counts().joined, 2u);
  EXPECT_EQ(flows.of(0)[1].number, flows.of(1)[1].number);
  EXPECT_EQ(flows.of(0)[2].state, State::undelivered);
}

TEST(Flows, frames_for_other_PEs_of_a_process_are_not_joined_with_wrong_ones) {
  PeTrace sender = on_host(MadeTrace(0, 3).post(100, 2).post(200, 2).end(1000), 0);
  sender.records[1].is_foreign = 1;  // of PE 1, which shares the process
  PeTrace second = on_host(MadeTrace(1, 3).post(150, 2).end(1000), 0);
  second.header.process = sender.header.process;
  const Flows flows =
      flows_of({sender, second, on_host(MadeTrace(2, 3).take(300, 0).take(400, 1).take(500, 1).end(1000), 0)});
  EXPECT_EQ(flows.counts().joined, 0u);
  EXPECT_EQ(flows.counts().undelivered, 0u);
  EXPECT_EQ(flows.counts().unknown, 6u);
}

TEST(Flows, times_begin_at_0_and_hosts_are_aligned_by_their_fastest_frames) {
  std::vector<PeTrace> traces = exchange(3, 2000, 2000);
  traces[0] = on_host(traces[0], 7);
  traces[1] = on_host(traces[1], 3, 1'000'000'000);
  const Flows flows = flows_of(traces);
  EXPECT_EQ(flows.hosts(), 2u);
  ASSERT_EQ(flows.clocks().size(), 2u);
  EXPECT_EQ(flows.clocks()[1].offset_ns, 1'000'000'000);
  EXPECT_EQ(flows.clocks()[1].residual_ns, 2000);
  EXPECT_EQ(flows.of(0)[0].time_ns, 100);
  EXPECT_EQ(flows.of(1)[0].time_ns, 2100);
  EXPECT_EQ(flows.counts().backward, 0u);
  EXPECT_EQ(flows.end_ns(), 80'100);
}

TEST(Flows, the_residual_bounds_the_error_of_unequal_ways) {
  std::vector<PeTrace> traces = exchange(3, 3000, 1000);
  traces[1] = on_host(traces[1], 1, 500'000);
  const Flows flows = flows_of(traces);
  const std::int64_t error = flows.clocks()[1].offset_ns - 500'000;
  EXPECT_EQ(error, 1000);
  EXPECT_EQ(flows.clocks()[1].residual_ns, 2000);
  EXPECT_EQ(flows.counts().backward, 0u);
}

TEST(Flows, hosts_without_frames_in_both_directions_use_the_clock_of_day) {
  std::vector<PeTrace> traces = {on_host(MadeTrace(0, 2).post(100, 1).end(9000), 0),
                                 on_host(MadeTrace(1, 2).take(2100, 0).end(9000), 1, 70'000)};
  traces[0].header.began_ns = 1'000'000'000;
  traces[1].header.began_ns = 1'000'000'000;
  traces[1].header.began_at_ns = 70'000;
  const Flows flows = flows_of(traces);
  EXPECT_EQ(flows.clocks()[1].offset_ns, 70'000);
  EXPECT_FALSE(flows.clocks()[1].residual_ns);
  EXPECT_EQ(flows.of(1)[0].time_ns, 2100);
}

TEST(Flows, hosts_of_a_simulated_run_have_one_clock) {
  std::vector<PeTrace> traces = exchange(2, 3000, 1000);
  traces[1] = on_host(traces[1], 1);
  for (PeTrace& trace : traces) trace.header.clock = Clock::simulated;
  const Flows flows = flows_of(traces);
  EXPECT_EQ(flows.clocks()[1].offset_ns, 0);
  EXPECT_EQ(flows.of(1)[0].time_ns, 3100);
}

TEST(HostClocks, a_host_is_aligned_over_others_if_that_is_more_exact) {
  HostClocks clocks(4);
  auto frames = [&](std::size_t a, std::size_t b, std::int64_t ahead, std::int64_t one_way) {
    clocks.add_frame(a, b, one_way + ahead);
    clocks.add_frame(b, a, one_way - ahead);
  };
  frames(0, 1, 500, 10);
  frames(1, 2, 500, 20);
  frames(0, 2, 1300, 900);  // slow, and wrong by 300
  clocks.add_frame(0, 3, 5);
  const auto aligned = clocks.align({0, 0, 0, 42});
  EXPECT_EQ(aligned[1].offset_ns, 500);
  EXPECT_EQ(aligned[2].offset_ns, 1000);
  EXPECT_EQ(aligned[2].residual_ns, 20);
  EXPECT_EQ(aligned[3].offset_ns, 42);
  EXPECT_FALSE(aligned[3].residual_ns);
}

}  // namespace
}  // namespace headway::model::trace
