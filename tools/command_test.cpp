/// The command as users start it: what it refuses, in which words, with which status.
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

#include "child.hpp"

namespace headway::tools {
namespace {

ChildResult headway(std::vector<std::string> arguments, const std::vector<Variable>& environment = {}) {
  arguments.insert(arguments.begin(), HEADWAY_COMMAND);
  return run_child(arguments, environment, std::chrono::seconds(60));
}

struct Refusal {
  std::vector<std::string> arguments;
  std::vector<std::string> named;  // in the message
};

TEST(Command, every_bad_argument_is_refused_in_one_line_that_names_it_and_what_is_allowed) {
  const std::vector<Refusal> refusals = {
      {{}, {"--help"}},
      {{"bnech"}, {"'bnech'", "'bench'", "run, bench, tune, doctor, info"}},
      {{"run"}, {"program"}},
      {{"run", "-n", "0", "true"}, {"--pes", "0", "1 to 4096"}},
      {{"run", "-n", "-1", "true"}, {"--pes", "-1"}},
      {{"run", "-n", "abc", "true"}, {"--pes", "abc"}},
      {{"run", "-n", "100000", "true"}, {"--pes", "100000", "4096"}},
      {{"run", "-n"}, {"--pes"}},
      {{"run", "--pes-per-process", "0", "true"}, {"--pes-per-process", "0"}},
      {{"run", "--transport", "tcp", "true"}, {"--transport", "tcp", "local"}},
      {{"run", "--budget", "1", "true"}, {"--budget", "1", "1 MiB"}},
      {{"run", "--bind", "socket", "true"}, {"--bind", "socket", "core or none"}},
      {{"run", "--stall", "3x", "true"}, {"--stall", "3x", "30s"}},
      {{"run", "--debug", "2", "-n", "2", "true"}, {"--debug", "2", "0 to 1"}},
      {{"run", "--pse", "2", "true"}, {"'--pse'", "'--pes'", "--transport"}},
      {{"run", "no-such-program"}, {"no-such-program"}},
      {{"run", "./no-such-program"}, {"./no-such-program", "no such file"}},
      {{"bench"}, {"randomaccess", "stream"}},
      {{"bench", "randomacces"}, {"'randomacces'", "'randomaccess'", "stream"}},
      {{"bench", "randomaccess", "--mode", "1d,4"}, {"--mode", "4", "direct, 1d"}},
      {{"bench", "randomaccess", "--mode", ""}, {"--mode"}},
      {{"bench", "randomaccess", "--peer", "mpi-alltoal"}, {"--peer", "mpi-alltoal", "mpi-direct"}},
      {{"bench", "randomaccess", "--bufer-bytes", "4K"}, {"'--bufer-bytes'", "'--buffer-bytes'"}},
      {{"bench", "randomaccess", "--buffer-bytes", "0"}, {"--buffer-bytes", "'0'", "256 B"}},
      {{"bench", "randomaccess", "--buffer-bytes", "1T"}, {"--buffer-bytes", "'1T'", "256 MiB"}},
      {{"bench", "randomaccess", "--buffer-bytes", "4q"}, {"--buffer-bytes", "4q", "16K"}},
      {{"bench", "randomaccess", "--threshold", "1.5"}, {"--threshold", "1.5", "at most 1"}},
      {{"bench", "randomaccess", "--cutoff", "-0.1"}, {"--cutoff", "-0.1", "0 to 1"}},
      {{"bench", "randomaccess", "--timeout", "100"}, {"--timeout", "100", "100us"}},
      {{"bench", "randomaccess", "--delay-cost", "nan"}, {"--delay-cost", "'nan'", "0 or more"}},
      {{"bench", "randomaccess", "--log2", "99"}, {"--log2", "99", "40"}},
      {{"bench", "randomaccess", "--repeat", "0"}, {"--repeat", "'0'"}},
      {{"bench", "randomaccess", "--messages", "5"}, {"--messages", "stream"}},
      {{"bench", "stream", "--log2", "5"}, {"--log2", "randomaccess"}},
      {{"bench", "randomaccess", "--mode", "limits"}, {"--mode", "limits", "direct, 1d", "limit"}},
      {{"bench", "stream", "--mode", "limit,1d", "--bytes", "4"}, {"--mode", "limit", "--bytes 4", "8 B"}},
      {{"bench", "stream", "--mode", "limit,1d", "--pes", "66"}, {"--mode", "limit", "66 PEs", "64"}},
      {{"bench", "stream", "--mode", "limit-8,1d", "--bytes", "4"}, {"--mode", "'limit-8'", "--bytes 4", "8 B"}},
      {{"bench", "stream", "--mode", "limit-1,1d"}, {"--mode", "'1'", "2 to 32"}},
      {{"bench", "stream", "--mode", "limit-33,1d"}, {"--mode", "'33'", "2 to 32"}},
      {{"bench", "stream", "--mode", "limit-few,1d"}, {"--mode", "'few'", "2 to 32"}},
      {{"bench", "pingpong", "--mode", "limit-8,1d"}, {"--mode", "'limit-8'", "pingpong", "allowed is limit"}},
      {{"bench", "pingpong", "--mode", "limit,1d", "--pes", "4"}, {"--mode", "limit", "4 PEs", "allowed is 2"}},
      {{"bench", "staggered", "--mode", "limit,1d", "--bytes", "5M"}, {"--mode", "limit", "5242880", "4 MiB"}},
      {{"bench", "limit", "--mode", "1d"}, {"--mode", "randomaccess, pingpong, stream", "limit"}},
      {{"bench", "limit", "--bytes", "8"}, {"--bytes", "stream", "limit"}},
      {{"bench", "limit", "--buffer-bytes", "4K"}, {"--buffer-bytes", "limit"}},
      {{"bench", "stream", "--pes", "3"}, {"--pes", "3", "even"}},
      {{"bench", "stream", "--bytes", "33", "--threshold", "0.9", "--cutoff", "0.2"}, {"--threshold", "--cutoff", "1"}},
      {{"bench", "stream", "--type", "fixd"}, {"--type", "'fixd'", "'fixed'", "bytes, vector, string, struct"}},
      {{"bench", "stream", "--type", "fixed", "--bytes", "8,100"}, {"--type", "'fixed'", "100 bytes", "104"}},
      {{"bench", "stream", "--bytes", "8,2G"}, {"--bytes", "'2G'", "1 GiB"}},
      {{"bench", "stream", "--bytes", "8,,16"}, {"--bytes", "8,,16"}},
      {{"bench", "stream", "--messages", "0"}, {"--messages", "'0'"}},
      {{"bench", "randomaccess", "--osu"}, {"--osu", "stream"}},
      {{"bench", "randomaccess", "--bytes", "8,4"}, {"--bytes", "'4'", "8 B"}},
      {{"bench", "randomaccess", "--type", "fixed", "--bytes", "100"}, {"--type", "'fixed'", "100 bytes", "104"}},
      {{"bench", "randomaccess", "--bytes", "16", "--peer", "hpcc"}, {"--peer", "'hpcc'", "--bytes 16", "8"}},
      {{"bench", "pingpong", "--peer", "mpi-direct"}, {"--peer", "'mpi-direct'", "mpi"}},
      {{"bench", "stream", "--peer", "hpcc"}, {"--peer", "'hpcc'", "mpi-direct"}},
      {{"bench", "stream", "--bytes", "0", "--peer", "mpi-direct"}, {"--peer", "mpi-direct"}},
      {{"bench", "pingpong", "--pes", "3"}, {"--pes", "3", "even", "pingpong"}},
      {{"bench", "pingpong", "--peer", "mpi:openmpi-nocma"}, {"--peer", "'mpi:openmpi-nocma'", "mpi"}},
      {{"bench", "pingpong", "--mode", "limit-cma"}, {"--mode", "'cma'", "2 to 32"}},
      {{"bench", "pingpong", "--way", "get"}, {"--way", "indexgather, zerocopy", "pingpong"}},
      {{"bench", "zerocopy", "--way", "regluar"}, {"--way", "'regluar'", "'regular'"}},
      {{"bench", "zerocopy", "--memory", "pools"}, {"--memory", "'pools'", "heap, pool"}},
      {{"bench", "zerocopy", "--buffers", "reused,new"}, {"--buffers", "'new'", "reused, fresh"}},
      {{"bench", "zerocopy", "--bytes", "8,12"}, {"--bytes", "'12'", "multiples of 8"}},
      {{"bench", "zerocopy", "--type", "fixed"}, {"--type", "stream", "zerocopy"}},
      {{"bench", "zerocopy", "--mode", "limit-8"}, {"--mode", "'limit-8'", "limit-mapped, limit-pieces, limit-cma"}},
      {{"bench", "zerocopy", "--mode", "limit", "--pes", "4"}, {"--mode", "limit", "4 PEs", "allowed is 2"}},
      {{"bench", "zerocopy", "--mode", "limit", "--pes", "2", "--touch"}, {"--mode", "limit", "--touch"}},
      {{"bench", "zerocopy", "--bytes", "65M", "--mode", "limit", "--pes", "2"}, {"--mode", "limit", "64 MiB"}},
      {{"bench", "zerocopy", "--pes", "3"}, {"--pes", "3", "even", "zerocopy"}},
      {{"bench", "indexgather", "--mode", "limit"}, {"--mode", "'limit'", "indexgather"}},
      {{"bench", "indexgather", "--way", "put"}, {"--way", "'put'", "get, read"}},
      {{"bench", "indexgather", "--gathers", "0"}, {"--gathers", "'0'"}},
      {{"bench", "indexgather", "--updates-per-word", "4"}, {"--updates-per-word", "randomaccess", "indexgather"}},
      {{"bench", "synthetic", "--pes", "1"}, {"--pes", "'1'", "2 or more"}},
      {{"bench", "synthetic", "--log2", "5"}, {"--log2", "randomaccess", "synthetic"}},
      {{"run", "--buffer-bytes", "1", "true"}, {"--buffer-bytes", "1", "256 B"}},
      {{"run", "--topology", "ring", "true"}, {"--topology", "ring", "direct, 1d"}},
      {{"run", "--threshold", "2", "true"}, {"--threshold", "2", "0 to 1"}},
      {{"tune"}, {"program"}},
      {{"tune", "./no-such-program"}, {"./no-such-program", "no such file"}},
      {{"tune", "--repeat", "0", "true"}, {"--repeat", "'0'"}},
      {{"tune", "--sweep-limit", "0s", "true"}, {"--sweep-limit", "'0s'"}},
      {{"tune", "--repaet", "1", "true"}, {"'--repaet'", "'--repeat'"}},
      {{"tune", "-n", "0", "true"}, {"--pes", "0"}},
      {{"doctor", "--now"}, {"'--now'", "--help"}},
      {{"info", "more"}, {"'more'"}},
  };
  for (const Refusal& refusal : refusals) {
    std::string line = "headway";
    for (const std::string& argument : refusal.arguments) line += " " + argument;
    SCOPED_TRACE(line);
    const ChildResult result = headway(refusal.arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(std::ranges::count(result.errors, '\n'), 1) << result.errors;
    for (const std::string& name : refusal.named)
      EXPECT_NE(result.errors.find(name), std::string::npos) << name << " in: " << result.errors;
  }
}

TEST(Command, a_bad_variable_of_the_environment_is_the_settings_fault) {
  for (const auto& command : {std::vector<std::string>{"run", "true"}, {"bench", "stream"}}) {
    const ChildResult result = headway(command, {{"HEADWAY_PES", "abc"}});
    EXPECT_EQ(result.status, 120);
    EXPECT_NE(result.errors.find("HEADWAY_PES=abc"), std::string::npos) << result.errors;
  }
}

TEST(Command, help_lists_the_commands_and_each_has_its_own) {
  const ChildResult result = headway({"--help"});
  EXPECT_EQ(result.status, 0);
  for (const std::string name : {"run", "bench", "tune", "doctor", "info"}) {
    EXPECT_NE(result.output.find("headway " + name), std::string::npos) << name;
    EXPECT_EQ(headway({name, "--help"}).status, 0) << name;
  }
}

std::string beside_command(const std::string& name) {
  return (std::filesystem::path(HEADWAY_COMMAND).parent_path() / name).string();
}

TEST(Tune, a_program_is_run_with_other_settings_and_the_best_again_beside_the_defaults) {
  const ChildResult result = headway(
      {"tune", "-n", "2", "--repeat", "3", "--json", "-", beside_command("headway-stream"), "--messages", "1000"});
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(result.errors, "");  // no progress in a pipe
  const bench::Json file = bench::Json::parse(result.output);
  std::set<std::string> buffers;
  for (const bench::Json& record : file["records"]) {
    EXPECT_EQ(record["bench"], "tune");
    EXPECT_FALSE(record["failed"]);
    if (record["settings"].contains("HEADWAY_BUFFER_BYTES")) buffers.insert(record["settings"]["HEADWAY_BUFFER_BYTES"]);
  }
  EXPECT_TRUE(file["records"][0]["settings"].empty());
  EXPECT_EQ(file["records"][0]["repeat"], 3);
  EXPECT_EQ(buffers, (std::set<std::string>{"1K", "4K", "16K", "64K", "256K"}));
  EXPECT_GT(file["tune"]["ratio"]["median"].get<double>(), 0);
}

TEST(Tune, a_program_that_fails_is_not_tuned_and_its_status_kept) {
  const ChildResult result = headway({"tune", beside_command("headway-stream"), "--bytes", "nonsense"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("nothing to tune"), std::string::npos) << result.errors;
  EXPECT_NE(result.errors.find("nonsense"), std::string::npos) << result.errors;
}

TEST(Tune, a_program_that_does_not_end_is_ended) {
  const ChildResult result = headway({"tune", "--time-limit", "1", "sleep", "50"});
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.errors.find("--time-limit"), std::string::npos) << result.errors;
}

TEST(Tune, a_sweep_ends_with_its_time) {
  const ChildResult result = headway({"tune", "--sweep-limit", "1", "sleep", "0.3"});
  EXPECT_EQ(result.status, 1);
  EXPECT_NE(result.errors.find("the 1 s for the sweep were over (--sweep-limit)"), std::string::npos) << result.errors;
  EXPECT_NE(result.output.find("nothing is known"), std::string::npos) << result.output;
  const ChildResult at_once = headway({"tune", "--sweep-limit", "1", "sleep", "50"});
  EXPECT_NE(at_once.status, 0);
  EXPECT_NE(at_once.errors.find("within 1 s (--sweep-limit)"), std::string::npos) << at_once.errors;
}

TEST(Tune, where_settings_make_no_difference_it_says_so) {
  const ChildResult result = headway({"tune", "--repeat", "5", "true"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("keep the defaults"), std::string::npos) << result.output;
}

TEST(Tune, where_no_other_settings_work_it_says_so_and_compares_nothing) {
  std::vector<std::string> line = {"tune", "sh", "-c", "test -z \"$HEADWAY_BUFFER_BYTES\""};
  const ChildResult table = headway(line);
  EXPECT_EQ(table.status, 0) << table.errors;
  EXPECT_NE(table.output.find("with all other settings the program failed"), std::string::npos) << table.output;
  EXPECT_EQ(table.output.find(" times the time "), std::string::npos) << table.output;
  line.insert(line.begin() + 1, {"--json", "-"});
  const bench::Json file = bench::Json::parse(headway(line).output);
  EXPECT_TRUE(file["tune"]["ratio"].is_null());
  EXPECT_TRUE(file["tune"]["settings"].empty());
  EXPECT_TRUE(file["records"][0]["seconds"].is_null());
  EXPECT_TRUE(file["records"][1]["failed"]);
}

TEST(Tune, the_defaults_are_those_of_an_environment_without_settings_of_aggregators) {
  const ChildResult result =
      headway({"tune", "--repeat", "1", "sh", "-c", "test -z \"$HEADWAY_CUTOFF$HEADWAY_TIMEOUT\""},
              {{"HEADWAY_CUTOFF", "0.2"}, {"HEADWAY_TIMEOUT", "1ms"}});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.errors.find("HEADWAY_CUTOFF, HEADWAY_TIMEOUT of the environment"), std::string::npos)
      << result.errors;
  EXPECT_EQ(result.output.find("failed"), std::string::npos) << result.output;
}

TEST(Command, doctor_and_info_end_well_here) {
  const ChildResult doctor = headway({"doctor"});
  EXPECT_EQ(doctor.status, 0) << doctor.output;
  for (const char* subject : {"cores", "memory", "shared memory", "CMA", "MPI", "plug-ins", "mpirun", "srun", "network",
                              "/dev/shm", "host's memory"}) {
    EXPECT_NE(doctor.output.find(subject), std::string::npos) << subject;
  }
  const ChildResult info = headway({"info"});
  EXPECT_EQ(info.status, 0);
  EXPECT_TRUE(info.output.starts_with("headway ")) << info.output;
}

TEST(Command, bench_runs_every_mode_verified_and_writes_one_record_each) {
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

TEST(Command, patient_benchmarks_flush_nothing_because_they_are_idle) {
  for (const bool patient : {false, true}) {
    std::vector<std::string> arguments{"bench", "synthetic", "--mode", "2d", "--messages", "200", "--bytes", "8",
                                       "--pes", "4", "--timeout", "200us", "--repeat", "1", "--json", "-"};
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

TEST(Command, every_benchmark_of_messages_runs_verified) {
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

TEST(Command, zerocopy_is_run_in_every_way_and_memory_beside_its_limits) {
  const ChildResult result = headway({"bench", "zerocopy", "--bytes", "8,4K", "--buffers", "reused,fresh", "--mode",
                                      "direct,limit", "--messages", "50", "--pes", "2", "--repeat", "2", "--json",
                                      "-"});
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
  for (const char* label : {"regular heap", "regular pool", "limit-mapped", "limit-pieces", "limit-cma"}) {
    EXPECT_TRUE(labels.contains(label)) << label;
  }
}

TEST(Command, zerocopy_is_copied_as_often_as_its_records_say) {
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

TEST(Command, indexgather_is_run_in_every_way) {
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
  const std::vector<std::string> once = {"get direct", "read direct", "get 1d", "read 1d"};
  std::vector<std::string> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(labels, twice);
  EXPECT_EQ(records[0]["table_log2"], 8);
  EXPECT_EQ(records[4]["table_log2"], 9);
}

TEST(Command, osu_prints_two_columns_a_mode) {
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

TEST(Command, bench_gives_every_mode_as_a_fraction_of_the_limit) {
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

TEST(Command, bench_gives_every_mode_as_a_fraction_of_several_limits) {
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

TEST(Command, bench_says_between_which_bounds_the_median_of_its_pairs_is_known) {
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

TEST(Command, bench_limit_runs_every_case_of_its_set_verified) {
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

#if defined(HEADWAY_SIM)
/// An application, beside the command, on the simulated transport.
ChildResult simulated(const std::string& seed, const std::string& conditions, const std::string& pes) {
  const std::string command = HEADWAY_COMMAND;
  const std::string program = command.substr(0, command.rfind('/')) + "/headway-randomaccess";
  return headway({"run", "--transport", "sim", "--seed", seed, "--sim", conditions, "-n", pes, "--stall", "1s", program,
                  "--log2", "12"});
}

TEST(Command, an_unchanged_program_is_simulated_and_a_seed_repeats_the_run) {
  const char* conditions = "delay=20us,jitter=1,refuse=0.05,slow=1:10";
  const ChildResult first = simulated("7", conditions, "256"), again = simulated("7", conditions, "256");
  const ChildResult other = simulated("8", conditions, "256");
  EXPECT_EQ(first.status, 0) << first.errors;
  EXPECT_NE(first.output.find("of simulated time"), std::string::npos) << first.output;
  EXPECT_NE(first.output.find("verified"), std::string::npos) << first.output;
  EXPECT_NE(first.errors.find("headway: simulated 256 PEs, seed 7: "), std::string::npos) << first.errors;
  EXPECT_EQ(first.output, again.output);
  EXPECT_EQ(first.errors, again.errors);
  EXPECT_NE(first.errors, other.errors);
}

TEST(Command, a_simulated_run_that_stalls_says_how_to_have_it_again) {
  const ChildResult stalled = simulated("3", "stop=5@1us", "8");
  EXPECT_EQ(stalled.status, 122);
  for (const char* text :
       {"PE 5", "stopped", "HEADWAY_TRANSPORT=sim, HEADWAY_PES=8, HEADWAY_SEED=3, HEADWAY_SIM=stop=5@1us"}) {
    EXPECT_NE(stalled.errors.find(text), std::string::npos) << text << " is not in:\n" << stalled.errors;
  }
}

TEST(Command, simulated_conditions_that_cannot_be_are_refused) {
  const ChildResult refused = simulated("1", "L=3", "8");
  EXPECT_EQ(refused.status, 120);
  EXPECT_EQ(refused.errors, "headway: HEADWAY_SIM=L=3: 'L=3': allowed is a time such as 200ns, 2us or 1ms\n");
}
#endif

TEST(Command, bench_ends_with_the_status_of_a_program_that_cannot_run) {
  const ChildResult result = headway({"bench", "randomaccess", "--log2", "40", "--mode", "1d", "--repeat", "1"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("--log2"), std::string::npos) << result.errors;
}

TEST(Command, a_peer_does_the_same_work_verified_where_there_is_one) {
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

TEST(Command, hpcc_runs_on_the_same_table_and_leaves_nothing_behind) {
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

TEST(Command, hpcc_that_ends_early_or_is_ended_leaves_nothing_behind) {
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
