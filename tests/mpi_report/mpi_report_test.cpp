// SPDX-License-Identifier: BSD-3-Clause
/// `headway mpi-report` on programs with calls that are counted by hand, under the launcher of the MPI of TEST_MPI.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <record/record.hpp>

#include "child.hpp"

namespace headway::tools {
namespace {

using bench::Json;

std::string mpi() { return std::getenv("TEST_MPI"); }

std::vector<std::string> launcher() {
  if (mpi() == "openmpi")
    return {"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-n", "4"};
  if (mpi() == "mpich") return {"mpirun.mpich", "-n", "4"};
  return {MPI_ABI_LAUNCHER, "-n", "4"};
}

ChildResult headway(const std::vector<std::string>& program, const std::vector<std::string>& options = {}) {
  std::vector<std::string> command = {HEADWAY_COMMAND, "mpi-report"};
  command.insert(command.end(), options.begin(), options.end());
  for (const std::string& word : launcher()) command.push_back(word);
  command.insert(command.end(), program.begin(), program.end());
  return run_child(command, {}, std::chrono::seconds(100));
}

/// The report on `traffic WHAT`.
Json report_on(const std::vector<std::string>& program, std::vector<std::string> options = {}, int status = 0) {
  const std::string file =
      (std::filesystem::path(testing::TempDir()) / ("mpi_report_" + mpi() + "_" + std::to_string(::getpid()))).string();
  options.insert(options.end(), {"--json", file});
  const ChildResult result = headway(program, options);
  if (status == 0)
    EXPECT_EQ(result.status, 0) << result.errors;
  else
    EXPECT_NE(result.status, 0);
  const ChildResult text = run_child({"cat", file}, {}, std::chrono::seconds(10));
  std::filesystem::remove(file);
  const Json json = Json::parse(text.output, nullptr, false);
  if (!json.is_object() || json["records"].size() != 1) {
    ADD_FAILURE() << result.output << result.errors;
    return Json::object();
  }
  return json["records"][0];
}

Json traffic(const std::string& what, const std::vector<std::string>& options = {}, int status = 0) {
  return report_on({std::string(TRAFFIC) + mpi(), what}, options, status);
}

/// Calls and bytes of all ranks.
std::pair<long, long> function(const Json& report, const std::string& name) {
  for (const Json& one : report["functions"])
    if (one["name"] == name) return {one["calls"], one["bytes"]};
  return {0, 0};
}
using Counts = std::pair<long, long>;

Json pattern(const Json& report, const std::string& name) {
  for (const Json& one : report["patterns"])
    if (one["name"] == name) return one;
  return nullptr;
}

TEST(MpiReport, the_counts_of_a_ring_are_those_of_a_hand_count_and_a_plan_needs_a_third_of_its_messages) {
  const Json report = traffic("ring", {"--ranks-per-host", "2"});
  ASSERT_FALSE(report.empty());
  EXPECT_EQ(report["mpi"], mpi());
  EXPECT_EQ(report["pes"], 4);
  EXPECT_EQ(report["ranks_ended"], 4);
  // 4 ranks, 20 steps, 2 neighbours, 3 messages.
  EXPECT_EQ(function(report, "MPI_Isend"), Counts(480, 4 * 20 * 2 * (80 + 80 + 2000)));
  EXPECT_EQ(function(report, "MPI_Irecv"), Counts(480, 0));
  EXPECT_EQ(function(report, "MPI_Waitall"), Counts(80, 0));
  EXPECT_EQ(function(report, "MPI_Send"), Counts(0, 0));
  const Json& messages = report["messages"]["point_to_point"];
  EXPECT_EQ(messages["messages"], 480);
  ASSERT_EQ(messages["sizes"].size(), 2);
  EXPECT_EQ(messages["sizes"][0]["from_bytes"], 64);
  EXPECT_EQ(messages["sizes"][0]["messages"], 320);
  EXPECT_EQ(messages["sizes"][1]["messages"], 160);
  EXPECT_EQ(report["exchanges"]["exchanges"], 80);
  for (const Json& rank : report["ranks"]) {
    ASSERT_EQ(rank["partners"].size(), 2);
    for (const Json& partner : rank["partners"]) {
      EXPECT_EQ(partner["messages"], 60);
      EXPECT_EQ(partner["received"], 60);
      EXPECT_EQ(partner["exchanges"], 20);
      EXPECT_EQ((int(partner["rank"]) - int(rank["rank"]) + 4) % 2, 1);
    }
  }
  const Json halo = pattern(report, "regular halo");
  ASSERT_FALSE(halo.is_null()) << report["patterns"].dump();
  EXPECT_EQ(halo["stable"], true);
  EXPECT_EQ(halo["figures"]["expected_messages"], 160);
  // Hosts of ranks 0 and 1, 2 and 3: ranks 1 and 2, 3 and 0 are neighbours. 4 x 60 messages; 4 x 20; 2 streams x 20.
  EXPECT_EQ(halo["figures"]["between_hosts"]["messages"], 240);
  EXPECT_EQ(halo["figures"]["between_hosts"]["expected"], 80);
  EXPECT_EQ(halo["figures"]["between_hosts"]["streams"], 40);
  const std::string advice = halo["advice"];
  EXPECT_NE(advice.find("expected messages: 1/3 "), std::string::npos) << advice;
  EXPECT_NE(advice.find("between hosts 1/3, or 1/6 "), std::string::npos) << advice;
}

TEST(MpiReport, the_steps_of_a_line_are_counted_where_its_ends_have_no_second_neighbour) {
  const Json report = traffic("line");
  EXPECT_EQ(report["exchanges"]["exchanges"], 80);
  EXPECT_EQ(report["messages"]["point_to_point"]["messages"], 6 * 20);
  const Json halo = pattern(report, "regular halo");
  ASSERT_FALSE(halo.is_null()) << report["patterns"].dump();
  EXPECT_EQ(halo["figures"]["expected_messages"], 120);
  EXPECT_EQ(halo["figures"]["neighbours"], 1.5);
  EXPECT_FALSE(pattern(report, "packing").is_null());
}

TEST(MpiReport, the_counts_of_all_other_kinds_of_calls_are_those_of_a_hand_count) {
  const Json report = traffic("others");
  ASSERT_FALSE(report.empty());
  EXPECT_EQ(function(report, "MPI_Startall"), Counts(40, 4 * 10 * 2 * 8));
  EXPECT_EQ(function(report, "MPI_Send_init").first, 8);
  EXPECT_EQ(function(report, "MPI_Sendrecv"), Counts(80, 80 * 8));
  EXPECT_EQ(function(report, "MPI_Neighbor_alltoall"), Counts(40, 40 * 2 * 8));
  EXPECT_EQ(function(report, "MPI_Send"), Counts(1, 32));
  EXPECT_EQ(function(report, "MPI_Recv"), Counts(1, 0));
  EXPECT_EQ(function(report, "MPI_Comm_split"), Counts(4, 0));
  EXPECT_EQ(function(report, "MPI_Type_commit"), Counts(4, 0));
  EXPECT_EQ(function(report, "MPI_Allreduce"), Counts(4, 4 * 16));
  EXPECT_EQ(function(report, "MPI_Bcast"), Counts(4, 128));  // the root's
  EXPECT_EQ(function(report, "MPI_Alltoall"), Counts(4, 4 * 4 * 16));
  EXPECT_EQ(function(report, "MPI_Alltoallv"), Counts(4, 12));
  EXPECT_EQ(function(report, "MPI_Ibarrier"), Counts(4, 0));
  EXPECT_EQ(function(report, "MPI_Wait"), Counts(4, 0));
  EXPECT_EQ(function(report, "MPI_Put"), Counts(4, 32));
  EXPECT_EQ(function(report, "MPI_Win_fence"), Counts(8, 0));
  EXPECT_EQ(function(report, "MPI_Comm_free").first, 8);
  // 3 x 4 x 10 x 2 messages of the rings, and one of a datatype with gaps to rank 1 of the world.
  EXPECT_EQ(report["messages"]["point_to_point"]["messages"], 241);
  EXPECT_EQ(report["messages"]["one_sided"]["messages"], 4);
  EXPECT_EQ(report["datatypes"]["with_gaps"]["messages"], 1);
  EXPECT_EQ(report["datatypes"]["with_gaps"]["bytes"], 32);
  const Json& partners = report["ranks"][0]["partners"];
  const auto first = std::ranges::find_if(partners, [](const Json& partner) { return partner["rank"] == 1; });
  ASSERT_NE(first, partners.end());
  EXPECT_EQ((*first)["bytes"], 3 * 10 * 8 + 32);
}

TEST(MpiReport, a_server_that_answers_any_source_is_request_and_reply) {
  const Json report = traffic("replies");
  EXPECT_EQ(function(report, "MPI_Send"), Counts(600, 4800));
  EXPECT_EQ(report["any_source"], 300);
  const Json replies = pattern(report, "request-reply");
  ASSERT_FALSE(replies.is_null()) << report["patterns"].dump();
  EXPECT_EQ(replies["figures"]["answers_to_any"], 300);
  EXPECT_EQ(replies["figures"]["answers"], 300 + 3 * 99);
}

TEST(MpiReport, updates_of_random_ranks_are_irregular_and_share_frames) {
  const Json report = traffic("updates");
  EXPECT_EQ(function(report, "MPI_Isend"), Counts(4000, 64000));
  EXPECT_EQ(function(report, "MPI_Barrier"), Counts(40, 0));
  const Json updates = pattern(report, "irregular messages");
  ASSERT_FALSE(updates.is_null()) << report["patterns"].dump();
  EXPECT_EQ(updates["stable"], false);
  EXPECT_EQ(updates["figures"]["expected_messages"], 4 * 10 * 4);  // a frame to each rank in a step
}

TEST(MpiReport, ranks_that_are_killed_leave_what_they_counted) {
  const Json report = traffic("killed", {}, 1);
  ASSERT_FALSE(report.empty());
  EXPECT_EQ(report["ranks_with_counts"], 4);
  EXPECT_LT(report["ranks_ended"], 4);
  EXPECT_EQ(function(report, "MPI_Isend").first, 480);
}

TEST(MpiReport, a_program_without_mpi_gets_one_line) {
  const ChildResult result = headway({"echo", "hello"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.output.find("hello"), std::string::npos);
  EXPECT_NE(result.errors.find("called no MPI function"), std::string::npos) << result.errors;
  EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
}

TEST(MpiReport, calls_of_a_fortran_program_count) {
  const std::string compiler = "mpifort." + mpi();
  const std::string program = (std::filesystem::path(testing::TempDir()) / ("mpi_report_ring_" + mpi())).string();
  const ChildResult compiled = run_child({compiler, RING_IN_FORTRAN, "-o", program}, {}, std::chrono::seconds(60));
  if (compiled.status != 0) GTEST_SKIP() << "no " << compiler << ": " << compiled.errors;
  const Json report = report_on({program});
  std::filesystem::remove(program);
  EXPECT_EQ(function(report, "MPI_Isend"), Counts(40, 40 * 40));
  EXPECT_EQ(function(report, "MPI_Irecv"), Counts(40, 0));
  EXPECT_EQ(function(report, "MPI_Waitall"), Counts(40, 0));
  EXPECT_EQ(function(report, "MPI_Allreduce"), Counts(4, 32));
}

}  // namespace
}  // namespace headway::tools
