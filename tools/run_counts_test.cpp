// SPDX-License-Identifier: BSD-3-Clause
/// HEADWAY_COUNTS and `headway run --table` with programs as users start them.
#include "run_counts.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>

#include "run_command.hpp"

namespace headway::tools {
namespace {

std::string program(const char* name) { return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string(); }

class RunOfCounts : public ::testing::TestWithParam<const char*> {};

/// The counts of a run that must end well.
RunCounts counts_of(const std::vector<std::string>& command, const std::vector<Variable>& settings) {
  const TemporaryFile file;
  std::vector<Variable> all = settings;
  all.push_back({"HEADWAY_COUNTS", file.path()});
  const ChildResult ended = run_child(command, all, std::chrono::seconds(100));
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return read_counts(file.path());
}

void expect_consistent(const RunCounts& counts) {
  double sent = 0, received = 0;
  for (const PeRow& row : counts.rows) {
    sent += row.frames_sent;
    received += row.frames_received;
    EXPECT_GT(row.run_ns, 0);
    EXPECT_LE(row.turns, row.bursts);
    EXPECT_LE(row.turns_of_all + row.turns_of_handlers, row.turns);
    EXPECT_LE(row.bursts, row.frames_sent);
    EXPECT_LE(row.receivers, double(counts.pes - 1));
    EXPECT_LE(row.waiting_ns, row.run_ns);
    EXPECT_GE(row.barriers, 1);
    EXPECT_EQ(row.program_ns + row.handlers_ns + row.communication_ns + row.idle_ns, row.run_ns);
  }
  EXPECT_GT(sent, 0);
  EXPECT_EQ(sent, received);
}

TEST_P(RunOfCounts, holds_each_message_of_stream_once) {
  const std::string transport = GetParam();
  const std::vector<std::string> stream = {program("headway-stream"), "--mode", "direct", "--messages", "1000"};
  const std::vector<Variable> settings = {{"HEADWAY_TRANSPORT", transport}, {"HEADWAY_PES", "2"}};
  const RunCounts counts = counts_of(stream, settings);
  ASSERT_EQ(counts.pes, 2u);
  EXPECT_EQ(counts.simulated, transport == "sim");
  expect_consistent(counts);
  for (const PeRow& row : counts.rows) {
    // 1000 messages in each of its three passes, each in a frame of its own; and a few of the runtime's
    EXPECT_EQ(row.messages_in_frames, 3000);
    EXPECT_EQ(row.frames_sent - row.control_frames, 3000);
    EXPECT_EQ(row.alone, row.messages);
    EXPECT_GE(row.messages, 3000);
    EXPECT_EQ(row.receivers, 1);
    EXPECT_GE(row.bytes_sent, 3000 * (24 + 8));
  }
  EXPECT_EQ(counts.communication.at("messages_max").get<double>(), counts.max(&PeRow::messages));
}

TEST_P(RunOfCounts, holds_frames_of_aggregators_and_their_buffers) {
  const std::string transport = GetParam();
  const std::vector<Variable> settings = {{"HEADWAY_TRANSPORT", transport}, {"HEADWAY_PES", "4"}};
  const RunCounts counts = counts_of({program("headway-randomaccess"), "--log2", "14"}, settings);
  ASSERT_EQ(counts.pes, 4u);
  expect_consistent(counts);
  for (const PeRow& row : counts.rows) {
    EXPECT_GE(row.messages, 4 * 16384 / 4.0);
    EXPECT_LT(row.messages_in_frames, row.messages);  // some are the PE's own
    EXPECT_LT(row.frames_sent, row.messages / 10);
    EXPECT_EQ(row.alone, 0);
    EXPECT_GT(row.peak_buffer_bytes, 0);
    EXPECT_EQ(row.receivers, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, RunOfCounts, ::testing::Values("local", "sim"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST(RunOfCounts, threads_of_one_process_are_pes_of_their_own) {
  const RunCounts counts = counts_of({program("headway-randomaccess"), "--log2", "12"},
                                     {{"HEADWAY_PES", "4"}, {"HEADWAY_PES_PER_PROCESS", "2"}});
  EXPECT_EQ(counts.pes_per_process, 2u);
  ASSERT_EQ(counts.rows.size(), 4u);
  expect_consistent(counts);
}

TEST(RunOfCounts, a_simulation_has_the_same_counts_each_time) {
  auto once = [] {
    return counts_of({program("headway-randomaccess"), "--log2", "12"},
                     {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_PES", "8"}});
  };
  const RunCounts first = once(), second = once();
  for (std::size_t pe = 0; pe < 8; ++pe) {
    EXPECT_EQ(first.rows[pe].frames_sent, second.rows[pe].frames_sent);
    EXPECT_EQ(first.rows[pe].turns, second.rows[pe].turns);
    EXPECT_EQ(first.rows[pe].run_ns, second.rows[pe].run_ns);
  }
}

TEST(RunOfCounts, phases_of_all_pes_stand_in_one_table_below_those_that_they_lie_in) {
  const TemporaryFile file;
  const ChildResult ended =
      run_child({program("headway-randomaccess"), "--log2", "8"},
                {{"HEADWAY_PES", "2"}, {"HEADWAY_COUNTS", file.path()}}, std::chrono::seconds(100));
  ASSERT_EQ(ended.status, 0) << ended.errors;
  std::ifstream written(file.path());
  bench::Json json = bench::Json::parse(written);
  auto phase = [](const char* name, bench::Json parent, double program_ns, bench::Json cycles) {
    return bench::Json{{"name", name},
                       {"parent", std::move(parent)},
                       {"calls", 2},
                       {"ns", {{"program", program_ns}, {"handlers", 0}, {"communication", 0}, {"waiting", 1e6}}},
                       {"cycles", cycles},
                       {"instructions", cycles},
                       {"cache_misses", nullptr}};
  };
  json["per_pe"][0]["phases"] = {phase("set up", nullptr, 1e6, 5e6), phase("solve", nullptr, 3e6, 5e6),
                                 phase("sweep", 1, 1e6, 5e6)};
  json["per_pe"][1]["phases"] = {phase("solve", nullptr, 9e6, 5e6), phase("set up", nullptr, 1e6, nullptr),
                                 phase("check", 1, 1e6, 5e6)};
  json["per_pe"][1]["hardware_errno"] = EACCES;
  std::ofstream(file.path()) << json;
  const RunCounts counts = read_counts(file.path());
  ASSERT_EQ(counts.phases.size(), 4u);
  EXPECT_EQ(counts.phases[0].name, "set up");
  EXPECT_FALSE(counts.phases[0].cycles);
  EXPECT_EQ(counts.phases[1].name, "check");
  EXPECT_EQ(counts.phases[1].depth, 1u);
  EXPECT_EQ(counts.phases[2].name, "solve");
  EXPECT_EQ(counts.phases[2].slowest_pe, 1u);
  EXPECT_EQ(counts.phases[2].ns, 14e6);
  EXPECT_EQ(counts.phases[2].calls, 4);
  EXPECT_EQ(counts.phases[2].cycles, 10e6);
  EXPECT_EQ(counts.phases[3].name, "sweep");
  const std::string table = phases_table(counts);
  EXPECT_NE(table.find("perf_event_paranoid"), std::string::npos) << table;
  EXPECT_NE(times_table(counts).find("slowest"), std::string::npos) << times_table(counts);
}

TEST(RunOfCounts, a_file_that_cannot_be_written_ends_the_run_with_its_name) {
  const ChildResult ended =
      run_child({program("headway-randomaccess"), "--log2", "10"},
                {{"HEADWAY_PES", "2"}, {"HEADWAY_COUNTS", "/no/such/folder/counts"}}, std::chrono::seconds(100));
  EXPECT_EQ(ended.status, 121);
  EXPECT_NE(ended.errors.find("HEADWAY_COUNTS=/no/such/folder/counts"), std::string::npos) << ended.errors;
  const ChildResult empty = run_child({program("headway-randomaccess"), "--log2", "10"},
                                      {{"HEADWAY_PES", "2"}, {"HEADWAY_COUNTS", ""}}, std::chrono::seconds(100));
  EXPECT_EQ(empty.status, 120);
}

TEST(RunOfCounts, a_file_of_something_else_is_refused) {
  EXPECT_THROW(read_counts("/no/such/file"), SystemError);
  const TemporaryFile file;
  EXPECT_THROW(read_counts(file.path()), SystemError);  // as a failed run leaves it
  std::ofstream(file.path()) << "{\"pes\": 2}";
  EXPECT_THROW(read_counts(file.path()), SystemError);
}

TEST(RunTable, shows_messages_and_frames_of_each_pe_after_the_program) {
  const ChildResult ended = headway({"run", "-n", "2", "--table", program("headway-stream"), "--messages", "1000"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  for (const char* word : {"us/message", "ms/barrier", "messages mean", "retries", "receivers", "waiting ms"})
    EXPECT_NE(ended.output.find(word), std::string::npos) << word << '\n' << ended.output;
  const ChildResult failed = headway({"run", "-n", "2", "--table", program("headway-stream"), "--messages", "0"});
  EXPECT_NE(failed.status, 0);
  EXPECT_EQ(failed.output.find("us/message"), std::string::npos);
}

/// By SIGTERM, because a shell makes the processes that it starts in the background ignore SIGINT.
TEST(RunTable, a_signal_leaves_no_file_of_counts) {
  std::string folder = (std::filesystem::temp_directory_path() / "headway-counts-test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string script =
      "TMPDIR=$1 \"$2\" $3 \"$4\" --messages 2^30 >/dev/null 2>&1 &\n"
      "while [ -z \"$(ls $1)\" ]; do sleep 0.01; done\n"
      "kill -TERM $!; wait $!; echo $?; ls $1";
  for (const char* command : {"run -n 2 --table", "predict --measure 2 --dial none"}) {
    const ChildResult ended =
        run_child({"sh", "-c", script, "sh", folder, HEADWAY_COMMAND, command, program("headway-stream")}, {},
                  std::chrono::seconds(100));
    EXPECT_EQ(ended.output, "143\n") << command << ": " << ended.errors;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headway::tools
