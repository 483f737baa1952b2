// SPDX-License-Identifier: BSD-3-Clause
/// `headway trace` as users start it; Python's packages perfetto and otf2, where they are, read its files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <headway/base/settings.hpp>
#include <headway/model/trace/made_trace_test.hpp>
#include <map>
#include <sstream>

#include "run_command.hpp"
#include "trace_prediction.hpp"

namespace headway::tools {
namespace {

using model::trace::MadeTrace;
using model::trace::NameKind;
using model::trace::PeTrace;

std::string program(const char* name) { return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string(); }

void write(const std::string& folder, PeTrace trace) {
  trace.header.names = std::uint32_t(trace.names.size());
  trace.header.header_bytes += std::uint32_t(trace.names.size() * sizeof trace.names[0]);
  std::ofstream file(folder + "/pe-" + std::to_string(trace.header.pe) + ".trace", std::ios::binary);
  auto put = [&](const void* from, std::size_t bytes) {
    file.write(static_cast<const char*>(from), std::streamsize(bytes));
  };
  put(&trace.header, sizeof trace.header);
  put(trace.names.data(), trace.names.size() * sizeof trace.names[0]);
  put(trace.records.data(), trace.records.size() * sizeof trace.records[0]);
}

/// Two PEs: a phase in a phase, a frame with an arrow and one without.
void write_two_PEs(const std::string& folder) {
  PeTrace first =
      MadeTrace(0, 2).phase(10, 1).phase(20, 2).post(30, 1).post(35, 1).phase_end(40, 2).phase_end(50, 1).end(60);
  first.names = {{NameKind::phase, 1, "outer"}, {NameKind::phase, 2, "in, \"quotes\""}};
  write(folder, first);
  PeTrace second = MadeTrace(1, 2).wait(20).take(45, 0).none(55).go_on(58).end(60);
  second.names = {{NameKind::handler, 0, "update"}};
  write(folder, second);
}

std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    std::vector<std::string>& row = rows.emplace_back(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        row.emplace_back();
      else
        row.back() += c;
    }
  }
  return rows;
}

/// Its bin folder first in the path, so that `python3` has the packages.
std::vector<Variable> with_readers() {
  return {{"PATH", std::string(HEADWAY_TRACE_READERS) + ":" + std::getenv("PATH")}};
}
bool has_readers() {
  return run_child({"python3", "-c", "import otf2, perfetto"}, with_readers(), std::chrono::seconds(60)).status == 0;
}
ChildResult check(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"python3", HEADWAY_TRACE_CHECK};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_child(command, with_readers(), std::chrono::seconds(200));
}

TEST(TraceCommand, every_bad_argument_is_refused_in_one_line_before_the_trace_is_read) {
  const TemporaryFolder folder;
  write_two_PEs(folder.path());
  const std::string own = folder.path() + "/pe-0.trace";
  struct Refusal {
    std::vector<std::string> arguments, named;
  };
  const std::vector<Refusal> refusals = {
      {{}, {"DIR"}},
      {{"/no/trace"}, {"-o FILE, --csv FILE or --otf2 DIR"}},
      {{"/no/trace", "-o", "/no/folder/a"}, {"--output", "'/no/folder/a'", "written"}},
      {{"/no/trace", "-o", "/tmp"}, {"--output", "'/tmp'", "cannot be written"}},
      {{"/no/trace", "--csv", "/no/folder/a"}, {"--csv", "'/no/folder/a'"}},
      {{"/no/trace", "-o", "-"}, {"--output", "'-'"}},
      {{folder.path(), "-o", own}, {"--output", own}},
      {{folder.path(), "--otf2", folder.path()}, {"--otf2", folder.path(), "empty"}},
      {{"/no/trace", "--cvs", "a"}, {"'--cvs'", "'--csv'"}}};
  for (Refusal refusal : refusals) {
    refusal.arguments.insert(refusal.arguments.begin(), "trace");
    const ChildResult ended = headway(refusal.arguments);
    EXPECT_EQ(ended.status, 2) << ended.errors;
    EXPECT_EQ(std::ranges::count(ended.errors, '\n'), 1) << ended.errors;
    for (const std::string& word : refusal.named)
      EXPECT_NE(ended.errors.find(word), std::string::npos) << word << ": " << ended.errors;
  }
}

TEST(TraceCommand, unusable_traces_are_refused_in_one_line) {
  const TemporaryFolder folder, outputs;
  const std::string output = outputs.path() + "/a.pftrace";
  auto expect = [&](const std::string& trace, const std::vector<std::string>& named) {
    const ChildResult ended = headway({"trace", trace, "-o", output});
    EXPECT_EQ(ended.status, 1) << ended.errors;
    EXPECT_EQ(std::ranges::count(ended.errors, '\n'), 1) << ended.errors;
    for (const std::string& word : named)
      EXPECT_NE(ended.errors.find(word), std::string::npos) << word << ": " << ended.errors;
    EXPECT_FALSE(std::filesystem::exists(output));
  };
  expect("/no/trace", {"'/no/trace'", "no folder"});
  expect(folder.path(), {"pe-0.trace", "No such file"});
  write_two_PEs(folder.path());
  const std::string second = folder.path() + "/pe-1.trace";
  std::filesystem::resize_file(second, std::filesystem::file_size(second) - 1);
  expect(folder.path(), {"pe-1.trace", "cut off"});
  PeTrace other = MadeTrace(1, 2).end(60);
  other.header.version = 1;
  write(folder.path(), other);
  expect(folder.path(), {"pe-1.trace", "its version is 1, and this build reads 2"});
  write(folder.path(), MadeTrace(1, 3).end(60));
  expect(folder.path(), {"pe-1.trace", "another run"});
  write_two_PEs(folder.path());
  std::ofstream(folder.path() + "/trace.json") << "[1, 2";
  expect(folder.path(), {"trace.json", "no JSON object"});
}

TEST(TraceCommand, without_otf2_one_line_says_how_to_install_it) {
  const TemporaryFolder folder, empty_path;
  write_two_PEs(folder.path());
  const ChildResult ended =
      headway({"trace", folder.path(), "--otf2", folder.path() + "/otf2"}, {{"PATH", empty_path.path()}});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(std::ranges::count(ended.errors, '\n'), 1) << ended.errors;
  EXPECT_NE(ended.errors.find("install python3"), std::string::npos) << ended.errors;
  const std::string python = empty_path.path() + "/python3";
  std::ofstream(python) << "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'otf2'\" >&2\nexit 1\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const ChildResult without =
      headway({"trace", folder.path(), "--otf2", folder.path() + "/otf2"}, {{"PATH", empty_path.path()}});
  EXPECT_EQ(without.status, 2);
  EXPECT_EQ(std::ranges::count(without.errors, '\n'), 1) << without.errors;
  EXPECT_NE(without.errors.find("python3 -m pip install otf2"), std::string::npos) << without.errors;
}

TEST(TraceCommand, a_row_of_csv_has_all_columns_and_the_numbers_of_its_record) {
  const TemporaryFolder folder;
  write_two_PEs(folder.path());
  const ChildResult ended = headway({"trace", folder.path(), "--csv", "-"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.errors.find("frames undelivered: 1,"), std::string::npos) << ended.errors;
  const auto rows = rows_of(ended.output);
  ASSERT_EQ(rows.size(), 1 + 8 + 7u) << ended.output;
  std::map<std::string, std::size_t> column;
  for (std::size_t i = 0; i < rows[0].size(); ++i) column[rows[0][i]] = i;
  for (const auto& row : rows) ASSERT_EQ(row.size(), rows[0].size()) << ended.output;
  auto cell = [&](std::size_t row, const char* name) { return rows[row].at(column.at(name)); };
  EXPECT_EQ(cell(3, "record"), "phase_begins");
  EXPECT_EQ(cell(3, "name"), "in, quotes");  // rows_of() drops the quotes
  EXPECT_EQ(cell(4, "record"), "posted");
  EXPECT_EQ(cell(4, "time_ns"), "30");
  EXPECT_EQ(cell(4, "peer"), "1");
  EXPECT_EQ(cell(4, "bytes"), "100");
  EXPECT_EQ(cell(4, "messages"), "3");
  EXPECT_EQ(cell(4, "latency_ns"), "15");
  EXPECT_EQ(cell(5, "state"), "undelivered");
  EXPECT_EQ(cell(5, "latency_ns"), "");
  EXPECT_EQ(cell(12, "record"), "taken");
  EXPECT_EQ(cell(12, "name"), "update");
  EXPECT_EQ(cell(12, "frame"), cell(4, "frame"));
}

TEST(TraceCommand, lost_records_are_counted_in_the_summary_and_in_the_files_for_perfetto_and_csv) {
  const TemporaryFolder folder;
  write_two_PEs(folder.path());
  PeTrace second = MadeTrace(1, 2).wait(20).take(45, 0).none(55).go_on(58).end(60);
  second.header.written += 3;  // the ring has wrapped by 3
  std::ranges::rotate(second.records, second.records.end() - 3);
  write(folder.path(), second);
  const std::string csv = folder.path() + "/a.csv";
  const ChildResult ended = headway({"trace", folder.path(), "--csv", csv, "-o", folder.path() + "/a.pftrace"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const std::size_t at = ended.output.find("records lost: ");
  ASSERT_NE(at, std::string::npos) << ended.output;
  const std::string lost = ended.output.substr(at + 14, 1);
  EXPECT_EQ(lost, "4");  // the oldest one left may have been half replaced
  const ChildResult packets = run_child({"gzip", "-dc", folder.path() + "/a.pftrace"}, {}, std::chrono::seconds(60));
  EXPECT_NE(packets.output.find("trace: 4 records lost, "), std::string::npos);
  EXPECT_NE(packets.output.find("4 older records lost"), std::string::npos);
  std::stringstream text;
  text << std::ifstream(csv).rdbuf();
  const auto rows = rows_of(text.str());
  const auto row = std::ranges::find_if(rows, [](const auto& one) { return one[3] == "lost"; });
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->size(), rows[0].size());
  EXPECT_EQ(row->front(), "1");
  EXPECT_EQ(row->back(), lost);
}

TEST(TraceCommand, perfetto_and_otf2_read_each_event_and_arrows_join_each_post_with_its_handler) {
  if (!has_readers()) GTEST_SKIP() << "no python3 with perfetto and otf2: scripts/setup check installs them";
  if (!base::has_simulation) GTEST_SKIP() << "this build has no sim transport";
  const TemporaryFolder folder;
  const std::string traces = folder.path() + "/traces", file = folder.path() + "/a.pftrace",
                    archive = folder.path() + "/otf2";
  const ChildResult run = run_child({program("headway-randomaccess"), "--log2", "12", "--mode", "2d"},
                                    {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_PES", "8"}, {"HEADWAY_TRACE", traces}},
                                    std::chrono::seconds(100));
  ASSERT_EQ(run.status, 0) << run.errors;
  const ChildResult ended = headway({"trace", traces, "-o", file, "--otf2", archive}, with_readers());
  ASSERT_EQ(ended.status, 0) << ended.errors;
  EXPECT_NE(ended.output.find("records lost: 0\nframes undelivered: 0, and 0 of"), std::string::npos) << ended.output;
  const std::string before = "traces.otf2: ";
  const std::size_t at = ended.output.find(before);
  ASSERT_NE(at, std::string::npos) << ended.output;
  const std::string events = std::to_string(std::atoll(ended.output.c_str() + at + before.size()));
  const ChildResult checked = check({traces, "--perfetto", file, "--otf2", archive, events});
  EXPECT_EQ(checked.status, 0) << checked.errors;
  EXPECT_NE(checked.output.find("'wait for quiescence'"), std::string::npos) << checked.output;
  EXPECT_NE(checked.output.find(events + " events of OTF2"), std::string::npos) << checked.output;
  // The check itself fails with another number of events.
  const ChildResult twice = check({traces, "--otf2", archive, events + "0"});
  EXPECT_EQ(twice.status, 1) << twice.output;
}

TEST(TraceCommand, perfetto_reads_names_phases_and_lost_arrows_of_a_made_trace) {
  if (!has_readers()) GTEST_SKIP() << "no python3 with perfetto and otf2: scripts/setup check installs them";
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/a.pftrace";
  write_two_PEs(folder.path());
  ASSERT_EQ(headway({"trace", folder.path(), "-o", file}).status, 0);
  const ChildResult checked = check({folder.path(), "--perfetto", file});
  EXPECT_EQ(checked.status, 0) << checked.errors;
  for (const char* part : {"'outer': 1", "'in, \"quotes\"': 1", "'update': 1", "'wait for frames': 1", " 1 arrows",
                           "'bytes in flight', 'messages per frame'"})
    EXPECT_NE(checked.output.find(part), std::string::npos) << part << ": " << checked.output;
  // With another trace than that of the file the check fails.
  write(folder.path(), MadeTrace(1, 2).wait(20).take(44, 0).none(55).go_on(58).end(60));
  EXPECT_EQ(check({folder.path(), "--perfetto", file}).status, 1);
}

}  // namespace
}  // namespace headway::tools
