// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/error.hpp>
#include <headway/model/prediction.hpp>
#include <vector>

namespace headway::model {
namespace {

TEST(Prediction, overhead_adds_twice_its_value_for_each_message) {
  EXPECT_DOUBLE_EQ(time_with_overhead(10, 1e6, 5000), 20);  // 10 + 2 x 10^6 x 5 us
  // Radix on 16 PEs of the NOW: 16.9 s, a message each 7.6 us, so 2.224 M of them; + 100 us: 16.9 + 444.7. The study
  // prints a factor of 27.2.
  EXPECT_NEAR(time_with_overhead(16.9, 16.9 / 7.6e-6, 100e3) / 16.9, 27.2, 0.01 * 27.2);
  // Em3d: a message each 10.2 us, 101.5 s. The study prints 20.8.
  EXPECT_NEAR(time_with_overhead(101.5, 9.95e6, 100e3) / 101.5, 20.8, 0.02 * 20.8);
}

TEST(Prediction, a_uniform_gap_costs_nothing_until_it_exceeds_the_interval) {
  EXPECT_DOUBLE_EQ(time_with_uniform_gap(10, 1e6, 10'000, 5800), 10);
  EXPECT_DOUBLE_EQ(time_with_uniform_gap(10, 1e6, 10'000, 10'000), 10);
  EXPECT_DOUBLE_EQ(time_with_uniform_gap(10, 1e6, 10'000, 15'000), 15);  // 10 + 10^6 x 5 us
}

TEST(Prediction, a_bursty_gap_costs_from_the_first_message_on) {
  EXPECT_DOUBLE_EQ(time_with_bursty_gap(10, 1e6, 5000), 15);
  for (const double gap_ns : {5800.0, 9000.0, 20'000.0, 1e6}) {
    EXPECT_LE(time_with_uniform_gap(10, 1e6, 10'000, gap_ns), time_with_bursty_gap(10, 1e6, gap_ns - 5800)) << gap_ns;
  }
}

TEST(Prediction, latency_costs_twice_its_value_for_each_read) {
  EXPECT_DOUBLE_EQ(time_with_latency(10, 1e5, 50'000), 20);  // 10 + 10^5 x 2 x 50 us
  EXPECT_DOUBLE_EQ(time_with_latency(10, 0, 50'000), 10);
}

TEST(Prediction, the_slowest_pe_limits_the_speedup) {
  // sums 25, 23 and 30 s; 100 / 30
  EXPECT_DOUBLE_EQ(speedup(100, std::vector<PeSeconds>{{20, 3, 2}, {22, 1, 0}, {18, 4, 8}}), 100.0 / 30);
  EXPECT_DOUBLE_EQ(speedup(100, std::vector<PeSeconds>(7, {100.0 / 7, 0, 0})), 7);
  EXPECT_DOUBLE_EQ(compute_seconds(100, 4, 1, 0.9), 23.4);  // (25 + 1) x 0.9
}

TEST(Prediction, arguments_out_of_range_are_refused) {
  EXPECT_THROW(time_with_overhead(-1, 1, 1), SettingError);
  EXPECT_THROW(time_with_overhead(1, -1, 1), SettingError);
  EXPECT_THROW(time_with_overhead(1, 1, -1), SettingError);
  EXPECT_THROW(time_with_uniform_gap(1, 1, -1, 1), SettingError);
  EXPECT_THROW(time_with_uniform_gap(1, 1, 1, -1), SettingError);
  EXPECT_THROW(time_with_bursty_gap(1, 1, -1), SettingError);
  EXPECT_THROW(time_with_latency(1, 1, -1), SettingError);
  EXPECT_THROW(speedup(1, {}), SettingError);
  EXPECT_THROW(speedup(1, std::vector<PeSeconds>{{0, 0, 0}}), SettingError);
  EXPECT_THROW(speedup(1, std::vector<PeSeconds>{{1, -1, 0}}), SettingError);
  EXPECT_THROW(compute_seconds(1, 0, 0, 1), SettingError);
  EXPECT_THROW(compute_seconds(1, 1, 0, 0), SettingError);
}

TEST(Prediction, a_gap_delays_the_last_message_of_a_burst_or_is_always_busy) {
  EXPECT_DOUBLE_EQ(gap_of_burst_ns(5, 1'000, 1e6, 11'000), 4 * 10'000);  // 4 intervals of 11 us instead of 1 us
  EXPECT_DOUBLE_EQ(gap_of_burst_ns(5, 1'000, 10'000, 11'000), 45'000);   // 5 need 55 us, and the period was 10 us
  EXPECT_DOUBLE_EQ(gap_of_burst_ns(1000, 1'000, 1e6, 5'000), 4e6);       // one long burst: 1000 g - T0
  EXPECT_DOUBLE_EQ(gap_of_burst_ns(1, 0, 9'000, 8'000), 0);              // single messages: only where g > p
  EXPECT_DOUBLE_EQ(gap_of_burst_ns(1, 0, 9'000, 20'000), 11'000);
  EXPECT_DOUBLE_EQ(gap_of_burst_ns(0, 0, 0, 20'000), 0);
  EXPECT_THROW(gap_of_burst_ns(-1, 0, 0, 0), SettingError);
  EXPECT_THROW(gap_of_burst_ns(1, -1, 0, 0), SettingError);
  EXPECT_THROW(gap_of_burst_ns(1, 0, -1, 0), SettingError);
  EXPECT_THROW(gap_of_burst_ns(1, 0, 0, -1), SettingError);
}

TEST(Prediction, exposed_turns_take_the_latency_and_hidden_ones_what_work_leaves) {
  EXPECT_DOUBLE_EQ(time_with_latency_of_turns(0.01, {.exposed = 400}, 20'000), 0.018);
  EXPECT_DOUBLE_EQ(time_with_latency_of_turns(0.01, {.exposed = 400, .reads = 400}, 20'000), 0.026);
  // as many answers to other PEs as reads
  EXPECT_DOUBLE_EQ(time_with_latency_of_turns(0.01, {.exposed = 800, .reads = 400}, 20'000), 0.026);
  EXPECT_THROW(time_with_latency_of_turns(0.01, {.reads = -1}, 1), SettingError);
  EXPECT_DOUBLE_EQ(time_with_latency_of_turns(0.01, {.hidden = 100, .work_ns = 50'000}, 20'000), 0.01);
  EXPECT_DOUBLE_EQ(time_with_latency_of_turns(0.01, {.hidden = 100, .work_ns = 50'000}, 80'000), 0.013);
  EXPECT_THROW(time_with_latency_of_turns(0.01, {.exposed = -1}, 1), SettingError);
  EXPECT_THROW(time_with_latency_of_turns(0.01, {}, -1), SettingError);
}

}  // namespace
}  // namespace headway::model
