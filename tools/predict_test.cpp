// SPDX-License-Identifier: BSD-3-Clause
/// `headway predict` as users start it, and its formulas with counts made by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <headway/base/error.hpp>
#include <headway/transport/count/counts.hpp>
#include <record/record.hpp>

#include "dial_prediction.hpp"
#include "machine_prediction.hpp"
#include "run_command.hpp"

namespace headway::tools {
namespace {

using bench::Json;

std::string program(const char* name) { return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string(); }

TEST(Predict, every_bad_argument_is_refused_in_one_line) {
  struct Refusal {
    std::vector<std::string> arguments, named;
  };
  const std::vector<Refusal> refusals = {
      {{}, {"program is needed"}},
      {{"no-such-program"}, {"no-such-program"}},
      {{"--pes", "16", "true"}, {"--pes", "--machine"}},
      {{"--machine", "summit", "true"}, {"--machine", "--pes"}},
      {{"true", "--pes", "16", "--machine", "sumit"}, {"sumit", "summit", "frontera"}},
      {{"--machine", "/no/such.machine", "--pes", "16", "true"}, {"/no/such.machine"}},
      {{"--machine", "summit", "--pes", "1", "true"}, {"--pes", "'1'", "2 to"}},
      {{"--machine", "summit", "--pes", "16,16", "true"}, {"--pes", "16,16", "once"}},
      {{"--machine", "summit", "--pes", "many", "true"}, {"--pes", "'many'"}},
      {{"--dial", "q=5us", "true"}, {"--dial", "q=5us"}},
      {{"--dial", "o=5us/L=5parsec", "true"}, {"--dial", "L=5parsec"}},
      {{"--dial", "o=0", "true"}, {"--dial", "o=0", "above 0"}},
      {{"--dial", "o=1s", "true"}, {"--dial", "1s"}},
      {{"--measure", "1", "true"}, {"--measure", "'1'", "2 to 4096"}},
      {{"--measure", "9999", "true"}, {"--measure", "'9999'"}},
      {{"--repeat", "0", "true"}, {"--repeat", "'0'"}},
      {{"--json", "/no/folder/a", "true"}, {"--json", "'/no/folder/a'", "cannot be written"}},
      {{"--method", "guess", "true"}, {"--method", "'guess'", "formula, sim"}},
      {{"--mesure", "2", "true"}, {"'--mesure'", "'--measure'"}}};
  for (Refusal refusal : refusals) {
    refusal.arguments.insert(refusal.arguments.begin(), "predict");
    const ChildResult ended = headway(refusal.arguments);
    EXPECT_EQ(ended.status, 2) << ended.errors;
    EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
    for (const std::string& word : refusal.named)
      EXPECT_NE(ended.errors.find(word), std::string::npos) << word << ": " << ended.errors;
  }
  const ChildResult dialled = headway({"predict", "true"}, {{"HEADWAY_DIAL", "o=5us"}});
  EXPECT_EQ(dialled.status, 2);
  EXPECT_NE(dialled.errors.find("HEADWAY_DIAL"), std::string::npos);
}

TEST(Predict, a_program_that_fails_or_does_not_end_is_named) {
  const ChildResult failed = headway({"predict", "--repeat", "1", program("headway-stream"), "--messages", "0"});
  EXPECT_EQ(failed.status, 2);
  EXPECT_NE(failed.errors.find("unusable arguments"), std::string::npos) << failed.errors;
  const ChildResult endless = headway({"predict", "--repeat", "1", "--time-limit", "1", "sleep", "10"});
  EXPECT_NE(endless.status, 0);
  EXPECT_NE(endless.errors.find("within 1 s"), std::string::npos) << endless.errors;
}

// --- with a simulation, times and counts are exact

Json predicted(std::vector<std::string> arguments, const char* network = "L=2us") {
  for (const char* word : {"-", "--json", "1", "--repeat", "predict"}) arguments.insert(arguments.begin(), word);
  const ChildResult ended = headway(arguments, {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_SIM", network}});
  EXPECT_EQ(ended.status, 0) << ended.errors;
  return ended.status == 0 ? Json::parse(ended.output) : Json::object();
}

std::vector<Json> records_of(const Json& file, const std::string& kind) {
  std::vector<Json> found;
  for (const Json& record : file.at("records"))
    if (record.at("kind") == kind) found.push_back(record);
  return found;
}

TEST(Predict, overhead_and_gap_of_a_simulated_stream_are_predicted_within_5_percent) {
  const Json file = predicted({"--measure", "2", "--dial", "o=5us/o=100us/g=20us/g=100us", program("headway-stream"),
                               "--messages", "1000", "--mode", "direct"});
  const std::vector<Json> dials = records_of(file, "dial");
  ASSERT_EQ(dials.size(), 4u);
  for (const Json& dial : dials) {
    EXPECT_LT(std::abs(dial.at("error").at("bursts").get<double>()), 0.05) << dial;
    EXPECT_GT(dial.at("seconds").at("min").get<double>(), 2 * dial.at("baseline_seconds").get<double>());
    EXPECT_TRUE(dial.at("frequent").get<bool>());
  }
}

/// Without computation a PE finds the frames of two steps in one wait, and has fewer turns than with the dial.
TEST(Predict, latency_of_a_simulated_stencil_is_predicted_within_30_percent) {
  const Json file = predicted({"--measure", "2", "--dial", "L=20us/L=100us", program("headway-stencil"), "--way", "pes",
                               "--side", "16", "--steps", "100"},
                              "L=20us");
  const std::vector<Json> dials = records_of(file, "dial");
  ASSERT_EQ(dials.size(), 2u);
  for (const Json& dial : dials) {
    const Json& error = dial.at("error");
    EXPECT_LT(std::abs(error.at("bursts").get<double>()), 0.3) << dial;
    EXPECT_LT(std::abs(error.at("bursts").get<double>()), std::abs(error.at("uniform").get<double>()) / 2) << dial;
  }
}

TEST(Predict, counts_of_randomaccess_grow_as_its_algorithm_says) {
  const Json file = predicted({"--measure", "4,8,16", "--dial", "none", program("headway-randomaccess"), "--log2", "16",
                               "--machine", "summit", "--pes", "64,100000"});
  const std::vector<Json> machines = records_of(file, "machine");
  ASSERT_EQ(machines.size(), 2u);
  EXPECT_EQ(records_of(file, "measured").at(0).at("transport"), "sim");
  // 5 / 4 of 2^18 updates with the pass before the timed one, of which (P - 1) / P leave a PE. The first numbers of the
  // sequence are not spread evenly.
  const double updates = 1.25 * double(1 << 18);
  EXPECT_NEAR(machines[0].at("messages").get<double>(), updates / 64 * 63 / 64, 0.04 * updates / 64);
  EXPECT_NEAR(machines[1].at("messages").get<double>(), updates / 1e5, 0.05 * updates / 1e5);
  EXPECT_GT(machines[1].at("table_bytes").get<double>(), 3e7);
  for (const Json& necessary : records_of(file, "necessary")) EXPECT_TRUE(necessary.at("pes").is_number());
  EXPECT_NE(machines[1].at("mode"), "1d");
}

TEST(Predict, says_what_it_leaves_out_or_takes_as_constant) {
  const ChildResult ended =
      headway({"predict", "--method", "sim", "--repeat", "1", "--measure", "2", "--dial", "none", "--pes", "2,4096",
               "--machine", "now", program("headway-stream"), "--messages", "100"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  for (const char* part : {"one number of PEs shows no growth", "simulation of 2 PEs:", "more than 1024 PEs are not"})
    EXPECT_NE(ended.output.find(part), std::string::npos) << part << " in " << ended.output;
  const ChildResult several = headway({"predict", "--repeat", "1", "--measure", "2,4", "--dial", "none",
                                       program("headway-stream"), "--messages", "100"},
                                      {{"HEADWAY_TRANSPORT", "sim"}});
  EXPECT_EQ(several.status, 0) << several.errors;
  EXPECT_EQ(several.output.find("no growth"), std::string::npos) << several.output;
}

TEST(Predict, a_simulation_with_measured_computation_predicts_dials_and_machines) {
  const ChildResult ended =
      headway({"predict",    "--method", "sim",    "--repeat",  "1",   "--measure", "2", "--dial",
               "o=100us",    "--pes",    "16",     "--machine", "now", "--json",    "-", program("headway-stream"),
               "--messages", "1000",     "--mode", "direct"});
  ASSERT_EQ(ended.status, 0) << ended.errors;
  const Json file = Json::parse(ended.output);
  const std::vector<Json> dials = records_of(file, "dial"), machines = records_of(file, "machine");
  ASSERT_EQ(dials.size(), 1u);
  ASSERT_EQ(machines.size(), 1u);
  // 3000 frames sent and as many received, at least; this machine may be busy, so the measured time has no bound here
  EXPECT_GE(dials[0].at("predicted_seconds").at("sim").get<double>(), 0.6);
  EXPECT_TRUE(dials[0].at("error").at("sim").is_number());
  // 2.9 us for each
  EXPECT_GE(machines[0].at("simulated_seconds").get<double>(), 6000 * 2.9e-6);
  EXPECT_EQ(records_of(file, "simulation").size(), 1u);
  const ChildResult twice = headway({"predict", "--method", "sim", "true"}, {{"HEADWAY_TRANSPORT", "sim"}});
  EXPECT_EQ(twice.status, 2);
  EXPECT_NE(twice.errors.find("HEADWAY_TRANSPORT"), std::string::npos) << twice.errors;
}

// --- formulas

RunCounts run_of(PeRow row, std::size_t pes = 2) {
  RunCounts counts;
  counts.pes = pes;
  counts.simulated = true;
  row.gap_delay_ns.assign(count::gaps, 0);
  counts.rows.assign(pes, row);
  return counts;
}

TEST(DialPrediction, overhead_counts_frames_sent_and_received) {
  const RunCounts counts = run_of({.frames_sent = 1000, .frames_received = 500});
  const base::DialSettings dials{.overhead_ns = 10'000};
  EXPECT_DOUBLE_EQ(predict_dials(Method::uniform, counts, 0.01, dials), 0.01 + 2 * 1000 * 10e-6);  // 2 m do
  EXPECT_DOUBLE_EQ(predict_dials(Method::bursts, counts, 0.01, dials), 0.01 + 1500 * 10e-6);
}

TEST(DialPrediction, a_gap_lies_between_the_gaps_that_were_added_up) {
  RunCounts counts = run_of({.frames_sent = 100, .bytes_sent = 100'000});
  for (std::size_t i = 0; i < count::gaps; ++i) counts.rows[1].gap_delay_ns[i] = 100 * count::gap_ns_of(i);
  EXPECT_NEAR(predict_dials(Method::bursts, counts, 0.01, {.gap_ns = 6'000}), 0.01 + 100 * 6e-6, 1e-9);
  EXPECT_NEAR(predict_dials(Method::bursts, counts, 0.01, {.gap_ns = 500}), 0.01 + 100 * 0.5e-6, 1e-9);
  EXPECT_NEAR(predict_dials(Method::bursts, counts, 0.01, {.gap_ns = 20e6}), 0.01 + 100 * 20e-3, 1e-6);
  // G: 1000 bytes a frame
  EXPECT_NEAR(predict_dials(Method::bursts, counts, 0.01, {.gap_per_byte_ns = 5}), 0.01 + 100 * 5e-6, 1e-9);
  EXPECT_NEAR(predict_dials(Method::bursty, counts, 0.01, {.gap_ns = 6'000}), 0.01 + 100 * 6e-6, 1e-9);
  EXPECT_NEAR(predict_dials(Method::uniform, counts, 0.01, {.gap_ns = 6'000}), 0.01, 1e-9);  // I = 100 us
}

TEST(DialPrediction, turns_in_quiescence_are_hidden_by_work_unless_the_pe_was_idle) {
  // 10 turns for some messages, 30 for all: 20 of these while idle, 10 hidden by 1 ms / 40 of work
  const RunCounts counts =
      run_of({.frames_sent = 40, .turns = 40, .turns_of_all = 30, .waits_of_all = 20, .waiting_ns = 0, .run_ns = 1e6});
  EXPECT_NEAR(predict_dials(Method::bursts, counts, 1e-3, {.latency_ns = 10'000}), 1e-3 + 30 * 10e-6, 1e-12);
  EXPECT_NEAR(predict_dials(Method::bursts, counts, 1e-3, {.latency_ns = 100'000}), 1e-3 + 30 * 100e-6 + 10 * 75e-6,
              1e-12);
  EXPECT_NEAR(predict_dials(Method::uniform, counts, 1e-3, {.latency_ns = 10'000}), 1e-3, 1e-12);  // no reads
}

TEST(DialPrediction, the_baseline_has_the_same_dials_at_their_least) {
  EXPECT_EQ(baseline_of({.overhead_ns = 5'000, .latency_ns = 1'000}), "o=1ns,L=1ns");
  EXPECT_EQ(baseline_of({.item_overhead_ns = 5, .gap_ns = 5, .gap_per_byte_ns = 1}), "item_o=1ns,g=1ns,G=0.001ns");
  EXPECT_EQ(baseline_of({}), "");
}

TEST(MachinePrediction, frames_that_fill_follow_the_bytes_and_flushes_the_receivers) {
  PeRow row{.frames_sent = 16,
            .frames_received = 16,
            .messages_in_frames = 16'000,
            .receivers = 1,
            .run_ns = 2e6,
            .messages = 32'000,
            .payload_bytes = 32'000 * 8,
            .buffer_bytes = 8'000};
  MeasuredRun two{run_of(row), 2e-3, {}, true};
  row.receivers = 3;
  row.messages_in_frames = 12'000;
  row.messages = 16'000;
  row.payload_bytes = 16'000 * 8;
  row.frames_sent = row.frames_received = 12;
  MeasuredRun four{run_of(row, 4), 1e-3, {}, true};
  two.counts.simulated = four.counts.simulated = false;
  two.counts.rows[0].run_ns = two.counts.rows[1].run_ns = 2e6;
  for (PeRow& one : four.counts.rows) one.run_ns = 1e6;
  const ProgramGrowth program = growth_of(std::vector<MeasuredRun>{two, four});
  EXPECT_DOUBLE_EQ(program.message_bytes, 8);
  EXPECT_TRUE(program.fixed_size);
  EXPECT_FALSE(program.is_direct);
  EXPECT_NEAR(program.sent_growth().at(8), 64'000.0 / 8 * 7 / 8, 1e-6);
  const model::Machine summit = model::find_machine("summit");
  const MachinePrediction eight = predict_machine(program, summit, 8, 16 << 20, "1d");
  EXPECT_NEAR(*eight.compute_seconds, 0.5e-3, 1e-9);
  EXPECT_NEAR(eight.bytes, 7'000 * 8, 1);
  EXPECT_GE(eight.frames, 7);
  EXPECT_NEAR(eight.communication_seconds, (eight.frames * 150 + eight.bytes * 0.15) * 1e-9, 1e-12);
  EXPECT_FALSE(eight.latency_seconds.has_value());
  EXPECT_DOUBLE_EQ(eight.table_bytes, 8 * 450);
  // o and L of a machine that has them
  const MachinePrediction now = predict_machine(program, model::find_machine("now"), 8, 16 << 20, "1d");
  EXPECT_GE(now.communication_seconds, now.frames * 2 * 2.9e-6 * 0.999);
  EXPECT_TRUE(now.latency_seconds.has_value());
  EXPECT_THROW(predict_machine(program, summit, 8, 16 << 20, "9d"), SettingError);
  EXPECT_THROW(growth_of({}), UsageError);
}

TEST(MachinePrediction, turns_of_handlers_in_one_wait_overlap) {
  // 10 waits, in which 6 or 16 turns of handlers follow: the run with the fewest PEs says that 1.6 turns are in a row
  std::vector<MeasuredRun> runs;
  for (const double of_handlers : {6.0, 16.0}) {
    const PeRow row{.frames_sent = 20,
                    .messages_in_frames = 20,
                    .receivers = 1,
                    .turns = 14 + of_handlers,
                    .turns_of_all = 4,
                    .turns_of_handlers = of_handlers,
                    .messages = 20,
                    .payload_bytes = 160,
                    .buffer_bytes = 8'000};
    runs.push_back({run_of(row, runs.empty() ? 4 : 8), 1, {}, true});
  }
  const ProgramGrowth program = growth_of(runs);
  const model::Machine now = model::find_machine("now");
  for (const std::size_t pes : {8, 1024})
    EXPECT_NEAR(*predict_machine(program, now, pes, 16 << 20, "1d").latency_seconds, 16 * 5e-6, 1e-12) << pes;
}

TEST(MachinePrediction, flushes_of_forwarded_messages_do_not_grow_beyond_the_measured_grids) {
  ::setenv("HEADWAY_TOPOLOGY", "2d", 1);
  std::vector<MeasuredRun> runs;
  for (const std::size_t pes : {4, 16}) {
    // 5 and 10 flushes for each of the next PEs, 2 and 6 of them
    const double next = pes == 4 ? 2 : 6, flushes = pes == 4 ? 5 : 10;
    const PeRow row{.frames_sent = next * flushes,
                    .messages_in_frames = 100'000,
                    .receivers = next,
                    .messages = 100'000,
                    .payload_bytes = 800'000,
                    .buffer_bytes = 1e6};
    runs.push_back({run_of(row, pes), 1, {}, true});
  }
  const ProgramGrowth program = growth_of(runs);
  ::unsetenv("HEADWAY_TOPOLOGY");
  const MachinePrediction predicted = predict_machine(program, model::find_machine("now"), 256, 64 << 20, "2d");
  // hops of a message: 2 (1 - 1 / 4) 16 / 15 = 1.6, and 2 (1 - 1 / 16) 256 / 255
  EXPECT_NEAR(predicted.frames, 30 * 10 * (2 * 15.0 / 16 * 256 / 255) / 1.6, 4);
}

TEST(MachinePrediction, more_dimensions_are_necessary_from_more_pes_on_with_more_memory) {
  PeRow row{.frames_sent = 16,
            .messages_in_frames = 16'000,
            .receivers = 1,
            .messages = 32'000,
            .payload_bytes = 32'000 * 8,
            .buffer_bytes = 8'000};
  const ProgramGrowth program = growth_of(std::vector<MeasuredRun>{{run_of(row), 1, {}, true}});
  const model::Machine summit = model::find_machine("summit");
  const auto two = first_pes_with(2, program, summit, 16 << 20), three = first_pes_with(3, program, summit, 16 << 20);
  ASSERT_TRUE(two && three);
  EXPECT_LT(*two, *three);
  EXPECT_GT(*first_pes_with(2, program, summit, 64 << 20), *two);
}

}  // namespace
}  // namespace headway::tools
