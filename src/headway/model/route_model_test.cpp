// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <headway/base/error.hpp>
#include <headway/base/topology_text.hpp>
#include <headway/model/route_model.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace headway::model {
namespace {

using Extents = std::vector<std::size_t>;

TEST(RouteModel, extents_cover_all_pes_with_next_to_no_more) {
  EXPECT_EQ(grid_extents(64, 1), Extents({64}));
  EXPECT_EQ(grid_extents(64, 2), Extents({8, 8}));
  EXPECT_EQ(grid_extents(64, 3), Extents({4, 4, 4}));
  EXPECT_EQ(grid_extents(100'000, 2), Extents({316, 317}));    // 316^2 < 10^5 <= 316 x 317
  EXPECT_EQ(grid_extents(100'000, 3), Extents({46, 47, 47}));  // 46^3 < 10^5; 46 x 47 x 47 = 101,614
  EXPECT_EQ(grid_extents(7, 0), Extents({7}));
  for (unsigned dimensions = 1; dimensions <= 8; ++dimensions) {
    for (std::size_t pes = 1; pes < 3000; pes += 1 + pes / 7) {
      const Extents extents = grid_extents(pes, dimensions);
      const double root = std::pow(double(pes), 1.0 / dimensions);
      std::size_t product = 1;
      for (const std::size_t extent : extents) {
        product *= extent;
        EXPECT_LE(double(extent), std::ceil(root - 1e-9)) << pes << " PEs, " << dimensions << "D";
      }
      EXPECT_GE(product, pes);
    }
  }
}

TEST(RouteModel, each_dimension_takes_the_messages_that_leave_the_row) {
  const Placement pes{.pes = 64};
  const RouteModel flat = route_model("1d", pes), rows = route_model("2d", pes), cube = route_model("3d", pes);
  EXPECT_DOUBLE_EQ(mean_hops(flat), 1);
  EXPECT_EQ(next_pes(flat), 63);
  // 7 of 8 rows are others, 7 of 8 columns, of 63 other PEs: 2 x 56 / 63
  EXPECT_DOUBLE_EQ(mean_hops(rows), 2 * 56.0 / 63);
  EXPECT_EQ(next_pes(rows), 14);
  EXPECT_EQ(hops_max(rows), 2);
  EXPECT_DOUBLE_EQ(mean_hops(cube), 3 * 48.0 / 63);
  EXPECT_EQ(next_pes(cube), 9);
  const RouteModel direct = route_model("direct", pes);
  EXPECT_TRUE(direct.is_direct);
  EXPECT_EQ(next_pes(direct), 63);
  // 7 PEs in rows of 3: of 42 pairs 2 x (9 + 3 + 3) = 30 are in different rows. In a row of 3, 2 of 3 columns are
  // others; of all 49 pairs, 6 of 7 destinations are in these: 6 / 7 x 2 / 3 x 49 / 42
  const RouteModel seven = route_model("2d", {.pes = 7});
  EXPECT_NEAR(seven.levels[0].hops, 30.0 / 42, 1e-12);
  EXPECT_NEAR(seven.levels[1].hops, 28.0 / 42, 1e-12);
  EXPECT_EQ(seven.levels[0].next_pes, 2);
  EXPECT_EQ(seven.levels[1].next_pes, 2);
}

TEST(RouteModel, grids_of_processes_and_hosts_are_grids_with_a_last_level_within) {
  const Placement placement{.pes = 64, .pes_per_process = 8, .pes_per_host = 16};
  const RouteModel wps = route_model("wps", placement), pp = route_model("pp", placement);
  // 56 of 63 PEs are in other processes; 7 of 8 are not the one with the sender's index.
  ASSERT_EQ(wps.levels.size(), 2);
  EXPECT_DOUBLE_EQ(wps.levels[0].hops, 56.0 / 63);
  EXPECT_DOUBLE_EQ(wps.levels[1].hops, 56.0 / 63);
  EXPECT_EQ(wps.levels[0].next_pes, 7);
  EXPECT_EQ(wps.levels[1].next_pes, 7);
  EXPECT_DOUBLE_EQ(mean_hops(pp), mean_hops(wps));
  EXPECT_EQ(pp.levels[0].sharing, 8);
  EXPECT_EQ(pp.levels[1].sharing, 1);

  const RouteModel whs = route_model("pe-to-host", placement), hh = route_model("hh", placement);
  EXPECT_DOUBLE_EQ(mean_hops(whs), 48.0 / 63 + 48.0 / 63 * 15 / 16 + 15.0 / 63);
  ASSERT_EQ(hh.levels.size(), 3);
  EXPECT_DOUBLE_EQ(hh.levels[0].hops, 48.0 / 63 * 15 / 16);  // unless the PE sends for its host itself
  EXPECT_DOUBLE_EQ(hh.levels[1].hops, 48.0 / 63);
  EXPECT_EQ(hh.levels[1].next_pes, 3);
  EXPECT_EQ(hh.levels[1].sharing, 16);
  EXPECT_EQ(hops_max(hh), 3);
  EXPECT_EQ(hops_max(route_model("hh-2d", placement)), 4);
}

TEST(RouteModel, one_group_or_groups_of_one_pe_are_a_grid_of_pes) {
  for (const char* name : {"wps-2d", "pp-2d", "whs-2d", "hh-2d"}) {
    EXPECT_DOUBLE_EQ(mean_hops(route_model(name, {.pes = 64})), mean_hops(route_model("2d", {.pes = 64}))) << name;
    EXPECT_DOUBLE_EQ(mean_hops(route_model(name, {64, 64, 64})), 1) << name;
  }
  EXPECT_DOUBLE_EQ(mean_hops(route_model("2d", {.pes = 1})), 1);
  EXPECT_DOUBLE_EQ(mean_hops(route_model("hh", {.pes = 1})), 1);
}

TEST(RouteModel, it_knows_the_names_of_the_library) {
  auto has = [](const std::string& name) {
    try {
      return mean_hops(route_model(name, {1000, 4, 20})) >= 1;
    } catch (const SettingError&) {
      return false;
    }
  };
  for (const char* name : {"direct", "1d", "8d", "ww", "pe-to-pe"}) EXPECT_TRUE(has(name)) << name;
  for (const base::SchemeName& scheme : base::scheme_names) {
    for (const std::string& name : {std::string(scheme.code), std::string(scheme.readable)}) {
      EXPECT_TRUE(has(name)) << name;
      for (unsigned dimensions = 1; dimensions <= 9; ++dimensions) {
        const std::string with = name + "-" + std::to_string(dimensions) + "d";
        EXPECT_EQ(has(with), dimensions <= scheme.dimensions_max) << with;
      }
    }
  }
  for (const char* name : {"", "0d", "9d", "wsp", "2D2"}) EXPECT_FALSE(has(name)) << name;
}

TEST(RouteModel, frames_are_full_buffers_of_each_next_pe) {
  const Placement pes{.pes = 64, .pes_per_process = 8};
  const Buffer buffer{1000, 1};
  // 6300 messages, 100 for each PE, 10,000 bytes: 10 frames for each of 63
  const RouteLoad flat = route_load(route_model("1d", pes), 6300, 100, buffer);
  EXPECT_DOUBLE_EQ(flat.frames, 630);
  EXPECT_DOUBLE_EQ(flat.bytes, 630'000);
  EXPECT_DOUBLE_EQ(load_ns({150, 0.15}, flat), 630 * 150 + 630'000 * 0.15);
  // 5600 at each level, 800 for each of 7, 80,000 bytes: 80 frames each
  const RouteLoad rows = route_load(route_model("2d", pes), 6300, 100, buffer);
  EXPECT_DOUBLE_EQ(rows.frames, 1120);
  EXPECT_DOUBLE_EQ(rows.bytes, 1'120'000);
  EXPECT_DOUBLE_EQ(route_load(route_model("direct", pes), 6300, 100, buffer).frames, 6300);
  // half of the buffer: twice the frames
  EXPECT_DOUBLE_EQ(route_load(route_model("1d", pes), 6300, 100, {1000, 0.5}).frames, 1260);
  EXPECT_DOUBLE_EQ(route_load(route_model("1d", pes), 0, 100, buffer).frames, 0);
  // 10 messages for 63 PEs: each in a buffer of its own
  EXPECT_DOUBLE_EQ(route_load(route_model("1d", pes), 10, 100, buffer).frames, 10);
  // 630 messages, 10 for each PE: one buffer for each, with 1d. With 2d 7 x 8 frames at each level
  EXPECT_DOUBLE_EQ(route_load(route_model("1d", pes), 630, 100, buffer).frames, 63);
  EXPECT_DOUBLE_EQ(route_load(route_model("2d", pes), 630, 100, buffer).frames, 112);
  // 63 messages: 1d takes 63 frames, 2d 7 at each level
  EXPECT_DOUBLE_EQ(route_load(route_model("1d", pes), 63, 100, buffer).frames, 63);
  EXPECT_DOUBLE_EQ(route_load(route_model("2d", pes), 63, 100, buffer).frames, 14);
}

TEST(RouteModel, pes_of_a_process_that_share_buffers_take_fewer_frames) {
  const Placement pes{.pes = 64, .pes_per_process = 8};
  const Buffer buffer{1000, 1};
  // 63 messages of each PE: 56 to other processes, 448 of the process, 64 for each of 7, 6400 bytes: 49 frames of 8
  // PEs. Within: 56 for 7 PEs, 8 each: 7 frames.
  EXPECT_NEAR(route_load(route_model("pp", pes), 63, 100, buffer).frames, 49.0 / 8 + 7, 1e-9);
  EXPECT_NEAR(route_load(route_model("wps", pes), 63, 100, buffer).frames, 14, 1e-9);
}

TEST(RouteModel, arguments_out_of_range_are_refused) {
  EXPECT_THROW(route_model("1d", {.pes = 0}), SettingError);
  EXPECT_THROW(route_model("1d", {.pes = 8, .pes_per_process = 0}), SettingError);
  EXPECT_THROW(route_model("1d", {.pes = 8, .pes_per_host = 0}), SettingError);
  const RouteModel route = route_model("1d", {.pes = 8});
  EXPECT_THROW(route_load(route, -1, 8, {1000, 1}), SettingError);
  EXPECT_THROW(route_load(route, 1, 0, {1000, 1}), SettingError);
  EXPECT_THROW(route_load(route, 1, 8, {0, 1}), SettingError);
  try {
    route_model("9d", {.pes = 8});
    FAIL();
  } catch (const SettingError& error) {
    EXPECT_EQ(std::string(error.what()).find("model: topology '9d' is not allowed; allowed are direct, 1d"), 0);
  }
}

}  // namespace
}  // namespace headway::model
