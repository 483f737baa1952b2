// SPDX-License-Identifier: BSD-3-Clause
// The clock of a run, and charges, as programs use them.
#include <gtest/gtest.h>

#include <cmath>
#include <headway/am/time.hpp>
#include <headway/base/error.hpp>
#include <headway/base/settings.hpp>
#include <support/run_pes.hpp>

namespace headway::testing {
namespace {

TEST(Time, on_a_real_transport_a_charge_takes_no_time) {
  const auto body = [](Pe& pe) {
    const double begin = wtime(pe);
    charge(pe, 1e6);
    charge(pe, 0);
    const double took = wtime(pe) - begin;
    EXPECT_GE(took, 0);
    EXPECT_LT(took, 100);
  };
  EXPECT_EQ(run_pes(2, 1, body), 0);
  EXPECT_EQ(run_pes(2, 2, body), 0);
}

TEST(Time, on_sim_a_charge_is_simulated_time) {
  if (!base::has_simulation) GTEST_SKIP() << "this build has no sim transport";
  const auto body = [](Pe& pe) {
    const double begin = wtime(pe);
    charge(pe, 0.25 * double(pe.id() + 1));
    EXPECT_NEAR(wtime(pe) - begin, 0.25 * double(pe.id() + 1), 1e-6);
    pe.quiesce();
    EXPECT_NEAR(wtime(pe) - begin, 0.75, 1e-3);  // the slowest PE's time
  };
  EXPECT_EQ(run_pes(3, 3, body, {{"HEADWAY_TRANSPORT", "sim"}}), 0);
  EXPECT_EQ(run_pes(3, 3, body, {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_DIAL", "o=1us,L=10us"}}), 0);
}

// The other PE waits meanwhile, for longer than the time after which a run has stalled.
TEST(Time, a_charge_is_no_stall) {
  if (!base::has_simulation) GTEST_SKIP() << "this build has no sim transport";
  const auto body = [](Pe& pe) {
    if (pe.id() == 1) charge(pe, 1000);
    pe.quiesce();
  };
  EXPECT_EQ(run_pes(2, 2, body, {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_STALL", "10s"}}), 0);
}

TEST(Time, a_charge_out_of_range_is_refused_with_the_value) {
  EXPECT_EQ(
      run_pes(1, 1,
              [](Pe& pe) {
                for (const double seconds : {-1.0, 1.1e6, std::nan(""), std::numeric_limits<double>::infinity()}) {
                  EXPECT_THROW(charge(pe, seconds), UsageError) << seconds;
                }
                try {
                  charge(pe, -1);
                } catch (const UsageError& error) {
                  EXPECT_STREQ(error.what(), "charge() of -1 seconds: allowed is 0 to 10^6");
                }
              }),
      0);
}

}  // namespace
}  // namespace headway::testing
