// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/model/loggp.hpp>

namespace headway::model {
namespace {

constexpr LogGP network{.latency_ns = 1000, .overhead_ns = 100, .gap_ns = 300, .gap_per_byte_ns = 10};
constexpr LogGP now{.latency_ns = 5000, .overhead_ns = 2900, .gap_ns = 5800, .gap_per_byte_ns = 1e3 / 38};

TEST(LogGP, times_of_messages) {
  EXPECT_DOUBLE_EQ(short_message_ns(network), 1200);         // 2 x 100 + 1000
  EXPECT_DOUBLE_EQ(round_trip_ns(now), 21'600);              // 2 (2 x 2900 + 5000)
  EXPECT_DOUBLE_EQ(bulk_message_ns(network, 1), 1200);       // as a short one
  EXPECT_DOUBLE_EQ(bulk_message_ns(network, 2500), 26'190);  // 1200 + 2499 x 10
  EXPECT_DOUBLE_EQ(interval_ns(network, 2500), 25'290);      // 300 + 2499 x 10
  EXPECT_DOUBLE_EQ(burst_ns(network, 3, 11), 2100);          // 2 x (300 + 100) + 1200 + 100
  // o above g: the processor limits. 2 x 500 + 2 x 500 + 1000
  EXPECT_DOUBLE_EQ(burst_ns({1000, 500, 300, 10}, 3, 1), 3000);
}

TEST(LogGP, segments_are_messages) {
  // 1000, 1000 and 500 bytes: 2 x (300 + 9990), then 1200 + 4990
  EXPECT_DOUBLE_EQ(segmented_message_ns(network, 2500, 1000), 26'770);
  EXPECT_DOUBLE_EQ(segmented_message_ns(network, 2000, 1000), 10'290 + 11'190);
  EXPECT_DOUBLE_EQ(segmented_message_ns(network, 999, 1000), bulk_message_ns(network, 999));
  for (const double segment : {1.0, 7.0, 64.0, 4096.0}) {
    EXPECT_DOUBLE_EQ(segmented_message_ns(network, 3 * segment, segment), burst_ns(network, 3, segment));
    EXPECT_GE(segmented_message_ns(network, 10'000, segment), bulk_message_ns(network, 10'000));
  }
}

TEST(LogGP, alpha_is_the_time_of_both_processors) {
  EXPECT_DOUBLE_EQ(alpha_beta_of(now).alpha_ns, 5800);
  EXPECT_DOUBLE_EQ(alpha_beta_of(now).beta_ns_per_byte, 1e3 / 38);
}

TEST(LogGP, parametrized_round_trips_give_the_parameters_back) {
  // 11 messages of 1 byte without delay: 10 x 300, then 1200 there and 1200 back
  EXPECT_DOUBLE_EQ(parametrized_round_trip_ns(network, 11, 0, 1), 5400);
  for (const LogGP& n : {network, now, LogGP{0, 50, 60, 0}}) {
    for (const double bytes : {1.0, 64.0, 5000.0}) {
      const double one = parametrized_round_trip_ns(n, 1, 0, bytes);
      EXPECT_NEAR(measured_interval_ns(101, parametrized_round_trip_ns(n, 101, 0, bytes), one), interval_ns(n, bytes),
                  1e-6);
      const double delay_ns = interval_ns(n, bytes) + 1;
      EXPECT_NEAR(measured_overhead_ns(101, delay_ns, parametrized_round_trip_ns(n, 101, delay_ns, bytes), one),
                  n.overhead_ns, 1e-6);
    }
    EXPECT_NEAR(measured_latency_ns(parametrized_round_trip_ns(n, 1, 0, 1), n.overhead_ns, n.overhead_ns), n.latency_ns,
                1e-6);
  }
}

TEST(LogGP, noise_may_make_measured_values_negative) {
  EXPECT_DOUBLE_EQ(measured_interval_ns(3, 90, 100), -5);
  EXPECT_DOUBLE_EQ(measured_latency_ns(100, 40, 20), -10);
}

TEST(LogGP, arguments_out_of_range_are_refused) {
  EXPECT_THROW(short_message_ns({-1, 0, 0, 0}), SettingError);
  EXPECT_THROW(short_message_ns({0, -1, 0, 0}), SettingError);
  EXPECT_THROW(burst_ns({0, 0, -1, 0}, 2, 1), SettingError);
  EXPECT_THROW(interval_ns({0, 0, 0, -1}, 1), SettingError);
  EXPECT_THROW(bulk_message_ns(network, 0), SettingError);
  EXPECT_THROW(burst_ns(network, 0, 1), SettingError);
  EXPECT_THROW(segmented_message_ns(network, 10, 0), SettingError);
  EXPECT_THROW(parametrized_round_trip_ns(network, 2, -1, 1), SettingError);
  EXPECT_THROW(measured_interval_ns(1, 2, 1), SettingError);
}

}  // namespace
}  // namespace headway::model
