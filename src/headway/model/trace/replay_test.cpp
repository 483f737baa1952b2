// SPDX-License-Identifier: BSD-3-Clause
/// Replays of traces made by hand, against times worked out by hand.
#include <gtest/gtest.h>

#include <headway/base/error.hpp>
#include <headway/model/trace/made_trace_test.hpp>
#include <headway/model/trace/slopes.hpp>

namespace headway::model::trace {
namespace {

using base::DialSettings;

/// Two frames there and back: 100 ns of work, 1000 of network, 100 of work, 1000 of network, 100 of work.
std::vector<PeTrace> ping_pong() {
  return {MadeTrace(0, 2).post(100, 1).wait(100).take(2200, 1).go_on(2300).end(2300),
          MadeTrace(1, 2).wait(0).take(1100, 0).post(1200, 0, Phase::handling).go_on(1200).end(1200)};
}

TEST(Replay, without_dials_a_run_takes_as_long_as_it_did) {
  const Graph graph = graph_of(ping_pong());
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 2300);
  EXPECT_DOUBLE_EQ(graph.run_ns, 2300);
  EXPECT_EQ(replay.forced(), 0u);
}

TEST(Replay, a_ping_pong_has_four_overheads_and_two_latencies) {
  const Graph graph = graph_of(ping_pong());
  Replay replay(graph);
  const Path path = replay.path({});
  EXPECT_EQ(path.overheads, 4);
  EXPECT_EQ(path.latencies, 2);
  EXPECT_EQ(path.items, 2 * MadeTrace::messages);
  EXPECT_EQ(path.gap_bytes, 2 * MadeTrace::bytes);
  EXPECT_EQ(path.gaps, 0);
  EXPECT_DOUBLE_EQ(path.network_ns, 2000);
  EXPECT_DOUBLE_EQ(path.work_ns[0], 200);
  EXPECT_DOUBLE_EQ(path.work_ns[1], 100);
  EXPECT_DOUBLE_EQ(replay.run({.overhead_ns = 1000}), 6300);
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 1000}), 4300);
  EXPECT_DOUBLE_EQ(replay.run({.gap_ns = 1000}), 2300);
  EXPECT_DOUBLE_EQ(replay.run({.gap_per_byte_ns = 2}), 2700);
  EXPECT_DOUBLE_EQ(replay.run({.item_overhead_ns = 10}), 2360);
}

/// PE 0 posts five frames, 100 ns apart. PE 1 works 50 ns on each and passes it on to PE 2, which works 10 ns.
std::vector<PeTrace> pipeline() {
  MadeTrace first(0, 3), second(1, 3), third(2, 3);
  second.wait(0, Phase::quiescing);
  third.wait(0, Phase::quiescing);
  for (int i = 1; i <= 5; ++i) {
    first.post(100 * i, 1);
    second.take(100 * i + 1000, 0, Phase::quiescing).post(100 * i + 1050, 2, Phase::handling).none(100 * i + 1050);
    third.take(100 * i + 2050, 1, Phase::quiescing).none(100 * i + 2060);
  }
  return {first.end(500), second.go_on(1550).end(1550), third.go_on(2560).end(2560)};
}

TEST(Replay, a_pipeline_is_as_slow_as_its_slowest_stage) {
  const Graph graph = graph_of(pipeline());
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 2560);
  // below 100 ns no frame waits for another one on the first PE; above it five frames have four gaps
  EXPECT_DOUBLE_EQ(replay.run({.gap_ns = 90}), 2560);
  EXPECT_DOUBLE_EQ(replay.run({.gap_ns = 300}), 2560 + 4 * 200);
  EXPECT_EQ(replay.path({.gap_ns = 300}).gaps, 4);
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 700}), 2560 + 2 * 700);
  // o = 1000 on the second PE: a frame takes 2 o + 50 there, and it has five of them; then one more on the third
  EXPECT_DOUBLE_EQ(replay.run({.overhead_ns = 1000}), 100 + 1000 + 1000 + 5 * 2050 + 1000 + 1000 + 10);
}

TEST(Replay, the_parts_of_the_longest_path_sum_up_to_the_run_time) {
  for (const auto& traces : {ping_pong(), pipeline()}) {
    const Graph graph = graph_of(traces);
    Replay replay(graph);
    for (const Parameter& parameter : parameters()) {
      for (const double value : {0.0, 0.5, 10.0, 90.0, 300.0, 1000.0}) {
        const DialSettings dials = dial(parameter, value);
        EXPECT_NEAR(replay.path(dials).total_ns(dials), replay.run(dials), 1e-6) << parameter.name << "=" << value;
      }
    }
  }
}

/// PE 2 works 10000 ns beside a ping-pong of 2300 ns.
std::vector<PeTrace> two_paths() {
  return {MadeTrace(0, 3).post(100, 1).wait(100).take(2200, 1).go_on(2300).end(2300),
          MadeTrace(1, 3).wait(0).take(1100, 0).post(1200, 0, Phase::handling).go_on(1200).end(1200),
          MadeTrace(2, 3).end(10'000)};
}

TEST(Slopes, another_path_takes_over_where_the_lines_cross) {
  const Graph graph = graph_of(two_paths());
  Replay replay(graph);
  EXPECT_EQ(replay.path({}).latencies, 0);
  EXPECT_DOUBLE_EQ(replay.path({}).work_ns[2], 10'000);
  const auto value = [&](const char* name) {
    for (const Parameter& parameter : parameters()) {
      if (std::string(parameter.name) == name) return critical_value(replay, parameter).value_or(-1);
    }
    return -2.0;
  };
  EXPECT_NEAR(value("L"), 7700 / 2.0, 1e-6);
  EXPECT_NEAR(value("o"), 7700 / 4.0, 1e-6);
  EXPECT_NEAR(value("G"), 7700 / 200.0, 1e-6);
  EXPECT_NEAR(value("item_o"), 7700 / 6.0, 1e-6);
  EXPECT_EQ(value("g"), -1);
  const Parameter& latency = parameters()[3];
  ASSERT_STREQ(latency.name, "L");
  EXPECT_NEAR(value_of_factor(replay, latency, 1.01).value_or(0), 7800 / 2.0, 0.001 * 3900);
  EXPECT_NEAR(value_of_factor(replay, latency, 1.05).value_or(0), 8200 / 2.0, 0.001 * 4100);
  EXPECT_FALSE(value_of_factor(replay, parameters()[2], 1.01).has_value());
  EXPECT_NEAR(value_of_factor(replay, latency, 1).value_or(0), 7700 / 2.0, 0.001 * 3850);
  EXPECT_THROW(value_of_factor(replay, latency, 0.5), SettingError);
}

// The PE took the frame while it worked. With a longer latency it takes it later, and loses no time.
TEST(Replay, a_frame_that_no_wait_needs_delays_no_work) {
  const std::vector<PeTrace> traces = {
      MadeTrace(0, 2).post(100, 1).end(100),
      MadeTrace(1, 2).take(2000, 0, Phase::working).none(2100).wait(5000, Phase::quiescing).go_on(5000).end(5000)};
  const Graph graph = graph_of(traces);
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 5000);
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 4000}), 5000 - 100);  // its handler's work is left out
}

// PE 1 works until 5000, and then waits for all: it needs the frame that it took before.
TEST(Replay, quiescence_needs_all_frames_before) {
  const std::vector<PeTrace> traces = {MadeTrace(0, 2).post(100, 1).post(5900, 1).end(5900),
                                       MadeTrace(1, 2)
                                           .take(2000, 0, Phase::working)
                                           .none(2100)
                                           .wait(5000, Phase::quiescing)
                                           .take(6000, 0, Phase::quiescing)
                                           .go_on(6100)
                                           .end(6100)};
  const Graph graph = graph_of(traces);
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 6100);
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 4000}), 10'100);
  EXPECT_EQ(replay.forced(), 0u);
}

// The PE answers two requests in one frame that it posts when it has nothing else to do.
TEST(Replay, a_post_in_a_wait_follows_the_frames_handled_before) {
  const std::vector<PeTrace> traces = {MadeTrace(0, 3).post(100, 1).wait(100).take(3300, 1).go_on(3300).end(3300),
                                       MadeTrace(1, 3)
                                           .wait(0, Phase::quiescing)
                                           .take(1100, 0, Phase::quiescing)
                                           .none(1150)
                                           .take(2100, 2, Phase::quiescing)
                                           .none(2200)
                                           .post(2300, 0, Phase::quiescing)
                                           .go_on(2400)
                                           .end(2400),
                                       MadeTrace(2, 3).post(1000, 1).end(1000)};
  const Graph graph = graph_of(traces);
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 3300);
  EXPECT_EQ(replay.path({}).latencies, 2);
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 500}), 4300);
}

/// PE 0 and PE 1, its root, take part in three waves of quiescence; the way takes 5000 ns. Three messages of PE 2 are
/// there before the first one.
std::vector<PeTrace> waves() {
  MadeTrace member(0, 3), root(1, 3);
  constexpr auto how = Phase::quiescing;
  member.wait(100, how).control_post(150, 1).none(150);
  root.wait(0, how).take(1100, 2, how).take(1120, 2, how).take(1140, 2, how).none(1200);
  root.control_take(1250, 0).none(1250).control_post(1250, 0).none(1250);
  for (std::int64_t begin = 1250; begin < 20'000; begin += 10'000) {
    member.control_take(begin + 5000, 1).none(begin + 5000).control_post(begin + 5000, 1).none(begin + 5000);
    root.control_take(begin + 10'000, 0).none(begin + 10'000).control_post(begin + 10'000, 0).none(begin + 10'000);
  }
  return {member.control_take(26'250, 1).go_on(26'250).end(26'250), root.go_on(21'250).end(21'250),
          MadeTrace(2, 3).post(100, 1).post(100, 1).post(100, 1).end(100)};
}

TEST(Replay, a_wave_goes_round_while_messages_are_on_their_way_and_the_last_two_wait_for_them) {
  const Graph graph = graph_of(waves());
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 26'250);
  EXPECT_EQ(replay.forced(), 0u);
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 700}), 26'250 + 6 * 700);
  EXPECT_EQ(replay.path({.latency_ns = 700}).latencies, 6);
  // The last message leaves at 12100, and is handled at 13180. The second wave, not the first one, waits for it.
  EXPECT_DOUBLE_EQ(replay.run({.gap_ns = 6000}), 26'250 + (13'180 - 11'250));
}

// PE 2 leaves its first quiescence before PE 0 does, and posts a message of the next phase.
TEST(Replay, a_quiescence_needs_no_message_of_the_next_phase) {
  constexpr auto how = Phase::quiescing;
  const std::vector<PeTrace> traces = {
      MadeTrace(0, 3)
          .wait(0, how)
          .take(1160, 2, how)
          .none(1160)
          .control_take(1200, 1)
          .go_on(1200)
          .wait(6200, how)
          .control_take(6300, 1)
          .go_on(6300)
          .end(6300),
      MadeTrace(1, 3)
          .wait(0, how)
          .control_post(100, 2)
          .control_post(200, 0)
          .go_on(200)
          .wait(5000, how)
          .control_post(5300, 0)
          .go_on(5300)
          .end(5300),
      MadeTrace(2, 3).wait(0, how).control_take(1100, 1).go_on(1100).post(1150, 0).end(1150)};
  const Graph graph = graph_of(traces);
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 6300);
  // The message arrives at 2160, and PE 0 goes on at 1700.
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 500}), 6800);
}

// PE 0 has a request in its buffer when it begins to wait, and finds the request of PE 1. It posts both at once.
TEST(Replay, a_buffer_that_the_program_has_filled_needs_no_frame) {
  const std::vector<PeTrace> traces = {
      MadeTrace(0, 3)
          .busy_wait(2000)
          .take(2100, 1)
          .none(2200)
          .post(2200, 2)
          .post(2300, 1)
          .none(2300)
          .take(4200, 2)
          .go_on(4200)
          .end(4200),
      MadeTrace(1, 3).post(100, 0).wait(100).take(3300, 0).go_on(3300).end(3300),
      MadeTrace(2, 3).wait(0).take(3200, 0).post(3200, 0, Phase::handling).go_on(3200).end(3200)};
  const Graph graph = graph_of(traces);
  Replay replay(graph);
  EXPECT_DOUBLE_EQ(replay.run({}), 4200);
  // The request of PE 1 arrives at 100 + 1000 + 3000. That of PE 0 leaves at 2000, and its answer is there at 10000.
  EXPECT_DOUBLE_EQ(replay.run({.latency_ns = 3000}), 10'000);
}

TEST(Graph, traces_that_contradict_one_another_are_refused) {
  const PeTrace whole = MadeTrace(0, 2).post(100, 1).end(200);
  EXPECT_THROW(graph_of({whole, MadeTrace(1, 2).take(300, 0).take(400, 0).end(500)}), SystemError);
  EXPECT_THROW(graph_of({whole, whole}), SystemError);
  EXPECT_EQ(graph_of({whole, MadeTrace(1, 2).end(500)}).lost, 1u);
}

}  // namespace
}  // namespace headway::model::trace
