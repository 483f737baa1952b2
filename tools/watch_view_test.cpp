// SPDX-License-Identifier: BSD-3-Clause
/// Rates from two answers, sums, lines of JSON, and tables in windows of several sizes.
#include "watch_view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <memory>

#include "watch_table.hpp"

namespace headway::tools {
namespace {

constexpr std::uint64_t a_second = 1'000'000'000;

report::PeStatistics answer(std::uint64_t ns, std::uint64_t created, std::uint64_t handled, std::uint64_t frames,
                            std::uint64_t forwarded = 0) {
  report::PeStatistics one;
  one.time_ns = ns;
  one.created = created;
  one.handled = handled;
  one.frames = frames;
  one.forwarded = forwarded;
  return one;
}

/// PE `pe` waits for that part of the time.
WatchedPe pe_that_waits(std::size_t pe, double waiting) {
  WatchedPe one;
  one.pe = pe;
  one.pid = 100;
  one.state = "waits in quiesce()";
  one.rates = Rates{1000, 500, 10, 100.0};
  one.waiting = waiting;
  one.handling = 0.25;
  one.memory_bytes = 4096;
  one.resident_bytes = 1 << 20;
  return one;
}

View view_of(std::size_t pes) {
  View view{"/somewhere/program", 2, false, {}};
  for (std::size_t pe = 0; pe < pes; ++pe) view.pes.push_back(pe_that_waits(pe, double(pe) / double(pes)));
  return view;
}

bool contains(const std::vector<std::string>& lines, const std::string& text) {
  return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(WatchRates, are_differences_over_the_time_between_two_answers) {
  const auto rates = rates_between(answer(a_second, 100, 50, 10), answer(3 * a_second, 1100, 150, 20));
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->messages_per_s, 500);
  EXPECT_DOUBLE_EQ(rates->handled_per_s, 50);
  EXPECT_DOUBLE_EQ(rates->frames_per_s, 5);
  EXPECT_DOUBLE_EQ(rates->fill.value(), 100);
}

TEST(WatchRates, count_forwarded_messages_in_frames_but_not_as_sent) {
  const auto rates = rates_between(answer(0, 0, 0, 0), answer(a_second, 100, 0, 10, 300));
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->messages_per_s, 100);
  EXPECT_DOUBLE_EQ(rates->fill.value(), 40);
}

TEST(WatchRates, are_never_negative_while_forwarded_messages_are_in_open_buffers) {
  const auto rates = rates_between(answer(0, 5, 0, 0), answer(a_second, 3, 0, 0));
  ASSERT_TRUE(rates);
  EXPECT_DOUBLE_EQ(rates->messages_per_s, 0);
  EXPECT_FALSE(rates->fill);
}

TEST(WatchRates, are_unknown_without_a_new_answer_and_when_another_run_has_begun) {
  EXPECT_FALSE(rates_between(answer(a_second, 5, 5, 5), answer(a_second, 5, 5, 5)));
  EXPECT_FALSE(rates_between(answer(a_second, 50, 50, 50), answer(2 * a_second, 1, 1, 1)));
}

TEST(WatchStatistics, an_answer_is_read_only_if_it_answers_the_newest_request) {
  const auto board = std::make_unique<report::PeBoard>();
  EXPECT_FALSE(report::statistics_of(*board));
  board->wanted = report::with_report(0, 7);
  for (std::uint32_t n = 1; n <= 600; ++n) {
    report::ask_for_statistics(*board);
    ASSERT_FALSE(report::statistics_of(*board)) << n;
    ASSERT_EQ(report::report_in(board->wanted), 7U);
    report::give_statistics(*board, report::statistics_in(board->wanted), answer(n, 2 * n, 3 * n, 4 * n));
    ASSERT_TRUE(report::statistics_of(*board)) << n;
    EXPECT_EQ(report::statistics_of(*board)->handled, 3 * n);
  }
}

TEST(WatchStatistics, a_request_for_a_report_leaves_that_for_statistics_as_it_is) {
  std::uint32_t wanted = report::with_statistics(0, 255);
  wanted = report::with_report(wanted, report::report_numbers + 3);
  EXPECT_EQ(report::report_in(wanted), 3U);
  EXPECT_EQ(report::statistics_in(wanted), 255U);
  EXPECT_EQ(report::statistics_in(report::with_statistics(wanted, 256)), 1U);
}

TEST(WatchView, sums_rates_means_of_shares_and_each_process_once) {
  View view = view_of(2);
  view.pes[1].rates.reset();
  view.pes[0].waiting = 1;
  view.pes[1].waiting = 0.5;
  const Sums sums = sums_of(view);
  EXPECT_EQ(sums.answered, 1U);
  EXPECT_DOUBLE_EQ(sums.rates.messages_per_s, 1000);
  EXPECT_DOUBLE_EQ(sums.rates.fill.value(), 100);
  EXPECT_DOUBLE_EQ(sums.waiting.value(), 0.75);
  EXPECT_EQ(sums.memory_bytes, 8192U);
  EXPECT_EQ(sums.resident_bytes, 1U << 20);
  view.pes[1].host = "another";
  EXPECT_EQ(sums_of(view).resident_bytes, 2U << 20);
}

TEST(WatchView, is_the_same_after_its_line_of_json) {
  View view = view_of(3);
  view.simulated = true;
  view.pes[0].host = "node1";
  view.pes[1].rates.reset();
  view.pes[2].waiting.reset();
  view.pes[2].resident_bytes.reset();
  const std::string line = to_json(view).dump();
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(to_json(view_of_json(line)), to_json(view));
  EXPECT_THROW(view_of_json("ssh: no route"), SettingError);
  EXPECT_THROW(view_of_json("{}"), SettingError);
}

TEST(WatchTable, fits_windows_of_all_sizes) {
  for (const std::size_t pes : {1, 2, 30, 1000}) {
    const View view = view_of(pes);
    for (std::size_t columns = 1; columns <= 200; columns += 7) {
      for (const std::size_t lines : {1, 2, 3, 4, 5, 10, 24, 60}) {
        const auto drawn = draw(view, {columns, lines}, {"a note", "another note"});
        EXPECT_LE(drawn.size(), lines);
        for (const std::string& line : drawn) EXPECT_LE(line.size(), columns) << line;
        if (lines >= 10 && columns >= 30) {
          EXPECT_TRUE(contains(drawn, "messages/s")) << columns;
          EXPECT_TRUE(contains(drawn, "another note"));
        }
      }
    }
  }
}

TEST(WatchTable, shows_all_columns_and_pes_where_there_is_room) {
  const auto drawn = draw(view_of(4), {200, 50});
  EXPECT_EQ(drawn.size(), 3U + 4U);
  for (const char* head : {"PE", "process", "messages/s", "handled/s", "frames/s", "fill", "wait %", "handle %",
                           "buffers", "memory", "budget", "spill", "spilled", "resident", "state"})
    EXPECT_NE(drawn[1].find(head), std::string::npos) << head;
  EXPECT_EQ(drawn[1].find("host"), std::string::npos);  // no PE names one
  EXPECT_NE(drawn[2].find("4.00k"), std::string::npos) << drawn[2];
  EXPECT_NE(drawn[6].find("waits in quiesce()"), std::string::npos);
}

TEST(WatchTable, leaves_out_whole_columns_in_a_narrow_window) {
  const auto drawn = draw(view_of(2), {40, 24});
  EXPECT_TRUE(contains(drawn, "wait %"));
  EXPECT_FALSE(contains(drawn, "state"));
  EXPECT_FALSE(contains(drawn, "process"));
}

TEST(WatchTable, shows_the_pes_that_wait_most_and_least_in_a_low_window) {
  const auto drawn = draw(view_of(1000), {120, 10});
  ASSERT_EQ(drawn.size(), 10U);
  const auto row_of = [&](const std::string& pe) {
    return std::ranges::any_of(drawn, [&](const std::string& line) {
      return line.substr(0, line.find("  ", line.find_first_not_of(' '))).ends_with(pe);
    });
  };
  EXPECT_TRUE(row_of(" 0"));
  EXPECT_TRUE(row_of("999"));
  EXPECT_TRUE(row_of("997"));
  EXPECT_FALSE(row_of("500"));
  EXPECT_NE(drawn[9].find("994 PEs more"), std::string::npos) << drawn[9];
}

TEST(WatchTable, names_pes_that_did_not_answer_and_simulated_time) {
  View view = view_of(3);
  view.pes[1].rates.reset();
  EXPECT_TRUE(contains(draw(view, {}), "1 did not answer"));
  EXPECT_FALSE(contains(draw(view, {}), "simulated"));
  view.simulated = true;
  EXPECT_TRUE(contains(draw(view, {}), "simulated"));
}

TEST(WatchTable, shortens_numbers_to_three_digits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(7), "7");
  EXPECT_EQ(short_number(1.234), "1.23");
  EXPECT_EQ(short_number(999), "999");
  EXPECT_EQ(short_number(1234), "1.23k");
  EXPECT_EQ(short_number(99'960), "100k");
  EXPECT_EQ(short_number(12'345'678), "12.3M");
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(1500), "1.5 KiB");
  EXPECT_EQ(short_bytes(64 << 20), "64 MiB");
}

}  // namespace
}  // namespace headway::tools
