// SPDX-License-Identifier: BSD-3-Clause
/// `headway sensitivity` as users start it, and its conclusions from counts made by hand.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/base/settings.hpp>
#include <record/record.hpp>
#include <sstream>

#include "dial_sweep.hpp"
#include "run_command.hpp"
#include "sensitivity_result.hpp"

namespace headway::tools {
namespace {

using bench::Json;

std::string program(const char* name) { return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string(); }

TEST(DialSweeps, values_are_evenly_spaced_and_without_0) {
  const auto sweeps = parse_dial_sweeps("--dial", "o=0..100us,L=5..20us:4,G=0..2ns:3,g=7us");
  ASSERT_EQ(sweeps.size(), 4u);
  EXPECT_EQ(sweeps[0].values, (std::vector<double>{25'000, 50'000, 75'000, 100'000}));
  EXPECT_EQ(sweeps[1].values, (std::vector<double>{5'000, 10'000, 15'000, 20'000}));
  EXPECT_EQ(sweeps[2].values, (std::vector<double>{1, 2}));
  EXPECT_EQ(sweeps[3].values, (std::vector<double>{7'000}));
  EXPECT_EQ(sweeps[1].dials(5'000), "L=5000ns");
  EXPECT_EQ(sweeps[2].text(1), "1 ns/B");
}

TEST(DialSweeps, a_bad_range_is_refused_with_its_text) {
  for (const char* text :
       {"", "o", "o=", "q=0..1us", "o=0..1", "o=5us..2us", "o=1us..1us", "o=0..1us:1", "o=0..1us:101", "o=0..1us:x",
        "o=0", "o=0..1us,o=0..2us", "o=0..1s", "G=0..2us", "o=-1us..1us", "o=0..1us,"}) {
    try {
      parse_dial_sweeps("--dial", text);
      ADD_FAILURE() << text << " was taken";
    } catch (const SettingError& error) {
      EXPECT_NE(std::string(error.what()).find("--dial"), std::string::npos) << error.what();
    }
  }
}

SweepCurve curve(const char* name, std::initializer_list<std::pair<double, double>> slowdowns) {
  SweepCurve result{{name, {}}, {}, {}};
  for (const auto& [value, slowdown] : slowdowns) {
    result.sweep.values.push_back(value);
    SweepPoint point{value, {}, {slowdown, slowdown, slowdown}};
    point.predicted = {{"formula", slowdown}};
    result.points.push_back(point);
  }
  result.fit = fit_of(result.sweep, result.points);
  return result;
}

TEST(SensitivityFit, a_line_has_its_slope_and_no_residual) {
  const SweepCurve line = curve("o", {{10'000, 1.5}, {20'000, 2}, {40'000, 3}});
  EXPECT_NEAR(line.fit.slope, 0.05, 1e-12);
  EXPECT_NEAR(line.fit.r2, 1, 1e-12);
  // A step: 1 1 1 9, through (0, 1).
  EXPECT_LT(curve("o", {{10'000, 1}, {20'000, 1}, {30'000, 9}}).fit.r2, 0.9);
}

/// A panel of two PEs that send one message a frame, and wait seldom.
Panel panel_of(SweepCurve one, double messages_in_frame = 1) {
  Panel panel{2, {}, {std::move(one)}};
  PeRow row;
  row.frames_sent = row.frames_received = 1000;
  row.messages_in_frames = row.messages = 1000 * messages_in_frame;
  row.bytes_sent = 64'000;
  row.payload_bytes = 60'000;
  row.receivers = 1;
  row.turns = 10;
  panel.plain.counts.rows = {row, row};
  panel.plain.seconds = 1e-3;
  return panel;
}

std::string all_of(const Panel& panel) {
  std::string text;
  for (const std::string& sentence : conclusions(panel)) text += sentence + '\n';
  return text;
}

bool says(const Panel& panel, const char* words) { return all_of(panel).find(words) != std::string::npos; }

TEST(SensitivityConclusions, advice_needs_its_evidence) {
  const SweepCurve overhead = curve("o", {{50'000, 3}, {100'000, 5}});
  EXPECT_TRUE(says(panel_of(overhead), "Aggregate: a frame carries 1.0 messages")) << all_of(panel_of(overhead));
  EXPECT_FALSE(says(panel_of(overhead, 50), "Aggregate")) << "frames are full";

  Panel waits = panel_of(overhead);
  for (PeRow& row : waits.plain.counts.rows) row.turns = 900;
  EXPECT_TRUE(says(waits, "buffers would not fill")) << all_of(waits);

  Panel reads = panel_of(curve("L", {{50'000, 4}}), 50);
  EXPECT_FALSE(says(reads, "Prefetch"));
  EXPECT_TRUE(says(reads, "Overlap")) << all_of(reads);
  for (PeRow& row : reads.plain.counts.rows) row.reads = row.turns = 400;
  EXPECT_TRUE(says(reads, "Prefetch reads: the busiest PE waits 400 times")) << all_of(reads);
  EXPECT_FALSE(says(reads, "Overlap"));

  Panel bytes = panel_of(curve("G", {{10, 2}}), 50);
  EXPECT_TRUE(says(bytes, "Send fewer bytes")) << all_of(bytes);
  EXPECT_FALSE(says(bytes, "headers"));
  for (PeRow& row : bytes.plain.counts.rows) row.payload_bytes = 16'000;
  EXPECT_TRUE(says(bytes, "75 % of them are headers")) << all_of(bytes);

  Panel uneven = panel_of(overhead, 50);
  EXPECT_FALSE(says(uneven, "Balance"));
  uneven.plain.counts.rows[1].frames_sent = 9000;
  EXPECT_TRUE(says(uneven, "Balance: PE 1 sends and gets 10000 frames, 1.67 times")) << all_of(uneven);

  Panel chains = panel_of(overhead, 50);
  EXPECT_FALSE(says(chains, "Shorten chains"));
  chains.curves[0].points.back().predicted = {{"formula", 2}};
  EXPECT_TRUE(says(chains, "Shorten chains: frames of the busiest PE explain 2 times")) << all_of(chains);

  EXPECT_TRUE(says(panel_of(curve("o", {{100'000, 1.02}})), "hardly matters"));
}

TEST(Sensitivity, every_bad_argument_is_refused_in_one_line) {
  struct Refusal {
    std::vector<std::string> arguments, named;
  };
  const std::vector<Refusal> refusals = {{{}, {"program is needed"}},
                                         {{"no-such-program"}, {"no-such-program"}},
                                         {{"true"}, {"'true'", "no Headway program"}},
                                         {{"--dial", "o=0..2", "true"}, {"--dial", "o=0..2"}},
                                         {{"--dial", "q=0..2us", "true"}, {"q=2us", "item_o"}},
                                         {{"--pes", "1", "true"}, {"--pes", "'1'", "2 to 4096"}},
                                         {{"--on", "moon", "true"}, {"--on", "'moon'", "local, sim, smpi"}},
                                         {{"--network", "L=1us", "true"}, {"--network", "--on sim"}},
                                         {{"--machine", "now", "true"}, {"--machine", "--on smpi"}},
                                         {{"--on", "smpi", "--machine", "sumit", "true"}, {"sumit", "summit"}},
                                         {{"--time", "wall", "true"}, {"--time", "run, program"}},
                                         {{"--json", "/no/such/folder/file", "true"}, {"/no/such/folder/file"}},
                                         {{"-o", "/no/such/folder/file", "true"}, {"/no/such/folder/file"}}};
  for (Refusal refusal : refusals) {
    refusal.arguments.insert(refusal.arguments.begin(), "sensitivity");
    const ChildResult ended = headway(refusal.arguments);
    EXPECT_EQ(ended.status, 2) << ended.errors;
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
    for (const std::string& word : refusal.named)
      EXPECT_NE(ended.errors.find(word), std::string::npos) << word << ": " << ended.errors;
  }
  const ChildResult dialled = headway({"sensitivity", "true"}, {{"HEADWAY_DIAL", "o=5us"}});
  EXPECT_EQ(dialled.status, 2);
  EXPECT_NE(dialled.errors.find("HEADWAY_DIAL"), std::string::npos);
}

// On a simulated network without computation each frame costs its PEs the overhead, so the formula is right.
TEST(Sensitivity, a_simulated_run_is_slowed_down_as_the_formula_says) {
  if (!base::has_simulation) GTEST_SKIP() << "no sim transport";
  const std::string page = (std::filesystem::temp_directory_path() / "headway-sensitivity-test.html").string();
  const ChildResult ended = headway({"sensitivity", "--on", "sim", "--network", "machine=now,compute=0", "--pes", "4",
                                     "--dial", "o=0..50us:3,L=0..50us:3", "--json", "-", "-o", page,
                                     program("headway-randomaccess"), "--log2", "12", "--mode", "direct"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const Json records = Json::parse(ended.output).at("records");
  std::size_t points = 0, fits = 0;
  for (const Json& record : records) {
    if (record.at("kind") == "fit" && record.at("dial") == "o") {
      EXPECT_GT(record.at("r2").get<double>(), 0.98);
      ++fits;
    }
    if (record.at("kind") != "point" || record.at("dial") != "o") continue;
    EXPECT_GT(record.at("slowdown").at("median").get<double>(), 2);
    EXPECT_LT(std::abs(record.at("error").at("formula").get<double>()), 0.15) << record;
    ++points;
  }
  EXPECT_EQ(points, 2u);
  EXPECT_EQ(fits, 1u);
  EXPECT_TRUE(records.front().at("conclusions").dump().find("Aggregate") != std::string::npos) << records.front();
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  std::filesystem::remove(page);
  EXPECT_NE(text.str().find("<svg"), std::string::npos);
  EXPECT_EQ(text.str().find("http"), std::string::npos) << "the page needs another one";
}

}  // namespace
}  // namespace headway::tools
