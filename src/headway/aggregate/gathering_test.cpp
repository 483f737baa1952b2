// SPDX-License-Identifier: BSD-3-Clause
// Messages that would be alone in their buffers go by themselves; simulated, where a PE is idle at the same times in
// every run.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/wait.hpp>
#include <headway/launch/simulation.hpp>
#include <string_view>
#include <vector>

namespace headway {
namespace {

using aggregate::Gathering;
using am::FlushReason;

constexpr unsigned singles = 4;  // buffers of one message before messages go by themselves

/// One that has learned that messages come one by one.
Gathering learned() {
  Gathering gathering;
  for (unsigned i = 0; i < singles; ++i) gathering.posted(FlushReason::idle, 1);
  return gathering;
}

TEST(Gathering, messages_are_sent_alone_after_some_buffers_in_a_row_with_one) {
  for (const FlushReason reason : {FlushReason::idle, FlushReason::timeout}) {
    Gathering gathering;
    for (unsigned i = 0; i < singles; ++i) {
      EXPECT_FALSE(gathering.sends_alone(i + 1));
      gathering.posted(reason, 1);
    }
    for (std::uint64_t idle = 10; idle < 1000; ++idle) EXPECT_TRUE(gathering.sends_alone(idle));
  }
}

TEST(Gathering, a_buffer_with_two_or_a_full_one_restarts_the_count) {
  for (const auto& [reason, messages] : {std::pair(FlushReason::idle, 2u), {FlushReason::full, 1u}}) {
    Gathering gathering;
    for (unsigned i = 0; i < 100; ++i) {
      EXPECT_FALSE(gathering.sends_alone(i + 1));
      gathering.posted(i % singles == 0 ? reason : FlushReason::idle, i % singles == 0 ? messages : 1);
    }
  }
}

TEST(Gathering, a_requested_flush_does_not_count) {
  Gathering gathering;
  for (unsigned i = 0; i < 100; ++i) gathering.posted(FlushReason::requested, 1);
  EXPECT_FALSE(gathering.sends_alone(1));
  Gathering alone = learned();
  for (unsigned i = 0; i < 100; ++i) alone.posted(FlushReason::requested, 100);
  EXPECT_TRUE(alone.sends_alone(1));
}

TEST(Gathering, a_second_message_before_the_pe_is_idle_again_gathers) {
  Gathering gathering = learned();
  EXPECT_TRUE(gathering.sends_alone(7));
  EXPECT_FALSE(gathering.sends_alone(7));
  EXPECT_FALSE(gathering.sends_alone(8));
}

TEST(Gathering, a_buffer_after_a_message_sent_alone_counts_that_one_too) {
  Gathering gathering = learned();
  EXPECT_TRUE(gathering.sends_alone(7));
  EXPECT_FALSE(gathering.sends_alone(7));
  gathering.posted(FlushReason::idle, 1);  // they were two
  for (unsigned i = 1; i < singles; ++i) gathering.posted(FlushReason::idle, 1);
  EXPECT_FALSE(gathering.sends_alone(8));
  gathering.posted(FlushReason::idle, 1);
  EXPECT_TRUE(gathering.sends_alone(8));
}

/// Runs body(pe) on two PEs, or more.
template <class Body>
void expect_simulated(Body body, std::size_t pes = 2) {
  const launch::SimulateResult result = launch::simulate({.pes = pes}, [&](Pe& pe) {
    body(pe);
    return 0;
  });
  EXPECT_EQ(result.status, 0) << result.text;
}

void progress_until_idle(Pe& pe) {
  while (pe.progress()) {
  }
}

TEST(OneByOne, a_message_and_its_answer_take_a_frame_each_and_no_buffer) {
  expect_simulated([](Pe& pe) {
    constexpr std::uint64_t trips = 500;
    Aggregator<std::uint64_t> balls(pe);
    std::uint64_t came = 0;
    balls.on([&](std::uint64_t trip) {
      ++came;
      if (pe.id() == 1) balls.send(0, trip);
      if (pe.id() == 0 && trip + 1 < trips) balls.send(1, trip + 1);
    });
    if (pe.id() == 0) balls.send(1, 0);
    wait_until(pe, [&] { return came == trips; });
    const AggregatorStatistics s = balls.statistics();
    EXPECT_EQ(s.messages, trips);
    EXPECT_EQ(s.frames, trips);
    EXPECT_EQ(s.alone, trips - singles);
    EXPECT_EQ(s.flush_idle, singles);
    pe.quiesce();
  });
}

/// Sends `bursts` times so many messages and is idle after each, having sent single ones before; returns the frames
/// that the bursts took.
template <class Send>
std::uint64_t frames_of_bursts(Pe& pe, const AggregatorOptions& options, unsigned bursts, unsigned messages,
                               Send send) {
  Aggregator<std::string_view> texts(pe, options);
  texts.on([](std::string_view) {});
  for (unsigned i = 0; i < 20; ++i) {
    send(texts);
    progress_until_idle(pe);
  }
  const std::uint64_t before = texts.statistics().frames;
  for (unsigned burst = 0; burst < bursts; ++burst) {
    for (unsigned i = 0; i < messages; ++i) send(texts);
    progress_until_idle(pe);
  }
  const std::uint64_t frames = texts.statistics().frames - before;
  pe.quiesce();
  return frames;
}

TEST(OneByOne, messages_that_come_together_gather_again) {
  expect_simulated([](Pe& pe) {
    for (const std::size_t bytes : {5, 100}) {
      const std::string text(bytes, 'x');
      for (const unsigned messages : {2, 3, 16}) {
        const std::uint64_t frames =
            frames_of_bursts(pe, {}, 100, messages, [&](auto& texts) { texts.send(1 - pe.id(), text); });
        EXPECT_GE(frames, 100u) << messages << " of " << bytes;
        EXPECT_LE(frames, 101u) << messages << " of " << bytes;  // the first burst's first goes by itself
      }
    }
  });
}

TEST(OneByOne, no_message_is_sent_alone_if_idle_buffers_stay) {
  expect_simulated([](Pe& pe) {
    using namespace std::chrono_literals;
    Aggregator<std::uint64_t> words(pe, {.timeout = 1us, .flush_when_idle = false});
    std::uint64_t came = 0;
    words.on([&](std::uint64_t) { ++came; });
    for (std::uint64_t i = 0; i < 100; ++i) {
      words.send(1 - pe.id(), i);
      wait_until(pe, [&] { return came == i + 1; });
    }
    EXPECT_EQ(words.statistics().alone, 0u);
    EXPECT_GT(words.statistics().flush_timeout, 50u);
    pe.quiesce();
  });
}

TEST(OneByOne, on_a_grid_only_messages_for_pes_one_hop_away_are_sent_alone) {
  expect_simulated(
      [](Pe& pe) {
        for (std::size_t distance = 0; distance < 4; ++distance) {
          Aggregator<std::uint64_t> words(pe, {.topology = grid(2)});
          words.on([](PeId, std::uint64_t) {});
          const std::size_t destination = pe.id() ^ distance;
          for (std::uint64_t i = 0; i < 50; ++i) {
            words.send(destination, i);
            progress_until_idle(pe);
            pe.quiesce();
          }
          const bool in_my_row = distance < 2;  // rows of two
          EXPECT_EQ(words.statistics().alone != 0, in_my_row) << distance;
        }
      },
      4);
}

TEST(OneByOne, ordered_messages_keep_their_order_whether_they_gather_or_not) {
  std::uint64_t alone = 0, gathered = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random draw(seed);
    launch::SimulateOptions options{.pes = draw.between(1, 9), .seed = seed};
    options.conditions = sim::random_conditions(draw, options.pes);
    const auto topology = grid(unsigned(draw.between(1, 3)));
    const std::size_t bytes_max = draw.one_in(2) ? 40 : draw.one_in(2) ? 700 : 6000;
    const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
      Random random(seed * 100 + pe.id());
      // Two streams, each in order: messages of the main program (0), and of handlers (1).
      std::vector<std::uint32_t> sent(2 * pe.size()), next(2 * pe.size());
      Aggregator<std::uint32_t, std::uint32_t, std::string_view> texts(pe, {.topology = topology, .ordered = true});
      const std::string text(bytes_max, 'x');
      auto send = [&](std::uint32_t stream) {
        const std::size_t to = random.between(0, pe.size() - 1);
        const std::size_t bytes = random.between(0, bytes_max);
        texts.send(to, stream, sent[stream * pe.size() + to]++, std::string_view(text).substr(0, bytes));
      };
      texts.on([&](PeId source, std::uint32_t stream, std::uint32_t number, std::string_view) {
        EXPECT_EQ(number, next[stream * pe.size() + source]++) << "seed " << seed;
        if (random.one_in(3)) send(1);
      });
      for (unsigned i = 0; i < 60; ++i) {
        for (std::uint64_t n = random.one_in(6) ? random.between(2, 9) : 1; n > 0; --n) send(0);
        if (!random.one_in(4)) progress_until_idle(pe);
      }
      pe.quiesce();
      alone += texts.statistics().alone;
      gathered += texts.statistics().messages - texts.statistics().alone;
      return 0;
    });
    ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  }
  EXPECT_GT(alone, 1000u);
  EXPECT_GT(gathered, 1000u);
}

}  // namespace
}  // namespace headway
