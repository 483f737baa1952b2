// SPDX-License-Identifier: BSD-3-Clause
/// `headway bench halo` as users start it.
#include <gtest/gtest.h>

#include <map>
#include <record/record.hpp>
#include <set>

#include "run_command.hpp"

namespace headway::tools {
namespace {

TEST(BenchHalo, runs_every_case_and_mode_verified) {
  const ChildResult result =
      headway({"bench", "halo", "--case", "row,random,grid27,blocks,particles,recorded", "--mode", "halo,pack",
               "--fields", "2", "--memory", "heap", "--exchanges", "20", "--pes", "3", "--repeat", "2", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  std::set<std::string> cases;
  for (const auto& record : records) {
    EXPECT_EQ(record["bench"], "halo");
    EXPECT_EQ(record["verified"], true) << record;
    EXPECT_EQ(record["errors"], 0);
    EXPECT_EQ(record["fields"], 2);
    EXPECT_EQ(record["exchanges"], 20);
    EXPECT_EQ(record["memory"], "heap");
    EXPECT_EQ(record["label"], record["mode"] == "halo" ? "halo heap" : "pack");
    const std::string way =
        record.value("way", "staged");  // in periodic grids PEs have elements of their own as ghosts
    EXPECT_TRUE(way == "staged" || way == "copied, staged") << record;
    EXPECT_GT(record["us"]["min"], 0);
    EXPECT_LE(record["us"]["min"], record["us"]["median"]);
    EXPECT_GT(record["setup_us"], 0);
    EXPECT_GT(record["phases_us"][record["mode"] == "pack" ? "pack" : "end"], 0) << record;
    cases.insert(record["case"].get<std::string>() + " " + record["mode"].get<std::string>());
  }
  EXPECT_EQ(records.size(), 12u);
  EXPECT_EQ(cases.size(), 12u);
}

TEST(BenchHalo, elements_reach_fields_in_place) {
  const ChildResult result = headway({"bench", "halo", "--mode", "halo", "--elements", "64", "--exchanges", "20",
                                      "--pes", "2", "--repeat", "1", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  std::map<std::string, std::string> ways;
  const auto records = bench::Json::parse(result.output)["records"];
  for (const auto& record : records) {
    EXPECT_EQ(record["verified"], true) << record;
    ways[record["memory"]] = record["way"];
  }
  EXPECT_EQ(ways, (std::map<std::string, std::string>{{"field", "written in place"}, {"heap", "staged"}}));
}

TEST(BenchHalo, sizes_are_comparisons_of_their_own) {
  const ChildResult result =
      headway({"bench", "halo", "--elements", "5,7", "--element-bytes", "4,88", "--mode", "halo", "--memory", "heap",
               "--exchanges", "10", "--pes", "2", "--repeat", "1", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  std::vector<int> bytes;
  for (const auto& record : records) {
    EXPECT_EQ(record["messages"], 2 * 10);
    bytes.push_back(record["message_bytes"]);
  }
  EXPECT_EQ(bytes, (std::vector<int>{20, 440, 28, 616}));
}

TEST(BenchHalo, peers_on_mpi_do_the_same_verified_where_there_is_one) {
  const std::string here = headway({"bench", "--list"}).output;
  const ChildResult result =
      headway({"bench", "halo", "--case", "grid27,random", "--elements", "9", "--fields", "2", "--exchanges", "10",
               "--pes", "2", "--repeat", "1", "--peer", "available", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  std::set<std::string> modes;
  const auto records = bench::Json::parse(result.output)["records"];
  for (const auto& record : records) {
    EXPECT_EQ(record["verified"], true) << record;
    modes.insert(record["mode"].get<std::string>());
  }
  for (const std::string mpi : {"openmpi", "mpich", "mpi"}) {
    if (here.find(" isend:" + mpi) == std::string::npos) continue;
    for (const std::string name : {"isend", "persistent", "neighbor-v", "neighbor-w"})
      EXPECT_TRUE(modes.contains("peer:" + name + ":" + mpi)) << name << " " << mpi;
    break;  // the preferred one
  }
}

TEST(BenchHalo, a_wrong_element_ends_the_command_with_status_1) {
  const std::string program = std::string(HEADWAY_COMMAND).substr(0, std::string(HEADWAY_COMMAND).rfind('/'));
  for (const std::string mode : {"halo", "pack"}) {
    const ChildResult result = run_child({program + "/headway-halo", "--mode", mode, "--corrupt", "--exchanges", "5"},
                                         {{"HEADWAY_PES", "2"}}, std::chrono::seconds(60));
    EXPECT_EQ(result.status, 1) << result.errors;
    EXPECT_NE(result.output.find("WRONG"), std::string::npos) << result.output;
  }
}

}  // namespace
}  // namespace headway::tools
