// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <headway/model/aggregation.hpp>

namespace headway::model {
namespace {

// Summit; 1 message of 100 bytes each 100 ns, so Q S is 1 byte per ns; a ns of delay costs a thousandth of a ns.
constexpr double alpha = 150, beta = 0.15;
constexpr MessageStream stream{0.01, 100};
constexpr LinearDelay delay{0.001};
constexpr Buffer buffer{20480, 0.9};  // 18432 bytes are used

TEST(Aggregation, a_timeout_gathers_what_arrives_within_it) {
  // tau = 10 us: 100 messages, 10,000 bytes. Alone: 100 x 150 + 10,000 x 0.15
  EXPECT_DOUBLE_EQ(alone_ns(alpha, beta, stream, 10'000), 16'500);
  // gathered: 150 + 1500, and 100 messages wait for 5 us, which costs 5 ns each
  EXPECT_DOUBLE_EQ(gathered_ns(alpha, beta, stream, 10'000, delay(5000)), 2150);
  // 150 x 99 - 100 x 5
  EXPECT_DOUBLE_EQ(timeout_margin_ns(alpha, stream, 10'000, delay(5000)), 14'350);
  EXPECT_DOUBLE_EQ(timeout_margin_ns_with(alpha, stream, 10'000, delay), 14'350);
  EXPECT_DOUBLE_EQ(bytes_for_timeout(stream, 0.8, 10'000), 12'500);  // 10,000 / 0.8
}

TEST(Aggregation, a_full_buffer_saves_all_frames_but_one) {
  EXPECT_DOUBLE_EQ(effective_bytes(buffer), 18'432);
  EXPECT_DOUBLE_EQ(fill_ns(stream, buffer), 18'432);  // at 1 byte per ns
  EXPECT_DOUBLE_EQ(period_ns(stream, buffer, 10'000), 10'000);
  EXPECT_DOUBLE_EQ(period_ns(stream, buffer, 1e6), 18'432);
  // 150 - 15,000 / 18,432 - 0.001 x 9216 = 150 - 0.813802 - 9.216
  EXPECT_NEAR(fill_margin_ns_with(alpha, stream, buffer, delay), 139.970198, 1e-6);
}

TEST(Aggregation, a_linear_price_of_delay_bounds_the_buffer) {
  // 2 x 1 x 150 / 0.001 = 300,000; 18,432^2 / 18,332 = 18,432 + 100 x 18,432 / 18,332 = 18,532.5455
  EXPECT_NEAR(linear_margin_bytes(alpha, stream, buffer, delay), 281'467.4545, 1e-3);
  EXPECT_DOUBLE_EQ(linear_bound_bytes(alpha, stream, buffer, delay), 281'568);
  // x^2 - 300,000 x + 30,000,000 = 0: x = 150,000 +- sqrt(2.25e10 - 3e7) = 150,000 +- 149,899.967
  const auto range = worthwhile_bytes(alpha, stream, delay);
  ASSERT_TRUE(range);
  EXPECT_NEAR(range->low, 100.0334, 1e-3);
  EXPECT_NEAR(range->high, 299'899.9666, 1e-3);
  // with kappa = 1, 2 Q alpha / kappa = 3 is below 4
  EXPECT_FALSE(worthwhile_bytes(alpha, stream, LinearDelay{1}));
}

/// Streams, buffers and prices over several orders of magnitude.
struct Case {
  explicit Case(Random& random) {
    auto within = [&](double low, double high) { return low * std::pow(high / low, random.fraction()); };
    alpha_ns = within(10, 1e4);
    beta_ns_per_byte = within(0.01, 10);
    stream = {within(1e-6, 1), within(8, 1e4)};
    buffer = {stream.bytes * within(1.01, 1e4), within(0.3, 1)};
    buffer.bytes /= buffer.threshold;
    delay = {within(1e-6, 10)};
    timeout_ns = within(10, 1e7);
  }
  double alpha_ns, beta_ns_per_byte, timeout_ns;
  MessageStream stream;
  Buffer buffer;
  LinearDelay delay;
};

TEST(Aggregation, margins_are_differences_of_costs) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Case c(random);
    auto difference = [&](double period) {
      return alone_ns(c.alpha_ns, c.beta_ns_per_byte, c.stream, period) -
             gathered_ns(c.alpha_ns, c.beta_ns_per_byte, c.stream, period, c.delay(period / 2));
    };
    auto scale = [&](double period) { return alone_ns(c.alpha_ns, c.beta_ns_per_byte, c.stream, period) + c.alpha_ns; };
    const double tau = c.timeout_ns, fill = fill_ns(c.stream, c.buffer);
    const double by_timeout = timeout_margin_ns_with(c.alpha_ns, c.stream, tau, c.delay);
    ASSERT_NEAR(by_timeout, difference(tau), 1e-9 * (scale(tau) + std::abs(by_timeout))) << i;
    // inequality 4.9 is for one message
    const double messages = c.stream.per_ns * fill;
    const double by_fill = messages * fill_margin_ns_with(c.alpha_ns, c.stream, c.buffer, c.delay);
    ASSERT_NEAR(by_fill, difference(fill), 1e-9 * (scale(fill) + std::abs(by_fill))) << i;
  }
}

TEST(Aggregation, the_linear_inequality_decides_as_the_general_one) {
  Random random(2);
  int pays = 0;
  for (int i = 0; i < 1000; ++i) {
    const Case c(random);
    const double linear = linear_margin_bytes(c.alpha_ns, c.stream, c.buffer, c.delay);
    const double general = fill_margin_ns_with(c.alpha_ns, c.stream, c.buffer, c.delay);
    // 4.9 times b f_t, over kappa b f_t / (2 Q S) and (b f_t - S) / b f_t
    ASSERT_EQ(linear > 0, general > 0) << i;
    ASSERT_GT(linear_bound_bytes(c.alpha_ns, c.stream, c.buffer, c.delay), linear) << i;
    pays += linear > 0;
  }
  EXPECT_GT(pays, 200);
  EXPECT_LT(pays, 800);
}

TEST(Aggregation, margins_change_sign_at_the_closed_form) {
  Random random(3);
  int ranges = 0;
  for (int i = 0; i < 1000; ++i) {
    const Case c(random);
    auto margin = [&](double bytes) { return linear_margin_bytes(c.alpha_ns, c.stream, Buffer{bytes, 1}, c.delay); };
    const auto range = worthwhile_bytes(c.alpha_ns, c.stream, c.delay);
    const double messages = best_messages(c.alpha_ns, c.stream.per_ns, c.delay);
    ASSERT_EQ(range.has_value(), messages >= 2) << i;
    if (!range) {
      for (const double factor : {1.01, 2.0, 10.0, 1e3}) ASSERT_LE(margin(factor * c.stream.bytes), 0) << i;
      continue;
    }
    if (messages < 2.01) continue;  // both ends are one
    ++ranges;
    ASSERT_GT(margin(1.001 * range->low), 0) << i;
    ASSERT_GT(margin(0.999 * range->high), 0) << i;
    ASSERT_LT(margin(1.001 * range->high), 0) << i;
    const double below = 0.001 * c.stream.bytes + 0.999 * range->low;  // S < below < low
    ASSERT_LT(margin(below), 0) << i;
    // the best size lies between them
    ASSERT_GT(messages * c.stream.bytes, range->low) << i;
    ASSERT_LT(messages * c.stream.bytes, range->high) << i;
  }
  EXPECT_GT(ranges, 200);
}

TEST(Aggregation, without_a_price_of_delay_one_message_within_the_timeout_is_the_crossover) {
  for (const double timeout_ns : {1.0, 99.0, 99.9}) EXPECT_LT(timeout_margin_ns(alpha, stream, timeout_ns, 0), 0);
  EXPECT_DOUBLE_EQ(timeout_margin_ns(alpha, stream, 100, 0), 0);
  EXPECT_GT(timeout_margin_ns(alpha, stream, 100.1, 0), 0);
}

constexpr LinearDelay cheap{1e-4}, dear{1};

TEST(Aggregation, the_best_period_makes_frames_and_delay_cost_least) {
  // alpha = 80, kappa = 1, a message each 10 ns: sqrt(2 x 80 x 10) = 40 ns, 4 messages
  EXPECT_DOUBLE_EQ(best_period_ns(80, 0.1, dear), 40);
  EXPECT_DOUBLE_EQ(best_messages(80, 0.1, dear), 4);
  EXPECT_DOUBLE_EQ(longest_delay_ns(80, dear), 160);  // 2 x 80 / 1
  for (const LinearDelay& cost : {cheap, dear}) {
    for (const double interval_ns : {0.5, 3.0, 20.0, 1e3, 1e6}) {
      auto per_ns = [&](double period_ns) {
        return gathered_ns(80, 0, {1 / interval_ns, 8}, period_ns, cost(period_ns / 2)) / period_ns;
      };
      const double best = best_period_ns(80, 1 / interval_ns, cost);
      for (const double factor : {0.1, 0.9, 0.99, 1.01, 1.1, 10.0}) EXPECT_GT(per_ns(factor * best), per_ns(best));
    }
  }
}

TEST(Aggregation, gathering_pays_from_two_messages_on) {
  for (double interval_ns = 1; interval_ns < 1000; interval_ns *= 1.05) {
    const MessageStream of_eight{1 / interval_ns, 8};
    bool pays = false;
    for (double tau = 0.01 * interval_ns; tau < 1000 * interval_ns; tau *= 1.01) {
      pays |= timeout_margin_ns_with(80, of_eight, tau, dear) > 0;
    }
    const double messages = best_messages(80, of_eight.per_ns, dear);
    if (std::abs(messages - 2) > 0.1) {
      EXPECT_EQ(pays, messages > double(messages_to_gather_least)) << interval_ns;
    }
  }
}

TEST(Aggregation, beyond_the_longest_delay_gathering_does_not_pay_however_many_messages_arrive) {
  const double longest = longest_delay_ns(80, cheap);
  for (const double interval_ns : {1e-6, 1e-3, 1.0, 1e3}) {
    EXPECT_LT(timeout_margin_ns_with(80, {1 / interval_ns, 8}, 1.001 * longest, cheap), 0);
  }
  EXPECT_GT(timeout_margin_ns_with(80, {1e6, 8}, 0.999 * longest, cheap), 0);
}

TEST(Aggregation, arguments_out_of_range_are_refused) {
  EXPECT_THROW(effective_bytes({0, 1}), SettingError);
  EXPECT_THROW(effective_bytes({1024, 0}), SettingError);
  EXPECT_THROW(effective_bytes({1024, 1.1}), SettingError);
  EXPECT_THROW(alone_ns(alpha, beta, {0, 8}, 1), SettingError);
  EXPECT_THROW(timeout_margin_ns(alpha, {1, 0}, 1, 0), SettingError);
  EXPECT_THROW(timeout_margin_ns(-1, stream, 1, 0), SettingError);
  EXPECT_THROW(timeout_margin_ns(alpha, stream, -1, 0), SettingError);
  EXPECT_THROW(timeout_margin_ns(alpha, stream, 1, -1), SettingError);
  EXPECT_THROW(linear_margin_bytes(alpha, stream, {100, 1}, delay), SettingError);  // no more than one message
  EXPECT_THROW(linear_margin_bytes(alpha, stream, buffer, LinearDelay{0}), SettingError);
  EXPECT_THROW(best_period_ns(alpha, 0, delay), SettingError);
  EXPECT_THROW(longest_delay_ns(alpha, LinearDelay{0}), SettingError);
}

}  // namespace
}  // namespace headway::model
