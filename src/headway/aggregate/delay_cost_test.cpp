// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <headway/aggregate/delay_cost.hpp>

namespace headway {
namespace {

using aggregate::DelayCost;

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

}  // namespace
}  // namespace headway
