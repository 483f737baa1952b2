// SPDX-License-Identifier: BSD-3-Clause
// The text of platforms; tests/smpi runs programs on them.
#include <gtest/gtest.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/model/simgrid_platform.hpp>
#include <string>

namespace headway::model {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(SimgridPlatform, the_network_of_alpha_and_beta_has_no_latency) {
  const LogGP summit = network_of(find_machine("summit"));
  EXPECT_EQ(summit.overhead_ns, 75);
  EXPECT_EQ(summit.gap_per_byte_ns, 0.15);
  EXPECT_EQ(summit.gap_ns, 0);
  EXPECT_EQ(summit.latency_ns, 0);
  const LogGP now = network_of(find_machine("now"));
  EXPECT_EQ(now.overhead_ns, 2900);
  EXPECT_EQ(now.gap_ns, 5800);
  EXPECT_EQ(now.latency_ns, 5000);
  EXPECT_NEAR(now.gap_per_byte_ns, 1e3 / 38, 1e-9);
}

TEST(SimgridPlatform, the_file_has_the_values_of_the_network) {
  const Machine now = find_machine("now");
  const std::string text = simgrid_platform(now, network_of(now), 16, 1);
  EXPECT_TRUE(has(text, "radical=\"0-15\"")) << text;
  // 5000 ns less 16 bytes
  EXPECT_TRUE(has(text, "bw=\"38000000Bps\" lat=\"2289.47368ns\"")) << text;
  EXPECT_TRUE(has(text, "loopback_bw=\"38000000Bps\" loopback_lat=\"4578.94737ns\"")) << text;
  for (const char* option : {"smpi/os", "smpi/ois", "smpi/or"}) {
    EXPECT_TRUE(has(text, std::string("<prop id=\"") + option + "\" value=\"0:2.9e-06:0\"/>")) << text;
  }
}

TEST(SimgridPlatform, without_latency_the_envelope_is_taken_off_the_overhead) {
  const Machine summit = find_machine("summit");
  const std::string text = simgrid_platform(summit, network_of(summit), 2, 1);
  EXPECT_TRUE(has(text, "lat=\"0ns\"")) << text;
  EXPECT_TRUE(has(text, "<prop id=\"smpi/os\" value=\"0:7.38e-08:0\"/>")) << text;  // 75 ns less 8 bytes
  const std::string slow = simgrid_platform(summit, {.overhead_ns = 1, .gap_per_byte_ns = 10}, 2, 1);
  EXPECT_TRUE(has(slow, "<prop id=\"smpi/os\" value=\"0:0:0\"/>")) << slow;
}

TEST(SimgridPlatform, consecutive_ranks_share_a_host) {
  const Machine machine = find_machine("cs-2");
  EXPECT_TRUE(has(simgrid_platform(machine, network_of(machine), 7, 3), "radical=\"0-2\""));
  EXPECT_EQ(simgrid_hosts(machine, 7, 3), "cs-2-0\ncs-2-0\ncs-2-0\ncs-2-1\ncs-2-1\ncs-2-1\ncs-2-2\n");
}

TEST(SimgridPlatform, numbers_out_of_range_are_refused) {
  const Machine machine = find_machine("summit");
  const LogGP network = network_of(machine);
  EXPECT_THROW(simgrid_platform(machine, network, 0, 1), SettingError);
  EXPECT_THROW(simgrid_platform(machine, network, 1, 0), SettingError);
  EXPECT_THROW(simgrid_platform(machine, network, platform_pes_max + 1, 1), SettingError);
  EXPECT_THROW(simgrid_platform(machine, {.gap_per_byte_ns = 0}, 2, 1), SettingError);
  EXPECT_THROW(simgrid_platform(machine, {.latency_ns = -1, .gap_per_byte_ns = 1}, 2, 1), SettingError);
  EXPECT_THROW(simgrid_hosts(machine, 0, 1), SettingError);
}

}  // namespace
}  // namespace headway::model
