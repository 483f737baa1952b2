// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <headway/base/error.hpp>
#include <headway/model/alpha_beta.hpp>
#include <limits>
#include <string>

namespace headway::model {
namespace {

constexpr AlphaBeta summit{150, 0.15};

TEST(AlphaBeta, messages_cost_alpha_each_and_beta_for_each_byte) {
  EXPECT_DOUBLE_EQ(message_ns(summit, 8), 151.2);           // 150 + 8 x 0.15
  EXPECT_DOUBLE_EQ(messages_ns(summit, 1000, 8), 151'200);  // 1000 of them
  EXPECT_DOUBLE_EQ(messages_ns(summit, 1, 8000), 1350);     // the same bytes in one: 150 + 1200
  EXPECT_DOUBLE_EQ(byte_ns(summit, 1000), 0.3);             // 150 / 1000 + 0.15
  EXPECT_DOUBLE_EQ(byte_ns(summit, 500) * 500, message_ns(summit, 500));
}

TEST(AlphaBeta, a_buffer_for_90_percent_is_nine_times_the_one_for_half_of_the_rate) {
  EXPECT_DOUBLE_EQ(bytes_of_half_rate(summit), 1000);                // 150 / 0.15
  EXPECT_DOUBLE_EQ(bytes_of_efficiency(summit, 0.5), 1000);          // 1000 x 0.5 / 0.5
  EXPECT_NEAR(bytes_of_efficiency(summit, 0.9), 9000, 1e-8);         // 1000 x 0.9 / 0.1
  EXPECT_DOUBLE_EQ(bytes_of_90_percent(150, 0.15, 0), 9000);         // 9 x 150 / 0.15
  EXPECT_DOUBLE_EQ(bytes_of_90_percent(80, 0.025, 0.15), 4800);      // the software limits: 9 x 80 / 0.15
  EXPECT_DOUBLE_EQ(bytes_of_90_percent(500, 0.04, 0.025), 112'500);  // the network limits: 9 x 500 / 0.04
}

TEST(AlphaBeta, a_buffer_of_an_efficiency_has_that_efficiency) {
  for (const double efficiency : {0.01, 0.3, 0.5, 0.75, 0.9, 0.99, 0.999}) {
    const double bytes = bytes_of_efficiency(summit, efficiency);
    EXPECT_NEAR(summit.beta_ns_per_byte * bytes / message_ns(summit, bytes), efficiency, 1e-12);
  }
}

template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const SettingError& error) {
    return error.what();
  }
  return "no error";
}

TEST(AlphaBeta, errors_name_value_and_range) {
  EXPECT_EQ(error_of([] {
              message_ns({-1, 0}, 8);
            }),
            "model: alpha (ns) = -1: allowed is a finite number of at least 0");
  EXPECT_EQ(error_of([] { message_ns(summit, -8); }),
            "model: bytes of a message = -8: allowed is a finite number of at least 0");
  EXPECT_EQ(error_of([] { byte_ns(summit, 0); }), "model: bytes of a message = 0: allowed is a finite number above 0");
  EXPECT_EQ(error_of([] {
              bytes_of_half_rate({150, 0});
            }),
            "model: beta (ns/byte) = 0: allowed is a finite number above 0");
  EXPECT_EQ(error_of([] { bytes_of_efficiency(summit, 1); }), "model: efficiency = 1: allowed is 0 to 0.999999999");
  EXPECT_EQ(error_of([] { message_ns(summit, std::nan("")); }),
            "model: bytes of a message = nan: allowed is a finite number of at least 0");
  EXPECT_EQ(error_of([] { bytes_of_90_percent(std::numeric_limits<double>::infinity(), 1, 1); }),
            "model: overhead of a frame (ns) = inf: allowed is a finite number of at least 0");
  EXPECT_EQ(error_of([] { bytes_of_90_percent(80, 0, 0); }),
            "model: larger time for a byte (ns) = 0: allowed is a finite number above 0");
}

}  // namespace
}  // namespace headway::model
