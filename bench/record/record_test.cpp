// SPDX-License-Identifier: BSD-3-Clause
#include "record.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <headway/base/error.hpp>
#include <optional>
#include <utility>

#include "command_line.hpp"
#include "pairs.hpp"
#include "time_left.hpp"

namespace headway::bench {
namespace {

Json run_of(double seconds, bool verified, std::uint64_t errors) {
  Json record = make_record({"randomaccess", "1d", "local", 2, 2, 1, 8, 1000}, seconds, verified);
  add_frames(record, {.frames = std::uint64_t(seconds * 10),
                      .wire_bytes = 8000,
                      .copies = 1000,
                      .copied_bytes = 8000,
                      .fill_mean = 0.5,
                      .full = 3});
  record["errors"] = errors;
  return record;
}

TEST(Record, has_the_fields_of_the_result_file) {
  const Json record = run_of(2, true, 0);
  for (const char* field : {"bench", "mode", "transport", "pes", "processes", "pes_per_process", "message_bytes",
                            "messages", "repeat", "seconds", "messages_per_second", "verified", "frames", "wire_bytes",
                            "fill_mean", "flush", "peak_buffer_bytes", "gups", "errors"}) {
    EXPECT_TRUE(record.contains(field)) << field;
  }
  EXPECT_DOUBLE_EQ(record["messages_per_second"], 500);
  EXPECT_EQ(record["flush"]["full"], 3);
  EXPECT_EQ(record["copies"], 1000);
  EXPECT_EQ(record["copied_bytes"], 8000);
}

TEST(Record, repeats_merge_into_medians_and_verified_means_all_of_them) {
  const std::vector<Json> good = {run_of(3, true, 0), run_of(1, true, 0), run_of(2, true, 0)};
  const Json merged = merge_repeats(good);
  EXPECT_EQ(merged["repeat"], 3);
  EXPECT_DOUBLE_EQ(merged["seconds"]["median"], 2);
  EXPECT_DOUBLE_EQ(merged["seconds"]["min"], 1);
  EXPECT_DOUBLE_EQ(merged["seconds"]["max"], 3);
  EXPECT_DOUBLE_EQ(merged["messages_per_second"], 500);
  EXPECT_EQ(merged["frames"], 20);
  EXPECT_EQ(merged["verified"], true);

  std::vector<Json> bad = good;
  bad.push_back(run_of(1, false, 7));
  EXPECT_EQ(merge_repeats(bad)["verified"], false);
  EXPECT_EQ(merge_repeats(bad)["errors"], 7);
}

TEST(Record, repeats_of_latencies_and_formulations_merge_too) {
  const auto run = [](double seconds, const char* formulation) {
    Json record = make_record({"latency", "limit", "local", 2, 2, 1, 8, 1000}, seconds, true);
    for (const char* field : {"one_way_us", "latency_us", "cpu_us", "in_calls_us", "late_fraction"}) {
      record[field] = to_json({seconds, seconds, seconds});
    }
    record["bytes_per_second"] = 8000 / seconds;
    record["formulation"] = formulation;
    record["tried_messages_per_second"]["a, by four"] = seconds;
    return record;
  };
  const std::vector<Json> repeats = {run(4, "a"), run(1, "b"), run(2, "b")};
  const Json merged = merge_repeats(repeats);
  for (const char* field : {"one_way_us", "latency_us", "cpu_us", "in_calls_us", "late_fraction"}) {
    EXPECT_EQ(merged[field], to_json({2, 1, 4})) << field;
  }
  EXPECT_DOUBLE_EQ(merged["bytes_per_second"], 4000);
  EXPECT_EQ(merged["formulation"], "b");
  EXPECT_EQ(merged["tried_messages_per_second"]["a, by four"], 2);
}

TEST(Record, the_median_of_an_even_count_is_between_the_middle_two) {
  EXPECT_DOUBLE_EQ(spread_of({4, 1, 3, 2}).median, 2.5);
  EXPECT_DOUBLE_EQ(spread_of({}).median, 0);
}

TEST(CommandLine, counts_are_read_as_people_write_them) {
  EXPECT_EQ(parse_count("--n", "1000", 1, 10000), 1000u);
  EXPECT_EQ(parse_count("--n", "1e6", 1, 10'000'000), 1'000'000u);
  EXPECT_EQ(parse_count("--n", "10^6", 1, 10'000'000), 1'000'000u);
  EXPECT_EQ(parse_count("--n", "2^20", 1, 10'000'000), 1u << 20);
  for (const char* text : {"", "abc", "-1", "0", "1.5", "10001", "1e99", "2^", "^2", "7x"}) {
    EXPECT_THROW(parse_count("--n", text, 1, 10000), SettingError) << text;
  }
}

TEST(CommandLine, times_need_a_unit) {
  EXPECT_EQ(parse_time("--timeout", "100us"), std::chrono::microseconds(100));
  EXPECT_EQ(parse_time("--timeout", "1.5ms"), std::chrono::microseconds(1500));
  EXPECT_EQ(parse_time("--timeout", "none"), std::chrono::nanoseconds::max());
  for (const char* text : {"", "100", "us", "-1us", "1e30s", "1h"}) {
    EXPECT_THROW(parse_time("--timeout", text), SettingError) << text;
  }
}

/// Parses a command line. Returns the status and the text on standard error.
std::pair<std::optional<int>, std::string> parsed(std::vector<const char*> arguments, std::uint64_t& count,
                                                  bool& flag) {
  CommandLine app("A program.", "name");
  app.add_count("--count", "N", "so many", count, 1, 10);
  app.add_flag("--flag", "a flag", flag);
  arguments.insert(arguments.begin(), "name");
  testing::internal::CaptureStderr();
  const auto status = app.parse(int(arguments.size()), arguments.data(), [&] {
    if (flag && !app.given("--count")) throw SettingError("--flag: not allowed without --count");
  });
  return {status, testing::internal::GetCapturedStderr()};
}

TEST(CommandLine, options_are_stored_and_what_is_refused_ends_in_one_line) {
  std::uint64_t count = 0;
  bool flag = false;
  EXPECT_EQ(parsed({"--count", "7", "--flag"}, count, flag), (std::pair{std::optional<int>(), std::string()}));
  EXPECT_EQ(count, 7u);
  EXPECT_TRUE(flag);
  using Arguments = std::vector<const char*>;
  const std::vector<std::pair<Arguments, std::string>> refused = {
      {{"--count", "11"}, "name: --count: '11' is not allowed; allowed is a whole number from 1 to 10\n"},
      {{"--cont", "1"},
       "name: unknown option '--cont', did you mean '--count'?; allowed are -h, --help, --count, --flag\n"},
      {{"more"}, "name: 'more' was not expected here\n"},
      {{"--flag"}, "name: --flag: not allowed without --count\n"}};
  for (const auto& [arguments, why] : refused) {
    EXPECT_EQ(parsed(arguments, count, flag), (std::pair(std::optional(exit_status::unusable_arguments), why)));
  }
}

TEST(Pairs, the_median_lies_between_values_as_far_in_as_the_sign_test_allows) {
  for (const std::size_t few : {0, 1, 5}) EXPECT_FALSE(median_bounds(few).has_value()) << few;
  const std::vector<std::array<std::size_t, 3>> known = {{6, 0, 5}, {8, 0, 7}, {9, 1, 7}, {15, 3, 11}, {100, 39, 60}};
  for (const auto& [count, low, high] : known) EXPECT_EQ(median_bounds(count), std::pair(low, high)) << count;
  const auto many = median_bounds(100'000);
  ASSERT_TRUE(many.has_value());
  EXPECT_NEAR(double(many->first), 50'000 - 0.98 * std::sqrt(100'000), 2);
}

TEST(Pairs, bounds_are_of_the_sorted_ratios_and_missing_for_few) {
  std::vector<double> ratios;
  for (int i = 0; i < 15; ++i) ratios.push_back(1 + (i * 7 % 15) * 0.01);
  const Json fifteen = ratios_to_json(ratios);
  EXPECT_DOUBLE_EQ(fifteen["median"].get<double>(), 1.07);
  EXPECT_DOUBLE_EQ(fifteen["low"].get<double>(), 1.03);
  EXPECT_DOUBLE_EQ(fifteen["high"].get<double>(), 1.11);
  EXPECT_EQ(fifteen["pairs"], 15);
  ratios.resize(5);
  EXPECT_TRUE(ratios_to_json(ratios)["low"].is_null());
}

TEST(CommandLine, lists_have_no_empty_parts) {
  EXPECT_EQ(parse_list("--mode", "direct,1d"), (std::vector<std::string>{"direct", "1d"}));
  for (const char* text : {"", ",", "a,", ",a", "a,,b"}) EXPECT_THROW(parse_list("--mode", text), SettingError) << text;
}

TEST(CommandLine, a_wrong_choice_names_the_nearest_and_all) {
  const std::vector<std::string> allowed = {"randomaccess", "stream"};
  EXPECT_EQ(nearest("randomacess", allowed), "randomaccess");
  EXPECT_EQ(nearest("xyz", allowed), "");
  try {
    parse_choice("NAME", "strem", allowed);
    FAIL() << "accepted";
  } catch (const SettingError& error) {
    EXPECT_STREQ(error.what(),
                 "NAME: 'strem' is not allowed; allowed is randomaccess, stream (did you mean 'stream'?)");
  }
}

TEST(TimeLeft, is_estimated_from_the_steps_that_are_done) {
  EXPECT_EQ(time_left(0, 4, 10), "");
  EXPECT_EQ(time_left(1, 4, 0.5), "");
  EXPECT_EQ(time_left(1, 4, 10), ", 30 s left");
  EXPECT_EQ(time_left(4, 4, 10), ", 0 s left");
  EXPECT_EQ(time_left(1, 11, 60), ", 10 min left");
  EXPECT_EQ(time_left(1, 101, 360), ", 10 h left");
}

}  // namespace
}  // namespace headway::bench
