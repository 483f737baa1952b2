// SPDX-License-Identifier: BSD-3-Clause
/// `headway probe` as users start it. On sim the truth is known; on this machine only bounds are.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <record/record.hpp>
#include <string>

#include "run_command.hpp"

namespace headway::tools {
namespace {

using bench::Json;

/// The result file, or null with a failure.
Json probe(std::vector<std::string> options, const std::vector<Variable>& environment = {}) {
  options.insert(options.begin(), "probe");
  options.insert(options.end(), {"--json", "-"});
  const ChildResult result = headway(options, environment);
  EXPECT_EQ(result.status, 0) << fmt::format("{}: {}", fmt::join(options, " "), result.errors);
  return result.status == 0 ? Json::parse(result.output) : Json();
}

constexpr const char* parameters[] = {"o_send_ns", "o_recv_ns", "latency_ns", "g_ns", "gap_per_byte_ns", "item_ns"};

/// Every estimate has an interval around it, none is negative, and all lists are in order.
void expect_sound(const Json& record) {
  const auto expect_estimate = [](const Json& estimate, const std::string& name) {
    EXPECT_LE(0, estimate["low"].get<double>()) << name;
    EXPECT_LE(estimate["low"], estimate["value"]) << name;
    EXPECT_LE(estimate["value"], estimate["high"]) << name;
    if (estimate["low"] == 0) {
      EXPECT_TRUE(estimate.contains("includes_zero") || estimate.contains("below_zero")) << name;
    }
  };
  for (const char* name : parameters) expect_estimate(record[name], name);
  EXPECT_GE(record["residual"].get<double>(), 0);
  ASSERT_FALSE(record["segments"].empty());
  std::size_t end = 0;
  for (const Json& segment : record["segments"]) {
    EXPECT_GT(segment["first_bytes"].get<std::size_t>(), end);
    end = segment["last_bytes"].get<std::size_t>();
    EXPECT_LE(segment["first_bytes"], segment["last_bytes"]);
    expect_estimate(segment["g_ns"], "g of a segment");
    expect_estimate(segment["gap_per_byte_ns"], "G of a segment");
  }
  std::size_t direct = 0, aggregated = 0;
  for (const Json& cost : record["costs"]) {
    (cost["mode"] == "direct" ? direct : aggregated) += 1;
    expect_estimate(cost["pack_ns"], "pack");
    expect_estimate(cost["handle_ns"], "handle");
  }
  EXPECT_EQ(direct, aggregated);
  EXPECT_GT(direct, 0);
}

#if defined(HEADWAY_SIM)

/// The parameters of the simulated network with these delays, in the order of `parameters`.
std::vector<double> simulated(const std::string& dial) {
  std::vector<std::string> options = {"--transport", "sim", "--pair", "process", "--launches", "1", "--points", "8",
                                      "--bytes-max", "1024", "--messages", "8",
                                      // so fast that its own overhead is no 2 % of a delay
                                      "--sim", "o=20ns"};
  if (!dial.empty()) options.insert(options.end(), {"--dial", dial});
  const Json file = probe(options);
  std::vector<double> values;
  if (file.is_null()) return std::vector<double>(std::size(parameters), -1);
  expect_sound(file["records"][0]);
  for (const char* name : parameters) values.push_back(file["records"][0][name]["value"].get<double>());
  return values;
}

constexpr std::size_t o_send = 0, o_recv = 1, latency = 2, gap = 3, gap_per_byte = 4, item = 5;

/// What each parameter gains, for each dialled ns.
struct Theory {
  const char* dial;
  double gains[std::size(parameters)];
};

TEST(Probe, reads_on_sim_what_is_dialled_and_other_parameters_change_only_where_theory_says) {
  const std::vector<double> without = simulated("");
  // A PE sends, or takes, one frame each o, so o is a lower bound of g. With o the receiver's frames of one message
  // include one item.
  const Theory theories[] = {{"o", {1, 1, 0, 1, 0, 0}}, {"item_o", {0, 1, 0, 1, 0, 1}}, {"L", {0, 0, 1, 0, 0, 0}}};
  for (const double ns : {5e3, 10e3, 20e3, 50e3, 100e3}) {
    for (const Theory& theory : theories) {
      const std::vector<double> with = simulated(fmt::format("{}={}ns", theory.dial, ns));
      for (std::size_t i = 0; i != std::size(parameters); ++i) {
        EXPECT_NEAR(with[i] - without[i], theory.gains[i] * ns, 0.02 * ns)
            << parameters[i] << " with " << theory.dial << '=' << ns << " ns";
      }
    }
  }
}

TEST(Probe, reads_on_sim_gaps_that_are_longer_than_those_of_the_network) {
  const std::vector<double> without = simulated("");
  for (const double ns : {5e3, 10e3, 20e3, 50e3, 100e3}) {
    const std::vector<double> with = simulated(fmt::format("g={}ns", ns));
    EXPECT_NEAR(with[gap], ns, 0.02 * ns);
    EXPECT_NEAR(with[gap_per_byte], without[gap_per_byte], 0.2);
    for (const std::size_t other : {o_send, o_recv, latency, item})
      EXPECT_NEAR(with[other], without[other], 0.02 * ns) << parameters[other] << " with g=" << ns << " ns";
  }
  for (const double ns : {5.0, 10.0, 20.0, 50.0, 100.0}) {
    const std::vector<double> with = simulated(fmt::format("G={}ns", ns));
    EXPECT_NEAR(with[gap_per_byte], ns, 0.02 * ns);
    // The shortest frame has a header, and a reply none of the content: g and L gain the time of its bytes.
    constexpr double frame_bytes_max = 100;
    EXPECT_GT(with[gap], without[gap]);
    EXPECT_LT(with[gap], without[gap] + frame_bytes_max * ns);
    EXPECT_NEAR(with[latency] - without[latency], with[gap], 0.25 * with[gap]);
    for (const std::size_t other : {o_send, o_recv, item})
      EXPECT_NEAR(with[other], without[other], 25) << parameters[other] << " with G=" << ns << " ns";
  }
}

TEST(Probe, reads_the_simulated_network_itself) {
  for (const double ns : {1e3, 3e3, 10e3, 30e3, 100e3}) {
    const std::string network = fmt::format("L={}ns,o={}ns,g={}ns,G=2ns", ns, 2 * ns, 3 * ns);
    const Json file = probe({"--transport", "sim", "--pair", "thread", "--launches", "1", "--points", "8",
                             "--bytes-max", "65536", "--messages", "8", "--sim", network});
    if (file.is_null()) return;
    const Json& record = file["records"][0];
    EXPECT_EQ(record["pair"], "thread");
    const auto expect = [&](const char* name, double truth) {
      // Calls of the library take some simulated time of their own, 20 ns each; so do the 48 bytes of a short frame.
      EXPECT_NEAR(record[name]["value"].get<double>(), truth, 0.02 * truth + 150) << name << ": " << network;
    };
    expect("o_send_ns", 2 * ns);
    expect("o_recv_ns", 2 * ns);
    expect("latency_ns", ns);
    expect("g_ns", 3 * ns);
  }
}

TEST(Probe, calibrates_every_dial_and_writes_the_matrix) {
  const std::string page =
      (std::filesystem::temp_directory_path() / fmt::format("headway-probe-test-{}.md", ::getpid())).string();
  const std::string json = page + ".json";
  const ChildResult result =
      headway({"probe", "--calibrate", "--transport", "sim", "--pair", "process", "--sim", "o=20ns", "--launches", "1",
               "--bytes-max", "1024", "--values", "0,20us,50us", "--markdown", page, "--json", json});
  ASSERT_EQ(result.status, 0) << result.errors;
  std::ifstream from(json);
  const Json file = Json::parse(from);
  ASSERT_EQ(file["records"].size(), 1 + 5 * 2);
  EXPECT_EQ(file["records"][0]["dial"], "none");
  EXPECT_EQ(file["records"][0]["dialled_ns"], 0);
  for (std::size_t i = 1; i != file["records"].size(); ++i) {
    const Json& record = file["records"][i];
    expect_sound(record);
    const auto dialled = record["dialled_ns"].get<double>();
    EXPECT_NEAR(dialled, (record["dial"] == "G" ? 1e-3 : 1) * (i % 2 == 1 ? 20e3 : 50e3), 1e-9);
    EXPECT_LE(std::abs(record["error_ns"].get<double>()), 0.02 * dialled) << record["dial"] << " " << dialled;
  }
  std::ifstream lines(page);
  const std::string text((std::istreambuf_iterator<char>(lines)), std::istreambuf_iterator<char>());
  for (const char* part : {"| none |", "| item_o | 20 us |", "| G | 50 ns/B |", "| L | 20 us to 50 us |",
                           "10 of 10 settings are read back"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  std::filesystem::remove(page);
  std::filesystem::remove(json);
}

#endif

TEST(Probe, on_this_machine_gives_sound_records_for_threads_and_processes) {
  const std::string csv =
      (std::filesystem::temp_directory_path() / fmt::format("headway-probe-test-{}.csv", ::getpid())).string();
  const Json file = probe({"--transport", "local", "--launches", "3", "--points", "6", "--bytes-max", "4096",
                           "--messages", "4", "--csv", csv});
  if (file.is_null()) return;
  // Cores with and without a shared cache are two pairs.
  const std::size_t pairs = file["records"].size();
  ASSERT_GE(pairs, 2u);
  ASSERT_LE(pairs, 3u);
  EXPECT_EQ(file["records"][0]["pair"], "thread");
  for (std::size_t i = 1; i != pairs; ++i) EXPECT_EQ(file["records"][i]["pair"], "process");
  for (const Json& record : file["records"]) {
    EXPECT_EQ(record["bench"], "probe");
    EXPECT_EQ(record["transport"], "local");
    EXPECT_EQ(record["launches"], 3);
    expect_sound(record);
  }
  std::ifstream lines(csv);
  std::string line;
  std::size_t count = 0;
  for (; std::getline(lines, line); ++count) EXPECT_EQ(std::ranges::count(line, ','), 10) << line;
  // The first line; 6 random sizes, 9 times 1 byte and the powers of two, in each launch.
  EXPECT_EQ(count, 1 + pairs * 3 * (6 + 9 + 12));
  std::filesystem::remove(csv);
}

TEST(Probe, on_this_machine_a_dialled_overhead_is_a_lower_bound) {
  const Json file = probe({"--transport", "local", "--pair", "process", "--launches", "3", "--points", "4",
                           "--bytes-max", "64", "--messages", "2", "--dial", "o=20us"});
  if (file.is_null()) return;
  const Json& record = file["records"][0];
  EXPECT_EQ(record["dials"], "o=20us");
  EXPECT_GE(record["o_recv_ns"]["value"].get<double>(), 18e3);
}

TEST(Probe, delays_of_the_environment_are_in_the_table_and_the_record) {
  const std::vector<Variable> environment = {{"HEADWAY_DIAL", "o=1us"}};
  std::vector<std::string> words = {"probe",    "--transport", "local",       "--pair", "process",    "--launches", "1",
                                    "--points", "4",           "--bytes-max", "64",     "--messages", "2"};
  const ChildResult table = headway(words, environment);
  EXPECT_NE(table.output.find("delays       o=1us"), std::string::npos) << table.output << table.errors;
  words.insert(words.end(), {"--json", "-"});
  const ChildResult json = headway(words, environment);
  ASSERT_EQ(json.status, 0) << json.errors;
  EXPECT_EQ(Json::parse(json.output)["records"][0]["dials"], "o=1us");
}

TEST(Probe, prints_a_table_or_the_columns_of_osu) {
  const std::vector<std::string> options = {"probe",      "--transport", "local",    "--pair", "thread",
                                            "--launches", "1",           "--points", "4",      "--bytes-max",
                                            "64",         "--messages",  "4"};
  const ChildResult table = headway(options);
  EXPECT_EQ(table.status, 0) << table.errors;
  for (const char* text :
       {"local, threads of one process", ": 1 launch,", "o, sender", "o, receiver", " ns/B ", "aggregated"})
    EXPECT_NE(table.output.find(text), std::string::npos) << text << " in " << table.output;
  std::vector<std::string> with_osu = options;
  with_osu.push_back("--osu");
  const ChildResult osu = headway(with_osu);
  EXPECT_EQ(osu.status, 0) << osu.errors;
  for (const char* text : {"# Headway Latency Test", "# Size", "Latency (us)", "Bandwidth (MB/s)", "\n64 "})
    EXPECT_NE(osu.output.find(text), std::string::npos) << text << " in " << osu.output;
}

TEST(Probe, measures_mpis_beside_it_or_says_what_is_missing) {
  std::vector<std::string> options = {"probe", "--transport", "local", "--pair",    "process", "--launches",
                                      "1",     "--points",    "4",     "--repeats", "1",       "--bytes-max",
                                      "64",    "--messages",  "4",     "--peers"};
  const ChildResult table = headway(options);
  ASSERT_EQ(table.status, 0) << table.errors;
  for (const char* text : {"one way, 8 bytes", "million messages/s", "one way, 1 MiB", "headway", "openmpi", "mpich"})
    EXPECT_NE(table.output.find(text), std::string::npos) << text << " in " << table.output;
  options.erase(options.begin());
  const Json file = probe(options);
  if (file.is_null()) return;
  std::vector<std::string> names;
  for (const Json& record : file["records"]) {
    if (!record.contains("peer")) continue;
    names.push_back(record["peer"].get<std::string>());
    if (record.contains("missing")) {
      EXPECT_NE(names.back(), "headway") << record;
      EXPECT_FALSE(record["missing"].get<std::string>().empty());
      EXPECT_NE(table.output.find(names.back() + " is missing: "), std::string::npos) << table.output;
      continue;
    }
    for (const char* value : {"one_way_us", "messages_per_second", "gigabytes_per_second"})
      EXPECT_GT(record[value]["median"].get<double>(), 0) << record;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"headway", "openmpi", "mpich"}));
}

TEST(Probe, keeps_results_of_this_host_for_doctor) {
  namespace fs = std::filesystem;
  const fs::path cache = fs::temp_directory_path() / fmt::format("headway-probe-test-{}", ::getpid());
  const std::vector<Variable> environment = {{"XDG_CACHE_HOME", cache.string()}};
  const auto doctor = [&] { return headway({"doctor"}, environment).output; };
  EXPECT_NE(doctor().find("`headway probe --save`"), std::string::npos);
  const auto save = [&](const char* pair) {
    const ChildResult result = headway({"probe", "--transport", "local", "--pair", pair, "--launches", "1", "--points",
                                        "4", "--bytes-max", "64", "--messages", "4", "--save"},
                                       environment);
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_NE(result.errors.find(cache.string()), std::string::npos) << result.errors;
  };
  save("thread");
  const auto expect = [&](const char* text) {
    EXPECT_NE(doctor().find(text), std::string::npos) << text << " in " << doctor();
  };
  expect("local, thread");
  save("process");
  expect("local, thread");
  expect("local, process");
  std::size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache / "headway")) {
    ++files;
    std::ofstream(entry.path()) << "no result";
  }
  EXPECT_EQ(files, 2);  // for doctor, and for the library
  EXPECT_NE(doctor().find("`headway probe --save`"), std::string::npos);
  fs::remove_all(cache);
}

TEST(Probe, measures_pes_that_another_launcher_starts) {
  const std::string probed = (std::filesystem::path(HEADWAY_COMMAND).parent_path() / "headway-probe").string();
  const std::vector<std::string> few = {"--launches", "1",           "--points", "4",          "--repeats",
                                        "1",          "--bytes-max", "64",       "--messages", "4"};
  std::vector<std::string> options = {"--command", fmt::format("{} run --pes 2 {}", HEADWAY_COMMAND, probed)};
  options.insert(options.end(), few.begin(), few.end());
  const Json file = probe(options);
  if (file.is_null()) return;
  ASSERT_EQ(file["records"].size(), 1u);
  EXPECT_EQ(file["records"][0]["pair"], "command");
  expect_sound(file["records"][0]);
  const ChildResult failed = headway({"probe", "--command", "sh -c 'exit 7'"});
  EXPECT_EQ(failed.status, 7) << failed.errors;
  const ChildResult refused = headway({"probe", "--command", "true", "--transport", "local"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.errors.find("--transport"), std::string::npos) << refused.errors;
}

TEST(Probe, the_status_of_a_launch_that_fails_is_its_own) {
  const ChildResult result =
      headway({"probe", "--transport", "local", "--launches", "1"}, {{"HEADWAY_COLLECTIVES", "none"}});
  EXPECT_EQ(result.status, 120);
  EXPECT_NE(result.errors.find("HEADWAY_COLLECTIVES"), std::string::npos) << result.errors;
}

}  // namespace
}  // namespace headway::tools
