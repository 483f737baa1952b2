// Where delay costs, as many messages gather as make frames and delay cost least together; simulated, where how long
// something takes is exact.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/launch/simulation.hpp>
#include <string_view>
#include <vector>

namespace headway {
namespace {

using aggregate::DelayCost;
using aggregate::Pace;

// --- the model

constexpr DelayCost cheap{.frame_ns = 80, .kappa = 1e-4}, dear{.frame_ns = 80, .kappa = 1};

TEST(DelayCost, the_number_of_messages_makes_frames_and_delay_cost_least) {
  for (const DelayCost& cost : {cheap, dear}) {
    for (const double interval_ns : {0.5, 3.0, 20.0, 1e3, 1e6}) {
      auto per_ns = [&](double messages) {
        const double tau = messages * interval_ns;
        return cost.frame_ns / tau + cost.kappa * tau / 2 / interval_ns;
      };
      const double best = cost.messages(interval_ns);
      for (const double factor : {0.1, 0.9, 0.99, 1.01, 1.1, 10.0}) EXPECT_GT(per_ns(factor * best), per_ns(best));
    }
  }
}

TEST(DelayCost, gathering_pays_from_two_messages_on) {
  for (double interval_ns = 1; interval_ns < 1000; interval_ns *= 1.05) {
    bool pays = false;
    for (double tau = 0.01 * interval_ns; tau < 1000 * interval_ns; tau *= 1.01) {
      const double messages = tau / interval_ns;
      pays |= dear.frame_ns * (messages - 1) > messages * dear.kappa * tau / 2;
    }
    if (const double messages = dear.messages(interval_ns); std::abs(messages - 2) > 0.1) {
      EXPECT_EQ(pays, messages > 2) << interval_ns;
    }
  }
}

TEST(DelayCost, beyond_the_longest_delay_gathering_does_not_pay_however_many_messages_come) {
  for (const double interval_ns : {1e-6, 1e-3, 1.0, 1e3}) {
    const double tau = 1.001 * cheap.delay_ns_max(), messages = tau / interval_ns;
    EXPECT_LT(cheap.frame_ns * (messages - 1), messages * cheap.kappa * tau / 2);
  }
  const double tau = 0.999 * cheap.delay_ns_max(), messages = tau / 1e-6;
  EXPECT_GT(cheap.frame_ns * (messages - 1), messages * cheap.kappa * tau / 2);
}

// --- what is learned

TEST(Pace, few_messages_gather_before_anything_is_known) { EXPECT_EQ(Pace().messages_max(cheap), 8u); }

TEST(Pace, buffers_that_were_open_for_longer_hold_fewer) {
  std::size_t before = 1'000'000;
  for (const std::int64_t open_ns : {100, 1'000, 10'000, 100'000, 100'000'000}) {
    Pace pace;
    pace.posted(open_ns, 100, 800);
    const double interval_ns = double(open_ns) / 100;
    EXPECT_EQ(pace.messages_max(cheap), std::max(std::llround(cheap.messages(interval_ns)), 2ll));
    EXPECT_EQ(pace.bytes_max(cheap), 8 * pace.messages_max(cheap));
    EXPECT_LT(pace.messages_max(cheap), before);
    before = pace.messages_max(cheap);
  }
}

TEST(Pace, a_few_buffers_are_enough_to_follow_a_change) {
  Pace pace;
  pace.posted(100'000'000, 100, 800);
  for (int i = 0; i < 12; ++i) pace.posted(1'000, 100, 800);
  EXPECT_NEAR(double(pace.messages_max(cheap)), cheap.messages(10), 2);
  for (int i = 0; i < 12; ++i) pace.posted(100'000, 100, 800);
  EXPECT_NEAR(double(pace.messages_max(cheap)), cheap.messages(1'000), 2);
}

TEST(Pace, a_single_message_says_only_that_the_next_came_no_sooner) {
  Pace pace;
  pace.posted(100'000, 100, 800);
  const std::size_t known = pace.messages_max(cheap);
  pace.posted(10, 1, 8);
  EXPECT_EQ(pace.messages_max(cheap), known);
  pace.posted(1'000'000, 1, 8);
  EXPECT_LT(pace.messages_max(cheap), known);
}

TEST(Pace, messages_go_by_themselves_where_fewer_than_two_would_gather_and_until_they_come_faster) {
  Pace pace;
  EXPECT_FALSE(pace.passes(dear, 8, 1'000));
  pace.posted(100'000, 10, 80);  // every 10 us
  std::int64_t now = 1'000'000;
  for (int i = 0; i < 100; ++i, now += 10'000) EXPECT_TRUE(pace.passes(dear, 8, now));
  const std::int64_t sent_alone_ns = 80;
  int alone = 0;
  while (pace.passes(dear, 8, now)) {
    now += sent_alone_ns + 2;
    ASSERT_LT(++alone, 20);
  }
  EXPECT_GE(pace.messages_max(dear), 2u);
}

TEST(Pace, no_time_is_too_short_and_no_cost_too_small) {
  Pace pace;
  pace.posted(0, 1'000, 8'000);
  for (const double kappa : {1e-300, 1e-9, 1.0, 1e300}) {
    EXPECT_GE(pace.messages_max({80, kappa}), 2u);
    EXPECT_LE(pace.messages_max({80, kappa}), 1'000'000'000u);
    EXPECT_EQ(pace.messages_max({0, kappa}), 2u);
  }
}

// --- what goes

/// What messages from PE 0 to PE 1 took.
struct Taken {
  AggregatorStatistics sent;
  double delay_ns = 0;  // from send to handler, in the mean

  /// As the model has it; the way of a frame is in all delays.
  double cost(double kappa, double frame_ns) const {
    return frame_ns * double(sent.frames) + kappa * delay_ns * double(sent.messages);
  }
};

constexpr double frame_ns = 400;  // of a simulated network that nobody has given others

/// The main program computes until then, and makes no progress.
void compute_until(Pe& pe, std::int64_t at) {
  Endpoint& endpoint = pe.engine().endpoint();
  for (std::int64_t now; (now = endpoint.now()) < at;) endpoint.sleep(at - now);
}

void progress_until(Pe& pe, std::int64_t at) {
  while (pe.engine().now() < at) pe.progress();
}

/// send(now) for each message; send_all(pe, send) on PE 0.
template <class Message, class SendAll>
Taken taken(const AggregatorOptions& options, Message message, SendAll send_all, std::size_t pes = 2) {
  Taken result;
  const launch::SimulateResult run = launch::simulate({.pes = pes, .budget_bytes = 16_MiB}, [&](Pe& pe) {
    Aggregator<std::int64_t, Message> messages(pe, options);
    double delays = 0;
    std::uint64_t handled = 0;
    messages.on([&](std::int64_t sent_at, const Message&) {
      delays += double(pe.engine().now() - sent_at);
      ++handled;
    });
    if (pe.id() == 0) send_all(pe, [&] { messages.send(pes - 1, pe.engine().now(), message); });
    pe.quiesce();
    if (pe.id() == 0) result.sent = messages.statistics();
    if (pe.id() == pes - 1) result.delay_ns = delays / double(handled);
    return 0;
  });
  EXPECT_EQ(run.status, 0) << run.text;
  return result;
}

/// One message every so many nanoseconds; the program computes in between.
auto steadily(std::int64_t interval_ns, unsigned messages = 4'000) {
  return [=](Pe& pe, auto send) {
    std::int64_t at = pe.engine().now();
    for (unsigned i = 0; i < messages; ++i) {
      compute_until(pe, at += interval_ns);
      send();
    }
  };
}

/// Sixteen at once, and progress in between.
auto in_bursts(std::int64_t interval_ns) {
  return [=](Pe& pe, auto send) {
    std::int64_t at = pe.engine().now();
    for (unsigned burst = 0; burst < 200; ++burst) {
      progress_until(pe, at += interval_ns);
      for (unsigned i = 0; i < 16; ++i) send();
    }
  };
}

/// Messages of fixed and of variable size.
template <class Check>
void for_both_sizes(Check check) {
  check(std::uint64_t(0));
  check(std::string_view("sixteen letters."));
}

TEST(CostOfDelay, steady_messages_wait_for_less_in_more_frames_the_more_delay_costs) {
  for_both_sizes([](auto message) {
    Taken before = taken({}, message, steadily(1'000));
    EXPECT_GT(before.delay_ns, 100'000);
    for (const double kappa : {0.0005, 0.005, 0.05}) {
      const Taken now = taken({.delay_cost = kappa}, message, steadily(1'000));
      EXPECT_LT(now.delay_ns, 0.6 * before.delay_ns) << kappa;
      EXPECT_GT(double(now.sent.frames), 1.5 * double(before.sent.frames)) << kappa;
      EXPECT_EQ(now.sent.alone, 0u) << kappa;
      // as the model has it
      const double gathered = double(now.sent.messages) / double(now.sent.frames);
      EXPECT_NEAR(gathered, DelayCost({frame_ns, kappa}).messages(1'000), 0.15 * gathered + 0.5) << kappa;
      before = now;
    }
  });
}

TEST(CostOfDelay, frames_and_delay_cost_less_together_than_without_and_than_each_message_at_once) {
  for_both_sizes([](auto message) {
    for (const std::int64_t interval_ns : {500, 1'000, 5'000}) {
      for (const double kappa : {0.001, 0.01, 0.1}) {
        const Taken with = taken({.delay_cost = kappa}, message, steadily(interval_ns));
        for (const AggregatorOptions& other : {AggregatorOptions{}, AggregatorOptions{.topology = direct()}}) {
          EXPECT_LT(with.cost(kappa, frame_ns),
                    1.1 * taken(other, message, steadily(interval_ns)).cost(kappa, frame_ns))
              << interval_ns << " ns, " << kappa << ", " << to_string(other.topology);
        }
      }
    }
  });
}

TEST(CostOfDelay, messages_that_come_too_seldom_go_by_themselves_and_come_at_once) {
  for_both_sizes([](auto message) {
    const Taken with = taken({.delay_cost = 1}, message, steadily(10'000, 1'000));
    EXPECT_GE(with.sent.alone, 980u);
    EXPECT_LT(with.delay_ns, 30'000);
    const Taken direct_ones = taken({.topology = direct()}, message, steadily(10'000, 980));
    EXPECT_LT(direct_ones.delay_ns, 10'000);
  });
}

TEST(CostOfDelay, they_gather_again_when_they_come_faster) {
  for_both_sizes([](auto message) {
    const Taken both = taken({.delay_cost = 0.1}, message, [](Pe& pe, auto send) {
      steadily(100'000, 200)(pe, send);
      steadily(200, 10'000)(pe, send);
    });
    EXPECT_GE(both.sent.alone, 180u);
    EXPECT_LE(both.sent.alone, 300u);
    EXPECT_LE(both.sent.frames, 300u + 10'000 / 4);
  });
}

TEST(CostOfDelay, they_gather_again_where_none_may_go_by_itself) {
  for_both_sizes([](auto message) {
    const auto slow_then_fast = [](Pe& pe, auto send) {
      steadily(100'000, 200)(pe, send);
      steadily(200, 10'000)(pe, send);
    };
    const Taken both = taken({.delay_cost = 0.1, .topology = grid(2)}, message, slow_then_fast, 4);
    EXPECT_LE(both.sent.frames, 300u + 10'000 / 4);
  });
}

TEST(CostOfDelay, bursts_wait_for_less_too) {
  for_both_sizes([](auto message) {
    const AggregatorOptions without{.flush_when_idle = false};
    const Taken none = taken(without, message, in_bursts(50'000));
    EXPECT_GT(none.delay_ns, 300'000);
    double delay_ns = none.delay_ns;
    for (const double kappa : {0.002, 0.02, 0.2}) {
      AggregatorOptions with = without;
      with.delay_cost = kappa;
      const Taken now = taken(with, message, in_bursts(50'000));
      EXPECT_LT(now.delay_ns, delay_ns) << kappa;
      EXPECT_GT(now.sent.frames, none.sent.frames) << kappa;
      EXPECT_LT(now.cost(kappa, frame_ns), none.cost(kappa, frame_ns)) << kappa;
      delay_ns = now.delay_ns;
    }
  });
}

TEST(CostOfDelay, without_it_buffers_are_posted_when_full_and_not_before) {
  for (const double none : {derived_delay_cost, 0.0}) {
    const AggregatorOptions options{
        .buffer_bytes = 4_KiB, .timeout = no_timeout, .delay_cost = none, .flush_when_idle = false};
    const std::uint64_t in_a_frame = (4_KiB - frame_overhead) / 16;
    const Taken steady = taken(options, std::uint64_t(0), steadily(1'000));
    EXPECT_EQ(steady.sent.frames, (4'000 + in_a_frame - 1) / in_a_frame);
    const Taken bursts = taken(options, std::uint64_t(0), in_bursts(1'000));
    EXPECT_EQ(bursts.sent.frames, (3'200 + in_a_frame - 1) / in_a_frame);
  }
}

TEST(CostOfDelay, a_given_size_of_buffers_is_filled_no_longer_than_pays) {
  for_both_sizes([](auto message) {
    const Taken with = taken({.buffer_bytes = 64_KiB, .delay_cost = 0.005}, message, steadily(1'000));
    EXPECT_NEAR(double(with.sent.messages) / double(with.sent.frames), DelayCost({frame_ns, 0.005}).messages(1'000), 2);
    EXPECT_EQ(with.sent.peak_buffer_bytes, 64_KiB);
  });
}

TEST(CostOfDelay, memory_follows_what_gathers) {
  const Taken with = taken({.delay_cost = 0.05}, std::uint64_t(0), steadily(1'000));
  EXPECT_LE(with.sent.peak_buffer_bytes, 4_KiB);
}

// --- nothing is lost, and order is kept

/// Streams from each PE to each, sent in any rhythm on any route and network.
void expect_all_handled(std::uint64_t seed, std::uint64_t& alone, std::uint64_t& gathered) {
  Random draw(seed);
  launch::SimulateOptions simulated{.pes = draw.between(1, 9), .seed = seed};
  simulated.conditions = sim::random_conditions(draw, simulated.pes);
  simulated.conditions.pes_per_process = draw.between(1, simulated.pes);
  constexpr Scheme schemes[] = {Scheme::ww, Scheme::wps, Scheme::wsp, Scheme::pp};
  AggregatorOptions options{.delay_cost = std::pow(10, -4 + 5 * draw.fraction()),
                            .topology = grid(unsigned(draw.between(1, 3)), schemes[draw.below(4)]),
                            .flush_when_idle = draw.one_in(2),
                            .ordered = draw.one_in(2)};
  if (draw.one_in(2)) options.buffer_bytes = draw.size(256, 100'000);
  const std::size_t bytes_max = draw.one_in(2) ? 40 : draw.one_in(2) ? 700 : 6'000;
  std::uint64_t sent = 0, handled = 0;
  const launch::SimulateResult result = launch::simulate(simulated, [&](Pe& pe) {
    Random random(seed * 100 + pe.id());
    std::vector<std::uint32_t> next_sent(pe.size()), next(pe.size());
    Aggregator<std::uint32_t, std::string_view> texts(pe, options);
    Aggregator<std::uint64_t> words(pe, options);
    words.on([&](std::uint64_t) { ++handled; });
    texts.on([&](PeId source, std::uint32_t number, std::string_view text) {
      if (options.ordered) {
        EXPECT_EQ(number, next[source]++) << "seed " << seed;
      }
      ++handled;
      if (random.one_in(3)) {
        words.send(random.below(pe.size()), text.size());
        ++sent;
      }
    });
    const std::string text(bytes_max, 'x');
    for (unsigned i = 0; i < 60; ++i) {
      for (std::uint64_t n = random.one_in(3) ? random.between(2, 30) : 1; n > 0; --n, sent += 2) {
        const std::size_t to = random.below(pe.size());
        texts.send(to, next_sent[to]++, std::string_view(text).substr(0, random.between(0, bytes_max)));
        words.send(to, n);
      }
      const std::int64_t at = pe.engine().now() + std::int64_t(random.size(1, 100'000));
      random.one_in(2) ? progress_until(pe, at) : compute_until(pe, at);
    }
    pe.quiesce();
    for (const AggregatorStatistics& s : {texts.statistics(), words.statistics()}) {
      alone += s.alone;
      gathered += s.messages - s.alone;
    }
    return 0;
  });
  ASSERT_EQ(result.status, 0) << "seed " << seed << ": " << result.text;
  EXPECT_EQ(handled, sent) << "seed " << seed;
}

TEST(CostOfDelay, every_message_is_handled_once_and_ordered_ones_in_order_whatever_delay_costs) {
  std::uint64_t alone = 0, gathered = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) expect_all_handled(seed, alone, gathered);
  EXPECT_GT(alone, 5'000u);
  EXPECT_GT(gathered, 5'000u);
}

}  // namespace
}  // namespace headway
