// SPDX-License-Identifier: BSD-3-Clause
/// `headway slopes` and traces as users start them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <headway/base/dial_settings.hpp>
#include <headway/base/settings.hpp>
#include <record/record.hpp>

#include "run_command.hpp"
#include "run_counts.hpp"
#include "trace_prediction.hpp"

namespace headway::tools {
namespace {

using bench::Json;

std::string program(const char* name) { return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string(); }

/// A simulation without computation: equal runs take equal times.
std::vector<Variable> simulated(std::size_t pes) {
  return {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_PES", std::to_string(pes)}};
}

TEST(SlopesCommand, every_bad_argument_is_refused_in_one_line) {
  struct Refusal {
    std::vector<std::string> arguments, named;
  };
  const std::vector<Refusal> refusals = {{{}, {"program is needed"}},
                                         {{"no-such-program"}, {"no-such-program"}},
                                         {{"--dial", "q=5us", "true"}, {"--dial", "q=5us"}},
                                         {{"--dial", "L=5us,random", "true"}, {"--dial", "random"}},
                                         {{"--measure", "true"}, {"--measure", "--dial"}},
                                         {{"--measure", "--dial", "o=1us", "/"}, {"--measure", "folder"}},
                                         {{"/", "5"}, {"'/'", "no arguments"}},
                                         {{"--repeat", "0", "true"}, {"--repeat", "'0'"}},
                                         {{"--mesure", "true"}, {"'--mesure'", "'--measure'"}}};
  for (Refusal refusal : refusals) {
    refusal.arguments.insert(refusal.arguments.begin(), "slopes");
    const ChildResult ended = headway(refusal.arguments);
    EXPECT_EQ(ended.status, 2) << ended.errors;
    EXPECT_EQ(std::ranges::count(ended.errors, '\n'), 1) << ended.errors;
    for (const std::string& word : refusal.named)
      EXPECT_NE(ended.errors.find(word), std::string::npos) << word << ": " << ended.errors;
  }
  EXPECT_EQ(headway({"slopes", "true"}, {{"HEADWAY_TRACE", "x"}}).status, 2);
}

TEST(SlopesCommand, a_program_without_a_trace_is_named) {
  const ChildResult none = headway({"slopes", "true"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.errors.find("wrote no trace"), std::string::npos) << none.errors;
  const ChildResult failed = headway({"slopes", program("headway-stream"), "--messages", "0"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_NE(failed.errors.find("--messages"), std::string::npos) << failed.errors;
}

TEST(SlopesCommand, folders_without_a_whole_trace_are_refused_in_one_line) {
  const TemporaryFolder folder;
  const ChildResult empty = headway({"slopes", folder.path()});
  EXPECT_EQ(empty.status, 1);
  EXPECT_EQ(std::ranges::count(empty.errors, '\n'), 1) << empty.errors;
  EXPECT_NE(empty.errors.find("pe-0.trace"), std::string::npos) << empty.errors;
  std::ofstream(folder.path() + "/pe-0.trace") << "text";
  const ChildResult text = headway({"slopes", folder.path()});
  EXPECT_EQ(text.status, 1);
  EXPECT_NE(text.errors.find("cut off"), std::string::npos) << text.errors;
}

TEST(SlopesCommand, a_folder_that_cannot_be_written_ends_the_run_at_its_begin) {
  const ChildResult ended =
      headway({"run", "-n", "2", "--trace", "/proc/no-such-folder", program("headway-pingpong"), "--messages", "1"});
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.errors.find("HEADWAY_TRACE=/proc/no-such-folder"), std::string::npos) << ended.errors;
  EXPECT_EQ(headway({"run", "--trace", "", "true"}).status, 2);
}

TEST(SlopesCommand, ways_that_no_trace_sees_are_refused) {
  const ChildResult ended =
      headway({"run", "-n", "2", "--trace", "x", "--transfer", "mapped", program("headway-pingpong")});
  EXPECT_EQ(ended.status, 2) << ended.errors;
  EXPECT_NE(ended.errors.find("HEADWAY_TRACE"), std::string::npos) << ended.errors;
}

TEST(SlopesCommand, on_a_simulated_network_predictions_are_within_15_percent) {
  if (!base::has_simulation) GTEST_SKIP() << "this build has no sim transport";
  struct Program {
    std::vector<std::string> command;
    std::size_t pes;
  };
  const std::vector<Program> programs = {
      {{program("headway-pingpong"), "--messages", "50"}, 2},
      {{program("headway-randomaccess"), "--log2", "9", "--updates-per-word", "2", "--mode", "direct"}, 3}};
  for (const Program& one : programs) {
    std::vector<std::string> arguments = {
        "slopes",    "--json", "-",
        "--measure", "--dial", "o=1us/o=5us/o=20us/g=1us/g=5us/g=20us/L=1us/L=5us/L=20us/G=1ns/G=5ns/G=20ns"};
    arguments.insert(arguments.end(), one.command.begin(), one.command.end());
    const ChildResult ended = headway(arguments, simulated(one.pes));
    ASSERT_EQ(ended.status, 0) << ended.errors;
    const Json result = Json::parse(ended.output);
    EXPECT_EQ(result["pes"], one.pes);
    EXPECT_EQ(result["forced_waits"], 0);
    EXPECT_NEAR(result["replayed_seconds"].get<double>(), result["traced_seconds"].get<double>(),
                0.02 * result["traced_seconds"].get<double>());
    ASSERT_EQ(result["dialled"].size(), 12u);
    for (const Json& dialled : result["dialled"])
      EXPECT_LT(std::abs(dialled["error"].get<double>()), 0.15) << one.command[0] << ": " << dialled["dials"];
  }
}

TEST(SlopesCommand, a_trace_of_a_run_on_shared_memory_is_read_from_its_folder) {
  const TemporaryFolder folder;
  const TemporaryFile counts;
  const std::string traces = folder.path() + "/of/run";
  const ChildResult run = headway({"run", "-n", "2", "--trace", traces, "--counts", counts.path(),
                                   program("headway-randomaccess"), "--log2", "10", "--mode", "direct"});
  ASSERT_EQ(run.status, 0) << run.errors;
  const ChildResult ended = headway({"slopes", "--dial", "o=20us", "--json", "-", traces});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const Json result = Json::parse(ended.output);
  EXPECT_EQ(result["simulated"], false);
  EXPECT_GT(result["frames"], 1000);
  // each frame costs its sender and its receiver 20 us
  const RunCounts counted = read_counts(counts.path());
  const double frames = counted.max(&PeRow::frames_sent);
  EXPECT_GT(result["dialled"][0]["predicted_seconds"].get<double>(), 20e-6 * frames);
  const ChildResult text = headway({"slopes", "--dial", "o=20us", traces});
  EXPECT_NE(text.output.find("before the run takes 1 % longer"), std::string::npos) << text.output;
}

TEST(SlopesCommand, other_commands_predict_several_cases_from_one_run) {
  if (!base::has_simulation) GTEST_SKIP() << "this build has no sim transport";
  const std::vector<base::DialSettings> cases = {{}, {.overhead_ns = 5000}, {.latency_ns = 20'000}};
  const model::trace::Graph graph =
      traced_run({{program("headway-pingpong"), "--messages", "20"}}, {.settings = simulated(2)});
  std::vector<double> seconds;
  seconds.reserve(cases.size());
  for (const base::DialSettings& dials : cases) seconds.push_back(predict_from_trace(graph, dials));
  EXPECT_GT(seconds[0], 0);
  EXPECT_GT(seconds[1], seconds[0] + 20 * 4 * 5e-6);
  EXPECT_GT(seconds[2], seconds[0] + 20 * 2 * 20e-6);
}

}  // namespace
}  // namespace headway::tools
