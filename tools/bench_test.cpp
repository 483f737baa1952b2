// SPDX-License-Identifier: BSD-3-Clause
/// `headway bench` as users start it: which cases it runs, and what its records and tables say of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <record/record.hpp>
#include <set>
#include <sstream>

#include "run_command.hpp"

namespace headway::tools {
namespace {

TEST(Bench, runs_every_mode_verified_and_writes_one_record_each) {
  const auto bench = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--repeat", "2", "--json", "-"});
    const ChildResult result = headway(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return bench::Json::parse(result.output);
  };
  const auto updates = bench({"bench", "randomaccess", "--mode", "direct,1d,2d", "--log2", "2^3,0.9e1", "--pes", "3",
                              "--updates-per-word", "4"});
  ASSERT_EQ(updates["records"].size(), 6u);
  for (const auto& record : updates["records"]) {
    EXPECT_EQ(record["verified"], true);
    EXPECT_EQ(record["errors"], 0);
    EXPECT_EQ(record["repeat"], 2);
    EXPECT_EQ(record["pes"], 3);
    EXPECT_EQ(record["processes"], 3);
  }
  EXPECT_EQ(updates["records"][0]["messages"], 4 << 8);
  EXPECT_EQ(updates["records"][5]["messages"], 4 << 9);
  for (const std::string type : {"fixed", "bytes", "vector", "string", "struct"}) {
    const auto larger = bench({"bench", "randomaccess", "--mode", "direct,2d", "--log2", "8", "--pes", "4",
                               "--updates-per-word", "4", "--bytes", "8,32,1000", "--type", type});
    ASSERT_EQ(larger["records"].size(), 6u);
    for (const auto& record : larger["records"]) {
      EXPECT_EQ(record["verified"], true) << record;
      EXPECT_EQ(record["errors"], 0);
      EXPECT_EQ(record["messages"], 4 << 8);
      EXPECT_EQ(record["options"]["type"], type);
    }
    EXPECT_EQ(larger["records"][4]["message_bytes"], 1000);
  }
  const auto stream = bench({"bench", "stream", "--mode", "1d", "--bytes", "0,8,33", "--messages", "1000", "--pes", "2",
                             "--pes-per-process", "2", "--buffer-bytes", "4K", "--variable"});
  ASSERT_EQ(stream["records"].size(), 3u);
  for (const auto& record : stream["records"]) {
    EXPECT_EQ(record["verified"], true);
    EXPECT_EQ(record["messages"], 2000);
    EXPECT_EQ(record["processes"], 1);
    EXPECT_EQ(record["options"]["type"], "bytes");
  }
}

TEST(Bench, patient_benchmarks_flush_nothing_because_they_are_idle) {
  for (const bool patient : {false, true}) {
    std::vector<std::string> arguments{"bench", "synthetic", "--mode",    "2d",    "--messages", "200", "--bytes", "8",
                                       "--pes", "4",         "--timeout", "200us", "--repeat",   "1",   "--json",  "-"};
    if (patient) arguments.emplace_back("--patient");
    const ChildResult result = headway(arguments);
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto record = bench::Json::parse(result.output)["records"][0];
    EXPECT_EQ(record["verified"], true);
    EXPECT_EQ(record["options"]["flush_when_idle"], !patient);
    if (patient)
      EXPECT_EQ(record["flush"]["idle"], 0);
    else
      EXPECT_GT(record["flush"]["idle"], 0);
  }
}

TEST(Bench, every_benchmark_of_messages_runs_verified) {
  for (const std::string name : {"pingpong", "stream", "staggered", "synthetic"}) {
    const ChildResult result = headway({"bench", name, "--mode", "direct,1d", "--bytes", "8,1K", "--messages", "250",
                                        "--type", "bytes", "--pes", "2", "--repeat", "2", "--json", "-"});
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto records = bench::Json::parse(result.output)["records"];
    ASSERT_EQ(records.size(), 4u);
    for (const auto& record : records) {
      EXPECT_EQ(record["bench"], name);
      EXPECT_EQ(record["verified"], true);
      EXPECT_EQ(record["messages"], 500);
      EXPECT_EQ(record.contains("one_way_us"), name == "pingpong");
      if (name != "pingpong") continue;
      EXPECT_GT(record["one_way_us"]["min"], 0);
      EXPECT_GE(record["one_way_us"]["max"], record["one_way_us"]["min"]);
    }
  }
}

TEST(Bench, zerocopy_is_run_in_every_way_and_memory_beside_its_limits) {
  const ChildResult result =
      headway({"bench", "zerocopy", "--bytes", "8,4K", "--buffers", "reused,fresh", "--mode", "direct,limit",
               "--messages", "50", "--pes", "2", "--repeat", "1", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  std::set<std::string> labels, cases;
  for (const auto& record : records) {
    const auto label = record["label"].get<std::string>();
    labels.insert(label);
    cases.insert(label + record["buffers"].get<std::string>() + std::to_string(record["message_bytes"].get<int>()));
    EXPECT_EQ(record["bench"], "zerocopy");
    EXPECT_EQ(record["verified"], true) << record;
    if (record.contains("unavailable")) continue;  // CMA, where the system refuses it
    EXPECT_EQ(record["messages"], 100);
    EXPECT_GT(record["one_way_us"]["min"], 0);
    if (label.starts_with("limit-")) continue;
    EXPECT_EQ(label, record["way"].get<std::string>() + " " + record["memory"].get<std::string>());
    EXPECT_GT(record["of_limit-mapped"]["median"], 0);
  }
  EXPECT_EQ(cases.size(), records.size());
  EXPECT_EQ(records.size(), 4 * labels.size());
  for (const char* label :
       {"regular heap", "regular pool", "kept heap", "kept pool", "send heap", "send pool", "post heap", "post pool",
        "direct heap", "direct pool", "limit-mapped", "limit-pieces", "limit-cma"}) {
    EXPECT_TRUE(labels.contains(label)) << label;
  }
}

TEST(Bench, zerocopy_is_copied_as_often_as_its_records_say) {
  for (const std::string memory : {"heap", "pool"}) {
    const ChildResult result = headway({"bench", "zerocopy", "--way", "regular", "--memory", memory, "--touch",
                                        "--messages", "60", "--pes", "2", "--repeat", "1", "--json", "-"});
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto record = bench::Json::parse(result.output)["records"][0];
    EXPECT_EQ(record["mode"], "regular");
    EXPECT_EQ(record["memory"], memory);
    EXPECT_EQ(record["touch"], true);
    EXPECT_EQ(record["copies"], 120);  // into a frame, which is read in place
    EXPECT_GE(record["copied_bytes"], 120 * 65536);
  }
}

TEST(Bench, indexgather_is_run_in_every_way) {
  const ChildResult result = headway({"bench", "indexgather", "--log2", "8,9", "--gathers", "500", "--messages-only",
                                      "--mode", "direct,1d", "--pes", "3", "--repeat", "1", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  std::vector<std::string> labels;
  for (const auto& record : records) {
    labels.push_back(record["label"]);
    EXPECT_EQ(record["verified"], true);
    EXPECT_EQ(record["messages"], 1500);
    EXPECT_EQ(record["options"]["mapped"], false);
    EXPECT_TRUE(labels.back().starts_with(record["options"]["way"].get<std::string>())) << record;
    EXPECT_TRUE(labels.back().ends_with(record["mode"].get<std::string>())) << record;
  }
  const std::vector<std::string> once = {"get direct", "read direct", "local direct", "get 1d", "read 1d", "local 1d"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(labels, twice);
  EXPECT_EQ(records[0]["table_log2"], 8);
  EXPECT_EQ(records[6]["table_log2"], 9);
}

TEST(Bench, reduce_is_measured_in_both_ways_under_skew_and_without) {
  const ChildResult result =
      headway({"bench", "reduce", "--pes", "3", "--elements", "1,33", "--skew-us", "100,0", "--settle-us", "50",
               "--looks", "2", "--iterations", "40", "--repeat", "2", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  std::vector<std::string> cases;
  for (const auto& record : records) {
    EXPECT_EQ(record["bench"], "reduce");
    EXPECT_EQ(record["verified"], true) << record;
    EXPECT_EQ(record["errors"], 0);
    EXPECT_EQ(record["label"], record["mode"]);
    EXPECT_EQ(record["messages"], 3 * 40);
    EXPECT_EQ(record["message_bytes"], 8 * record["elements"].get<int>());
    const bool of_cpu = record["measure"] == "cpu";
    EXPECT_EQ(record.contains("cpu_us") && record.contains("in_calls_us") && record.contains("skew_us_max"), of_cpu);
    EXPECT_EQ(record.contains("latency_us"), !of_cpu);
    const auto& measured = record[of_cpu ? "in_calls_us" : "latency_us"];
    EXPECT_GT(measured["min"], 0);
    EXPECT_LE(measured["min"], measured["median"]);
    if (of_cpu) {
      EXPECT_GT(record["cpu_us_without"]["median"], 0);
    }
    const auto text = [&record](const char* field) { return record[field].get<std::string>(); };
    const auto number = [&record](const char* field) { return std::to_string(record[field].get<int>()); };
    cases.push_back((of_cpu ? number("skew_us_max") : text("call")) + " " + number("elements") + " " + text("mode"));
  }
  EXPECT_EQ(cases, (std::vector<std::string>{"100 1 bypass", "100 1 blocking", "100 33 bypass", "100 33 blocking",
                                             "0 1 bypass", "0 1 blocking", "0 33 bypass", "0 33 blocking",
                                             "reduce 1 bypass", "reduce 1 blocking", "allreduce 1 bypass",
                                             "allreduce 1 blocking", "barrier 0 bypass", "barrier 0 blocking"}));
}

TEST(Bench, reduce_counts_the_processor_time_of_a_call_and_not_that_of_sleep) {
  const ChildResult result =
      headway({"bench", "reduce", "--pes", "2", "--measure", "cpu", "--elements", "1000000", "--way", "bypass",
               "--skew-us", "2e4", "--iterations", "5", "--repeat", "1", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto record = bench::Json::parse(result.output)["records"][0];
  const double cpu_us = record["cpu_us"]["median"], without_us = record["cpu_us_without"]["median"];
  // 8 MB are copied and added for each call. An iteration sleeps for more than 40 ms.
  EXPECT_GT(cpu_us, 100);
  EXPECT_LT(cpu_us + without_us, 40e3);
}

TEST(Bench, reduce_refuses_a_transport_whose_time_is_not_that_of_sleep) {
  const ChildResult result = headway({"bench", "reduce", "--transport", "sim", "--pes", "2", "--repeat", "1"});
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.errors.find("sim"), std::string::npos) << result.errors;
}

TEST(Bench, reduce_on_mpi_does_the_same_verified_where_there_is_one) {
  const std::string here = headway({"bench", "--list"}).output;
  std::vector<std::string> arguments = {
      "bench",   "reduce", "--pes",        "2",  "--elements", "3", "--skew-us", "100",       "--settle-us", "50",
      "--looks", "1",      "--iterations", "40", "--repeat",   "1", "--peer",    "available", "--json",      "-"};
  const ChildResult result = headway(arguments);
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  std::set<std::string> labels;
  for (const auto& record : records) {
    EXPECT_EQ(record["verified"], true) << record;
    EXPECT_EQ(record["messages"], 2 * 40);
    labels.insert(record["label"].get<std::string>());
  }
  const bool some_mpi = here.find("mpi-ireduce:") != std::string::npos;
  EXPECT_EQ(labels.contains("mpi") && labels.contains("mpi-ireduce"), some_mpi);
  if (here.find("mpi-ireduce:mpich-async") == std::string::npos) return;
  std::ranges::replace(arguments, std::string("available"), std::string("mpi-ireduce:mpich-async"));
  arguments.insert(arguments.end(), {"--measure", "cpu"});
  const ChildResult by_thread = headway(arguments);
  EXPECT_EQ(by_thread.status, 0) << by_thread.errors;
  const ChildResult crowded =
      headway({"bench", "reduce", "--pes", "4096", "--measure", "latency", "--peer", "mpi:mpich"});
  EXPECT_EQ(crowded.status, 2);
  EXPECT_NE(crowded.errors.find("--measure cpu"), std::string::npos) << crowded.errors;
}

TEST(Bench, every_application_on_elements_runs_verified_beside_itself) {
  const std::vector<std::vector<std::string>> lines = {
      {"bfs", "--scale", "8", "--roots", "2", "--every-edge"},
      {"sssp", "--scale", "8", "--roots", "1"},
      {"phold", "--processes-per-pe", "8", "--events", "3", "--end-time", "5"},
      {"leanmd", "--cells", "2,2,3", "--particles", "8", "--steps", "6", "--corner"},
      {"stencil", "--side", "4", "--steps", "3"}};
  for (std::vector<std::string> line : lines) {
    const std::string name = line.front();
    line.insert(line.begin(), "bench");
    line.insert(line.end(), {"--mode", "direct,1d", "--balance", "none,rotate", "--balance-every", "2", "--pes", "2",
                             "--repeat", "2", "--json", "-"});
    const ChildResult result = headway(line);
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto records = bench::Json::parse(result.output)["records"];
    ASSERT_EQ(records.size(), 4u);
    const std::vector<std::string> labels = {"none direct", "rotate direct", "none 1d", "rotate 1d"};
    for (std::size_t i = 0; i < records.size(); ++i) {
      const auto& record = records[i];
      EXPECT_EQ(record["bench"], name);
      EXPECT_EQ(record["label"], labels[i]);
      EXPECT_EQ(record["mode"], i < 2 ? "direct" : "1d");
      EXPECT_EQ(record["verified"], true) << record;
      EXPECT_EQ(record["checksum"], records[0]["checksum"]);
      if (name != "sssp") {
        EXPECT_EQ(record["messages"], records[0]["messages"]);
      }
      EXPECT_GT(record["messages"], 0);
      EXPECT_EQ(record["in_pairs"]["to"], labels[0]);
      EXPECT_EQ(record["in_pairs"]["pairs"], 2);
    }
  }
}

TEST(Bench, a_search_finds_the_same_on_mpi_and_is_given_as_a_fraction_of_the_limit) {
  const ChildResult result = headway({"bench", "bfs", "--scale", "9", "--roots", "2", "--mode", "1d,limit", "--pes",
                                      "2", "--seed", "5", "--repeat", "1", "--peer", "available", "--json", "-"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto records = bench::Json::parse(result.output)["records"];
  ASSERT_GE(records.size(), 2u);
  const auto &own = records[0], &limit = records[1];
  EXPECT_EQ(limit["mode"], "limit");
  EXPECT_EQ(limit["message_bytes"], 16);
  EXPECT_EQ(limit["messages"], 2 * (16 << 9) * 2);
  const double rate = own["messages_per_second"], limit_rate = limit["messages_per_second"];
  EXPECT_DOUBLE_EQ(own["of_limit"]["median"].get<double>(), rate / limit_rate);
  const bool some_mpi = headway({"bench", "--list"}).output.find("mpi-direct:") != std::string::npos;
  ASSERT_EQ(records.size(), some_mpi ? 3 : 2);
  if (some_mpi) {
    const double edges = own["teps"], of_mpi = records[2]["teps"];
    EXPECT_DOUBLE_EQ(own["ratio_to"]["mpi-direct"].get<double>(), edges / of_mpi);
  }
  for (const auto& record : records) {
    EXPECT_EQ(record["verified"], true) << record;
    if (record["mode"] == "limit") continue;
    for (const char* field : {"edges", "visited", "levels", "checksum", "message_bytes"}) {
      EXPECT_EQ(record[field], own[field]) << field;
    }
  }
}

TEST(Bench, osu_prints_two_columns_a_mode) {
  const ChildResult result = headway({"bench", "stream", "--mode", "direct,1d", "--bytes", "8,1K", "--messages", "500",
                                      "--pes", "2", "--repeat", "1", "--osu"});
  EXPECT_EQ(result.status, 0) << result.errors;
  std::istringstream lines(result.output);
  std::vector<std::string> heads;
  std::vector<std::size_t> sizes;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) {
      heads.push_back(line);
    } else if (!line.empty()) {
      std::istringstream columns(line);
      double value = 0;
      std::string more;
      EXPECT_TRUE(columns >> sizes.emplace_back() >> value) << line;
      EXPECT_GT(value, 0) << line;
      EXPECT_FALSE(columns >> more) << line;
    }
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 1024, 8, 1024}));
  ASSERT_EQ(heads.size(), 4u) << result.output;
  EXPECT_NE(heads[0].find("stream, direct, 2 PEs"), std::string::npos) << heads[0];
  EXPECT_NE(heads[1].find("(MB/s)"), std::string::npos) << heads[1];
  EXPECT_NE(heads[2].find("stream, 1d, 2 PEs"), std::string::npos) << heads[2];
}

TEST(Bench, gives_every_mode_as_a_fraction_of_the_limit) {
  const std::vector<std::vector<std::string>> lines = {
      {"bench", "randomaccess", "--mode", "1d,limit,direct", "--log2", "8", "--updates-per-word", "100"},
      {"bench", "randomaccess", "--mode", "1d,limit,direct", "--log2", "8", "--updates-per-word", "20", "--bytes",
       "104", "--variable"},
      {"bench", "pingpong", "--mode", "1d,limit,direct", "--bytes", "8", "--messages", "200"},
      {"bench", "pingpong", "--mode", "1d,limit,direct", "--bytes", "1000", "--messages", "200", "--variable"},
      {"bench", "staggered", "--mode", "1d,limit,direct", "--bytes", "32", "--messages", "5000"},
      {"bench", "synthetic", "--mode", "1d,limit,direct", "--messages", "500", "--pes", "3"},
      {"bench", "stream", "--mode", "1d,limit,direct", "--bytes", "8", "--messages", "5000"},
      {"bench", "stream", "--mode", "1d,limit,direct", "--bytes", "100", "--messages", "5000", "--variable"}};
  for (std::vector<std::string> line : lines) {
    if (std::ranges::find(line, "--pes") == line.end()) line.insert(line.end(), {"--pes", "2"});
    line.insert(line.end(), {"--repeat", "3", "--json", "-"});
    const ChildResult result = headway(line);
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto file = bench::Json::parse(result.output);
    ASSERT_EQ(file["records"].size(), 3u);
    const auto &aggregated = file["records"][0], &limit = file["records"][1], &direct = file["records"][2];
    EXPECT_EQ(limit["mode"], "limit");
    EXPECT_EQ(limit["bench"], line[1]);
    EXPECT_EQ(limit["verified"], true);
    EXPECT_EQ(limit["messages"], aggregated["messages"]);
    EXPECT_FALSE(limit.contains("of_limit"));
    for (const auto* record : {&aggregated, &direct}) {
      const auto& fraction = (*record)["of_limit"];
      EXPECT_GT(fraction["min"], 0);
      EXPECT_LE(fraction["min"], fraction["median"]);
      EXPECT_LE(fraction["median"], fraction["max"]);
    }
    line.resize(line.size() - 2);
    EXPECT_NE(headway(line).output.find("of limit"), std::string::npos);
  }
}

TEST(Bench, gives_every_mode_as_a_fraction_of_several_limits) {
  const std::vector<std::vector<std::string>> lines = {
      {"bench", "randomaccess", "--log2", "8", "--updates-per-word", "100"},
      {"bench", "stream", "--bytes", "100", "--messages", "5000", "--variable"}};
  for (std::vector<std::string> line : lines) {
    line.insert(line.end(), {"--mode", "limit-8,1d,limit", "--pes", "2", "--repeat", "1"});
    const std::string table = headway(line).output;
    const auto eight = table.find("of limit-8"), all = table.find("of limit ");
    EXPECT_TRUE(eight < all && all != std::string::npos) << table;
    line.insert(line.end(), {"--json", "-"});
    const ChildResult result = headway(line);
    ASSERT_EQ(result.status, 0) << result.errors;
    const auto records = bench::Json::parse(result.output)["records"];
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0]["label"], "limit-8");
    EXPECT_EQ(records[0]["options"]["buffers"], 8);
    EXPECT_EQ(records[1]["in_pairs"]["to"], "1d");
    for (const char* limit : {"of_limit-8", "of_limit"}) {
      EXPECT_GT(records[1][limit]["median"], 0);
      EXPECT_FALSE(records[0].contains(limit) || records[2].contains(limit));
    }
  }
}

TEST(Bench, says_between_which_bounds_the_median_of_its_pairs_is_known) {
  for (const char* rounds : {"5", "6"}) {
    const bool enough = rounds == std::string("6");
    std::vector<std::string> line = {"bench", "stream", "--mode", "1d,limit,direct", "--messages",
                                     "500",   "--pes",  "2",      "--repeat",        rounds};
    EXPECT_EQ(headway(line).output.find("95 %") != std::string::npos, enough);
    line.insert(line.end(), {"--json", "-"});
    const auto records = bench::Json::parse(headway(line).output)["records"];
    ASSERT_EQ(records.size(), 3u);
    for (const auto& record : records) {
      const auto& pairs = record["in_pairs"];
      EXPECT_EQ(pairs["to"], "1d");
      EXPECT_EQ(std::to_string(pairs["pairs"].get<int>()), rounds);
      EXPECT_EQ(pairs["median"], record["ratio_to"]["1d"]);
      EXPECT_EQ(pairs["low"].is_null(), !enough);
      if (!enough) continue;
      EXPECT_LE(pairs["low"], pairs["median"]);
      EXPECT_LE(pairs["median"], pairs["high"]);
    }
    EXPECT_EQ(records[2]["of_limit"]["low"].is_null(), !enough);
  }
}

TEST(Bench, limit_runs_every_case_of_its_set_verified) {
  const std::string file = ::testing::TempDir() + "headway-limit-" + std::to_string(::getpid()) + ".json";
  const ChildResult result =
      headway({"bench", "limit", "--messages", "300", "--pes", "2", "--repeat", "1", "--json", file});
  EXPECT_EQ(result.status, 0) << result.errors;
  for (const char* text : {"GB/s", "ns one way", "1000 bytes, variable", "64 MiB", "formulation"}) {
    EXPECT_NE(result.output.find(text), std::string::npos) << text << " is not in:\n" << result.output;
  }
  std::ifstream in(file);
  const auto records = bench::Json::parse(in)["records"];
  std::remove(file.c_str());
  std::set<std::string> benches, patterns;
  for (const auto& record : records) {
    EXPECT_EQ(record["mode"], "limit");
    EXPECT_EQ(record["verified"], true) << record;
    benches.insert(record["bench"].get<std::string>());
    if (record["bench"] == "ring") patterns.insert(record["pattern"].get<std::string>());
  }
  EXPECT_EQ(benches, (std::set<std::string>{"updates", "ring", "latency", "copy", "cma"}));
  EXPECT_EQ(patterns, (std::set<std::string>{"one-way", "both-ways", "pairs"}));
}

TEST(Bench, ends_with_the_status_of_a_program_that_cannot_run) {
  const ChildResult result = headway({"bench", "randomaccess", "--log2", "40", "--mode", "1d", "--repeat", "1"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("--log2"), std::string::npos) << result.errors;
}

TEST(Bench, a_peer_does_the_same_work_verified_where_there_is_one) {
  const std::vector<std::string> table = {"--log2", "10", "--updates-per-word", "4", "--bytes", "8,104,1001"};
  const std::vector<std::string> messages = {"--messages", "250"};
  for (const std::string name : {"randomaccess", "pingpong", "stream", "staggered", "synthetic", "zerocopy"}) {
    std::vector<std::string> arguments = {
        "bench", name, "--mode", "1d", "--pes", "2", "--repeat", "1", "--peer", "available", "--peer-buffer-bytes",
        "4K"};
    const auto& work = name == "randomaccess" ? table : messages;
    arguments.insert(arguments.end(), work.begin(), work.end());
    const ChildResult result = headway(arguments);
    EXPECT_EQ(result.status, 0) << name << ": " << result.errors;
    EXPECT_EQ(result.output.find(" NO\n"), std::string::npos) << result.output;
  }
}

/// The temporary directories that hpcc runs in.
std::size_t hpcc_directories() {
  namespace fs = std::filesystem;
  return std::size_t(std::ranges::count_if(fs::directory_iterator(fs::temp_directory_path()), [](const auto& entry) {
    return entry.path().filename().string().starts_with("headway-hpcc-");
  }));
}

TEST(Bench, hpcc_runs_on_the_same_table_and_leaves_nothing_behind) {
  const std::size_t before = hpcc_directories();
  const ChildResult result = headway({"bench", "randomaccess", "--mode", "1d", "--log2", "9", "--pes", "3", "--repeat",
                                      "1", "--updates-per-word", "4", "--peer", "hpcc", "--json", "-"});
  if (result.status == 2 && result.errors.find("apt install hpcc") != std::string::npos) {
    GTEST_SKIP() << result.errors;
  }
  ASSERT_EQ(result.status, 0) << result.errors;
  const auto record = bench::Json::parse(result.output)["records"][1];
  EXPECT_EQ(record["mode"], "peer:hpcc");
  EXPECT_EQ(record["table_log2"], 9);
  EXPECT_EQ(record["pes"], 3);
  EXPECT_EQ(record["messages"], 4 * 512);
  EXPECT_EQ(record["verified"], true);
  EXPECT_GT(record["gups"], 0);
  EXPECT_EQ(hpcc_directories(), before);
}

TEST(Bench, hpcc_that_ends_early_or_is_ended_leaves_nothing_behind) {
  const std::string command = HEADWAY_COMMAND;
  const std::string program = command.substr(0, command.rfind('/')) + "/headway-peer-hpcc";
  const std::size_t before = hpcc_directories();
  const ChildResult ended =
      run_child({program, "--log2", "10", "--", "sh", "-c", "echo no luck"}, {}, std::chrono::seconds(60));
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.errors.find("no luck"), std::string::npos) << ended.errors;
  const ChildResult late = run_child({program, "--log2", "10", "--", "sleep", "100"}, {}, std::chrono::seconds(1));
  EXPECT_TRUE(late.timed_out);
  EXPECT_EQ(late.status, 128 + SIGTERM);
  EXPECT_EQ(hpcc_directories(), before);
}

}  // namespace
}  // namespace headway::tools
