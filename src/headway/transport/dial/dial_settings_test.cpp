// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/dial_settings.hpp>
#include <headway/base/error.hpp>
#include <string>
#include <utility>

namespace headway::dial {
namespace {

TEST(DialSettings, all_dials_can_be_set) {
  const auto dials = base::DialSettings::parse("HEADWAY_DIAL", "o=5us,item_o=100ns,g=1.5ms,L=0.01s,G=0.5ns,random");
  EXPECT_EQ(dials.overhead_ns, 5e3);
  EXPECT_EQ(dials.item_overhead_ns, 100);
  EXPECT_EQ(dials.gap_ns, 1.5e6);
  EXPECT_EQ(dials.latency_ns, 10e6);
  EXPECT_EQ(dials.gap_per_byte_ns, 0.5);
  EXPECT_TRUE(dials.random);
  const auto others = base::DialSettings::parse("HEADWAY_DIAL", "L=100ms,G=1us,o=0");
  EXPECT_EQ(others.overhead_ns, 0);
  EXPECT_EQ(others.latency_ns, base::dial_ns_max);
  EXPECT_EQ(others.gap_per_byte_ns, base::dial_ns_per_byte_max);
  EXPECT_FALSE(others.random);
}

TEST(DialSettings, what_is_not_allowed_is_refused_with_the_value_and_the_allowed_range) {
  constexpr std::pair<const char*, const char*> wrong[] = {{"", "a list of o,"},
                                                           {"o", "a list of o,"},
                                                           {"x=1us", "a list of o,"},
                                                           {"l=1us", "a list of o,"},
                                                           {"o=1us,", "a list of o,"},
                                                           {"o=1us,o=2us", "a list of o,"},
                                                           {"random=1", "a list of o,"},
                                                           {"random,random", "a list of o,"},
                                                           {"o=", "from 0 to 100ms"},
                                                           {"o=5", "from 0 to 100ms"},
                                                           {"o=-1us", "from 0 to 100ms"},
                                                           {"L=nanus", "from 0 to 100ms"},
                                                           {"L=101ms", "from 0 to 100ms"},
                                                           {"g=5 us", "from 0 to 100ms"},
                                                           {"item_o=infns", "from 0 to 100ms"},
                                                           {"G=1.1us", "from 0 to 1us"}};
  for (const auto& [text, allowed] : wrong) {
    try {
      base::DialSettings::parse("HEADWAY_DIAL", text);
      ADD_FAILURE() << text << " was taken";
    } catch (const SettingError& error) {
      const std::string said = error.what();
      EXPECT_TRUE(said.starts_with(std::string("HEADWAY_DIAL=") + text + ": ")) << said;
      EXPECT_NE(said.find(std::string("allowed is")), said.npos) << said;
      EXPECT_NE(said.find(allowed), said.npos) << said;
    }
  }
}

}  // namespace
}  // namespace headway::dial
