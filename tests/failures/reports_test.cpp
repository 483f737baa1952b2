// SPDX-License-Identifier: BSD-3-Clause
/// The page on the state of each PE: its text for a stalled run, and that any user may ask a healthy run for it.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <regex>
#include <thread>

#include "session.hpp"

namespace headway::testing {
namespace {

const Variables soon = {{"HEADWAY_STALL", "700ms"}};
const std::vector<std::pair<std::size_t, std::size_t>> shapes = {{3, 1}, {3, 3}, {5, 2}};

bool contains(const std::string& text, const std::string& expression) {
  return std::regex_search(text, std::regex(expression));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The page's text on one PE, up to the next PE. Tests search it alone: a regular expression over many lines would try
/// every way to divide them.
std::string part_of(const std::string& page, std::size_t pe) {
  const std::size_t begin = page.find("\n  PE " + std::to_string(pe) + " (pid ");
  if (begin == page.npos) return "";
  return page.substr(begin, page.find("\n  PE ", begin + 1) - begin);
}

std::vector<std::vector<std::string>> both_ways(std::vector<std::string> command) {
  std::vector<std::vector<std::string>> ways = {command};
  command.insert(command.begin(), {headway_command(), "run"});
  ways.push_back(command);
  return ways;
}

/// Waits until the session has written `pages` pages.
bool wait_for_pages(const Session& session, std::size_t pages, double seconds = 50) {
  const auto begin = std::chrono::steady_clock::now();
  while (count_of(session.errors(), "headway: a report on ") < pages) {
    if (seconds_since(begin) > seconds) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Ends the processes that are stuck.
void let_go(const Session& session) {
  for (const pid_t child : session.children()) kill(child, SIGUSR2);
}

// --- of a stalled run

TEST(StallReport, says_who_holds_a_senders_memory_and_what_lies_before_a_stopped_pe) {
  for (const std::size_t n : {2, 3}) {
    const Outcome outcome = run_to_end({victim(), "flood"}, pes(n) + soon);
    EXPECT_EQ(outcome.status, 122);
    const std::string last = std::to_string(n - 1);
    EXPECT_TRUE(contains(outcome.errors, "\n  (one PE waits|all others wait) in the end for PE " + last +
                                             ", which is outside the library and is stopped by a signal\n"))
        << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, "\n  PE 0 \\(pid \\d+\\) waits in a send for PE " + last)) << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, "\n    frame memory: .* of .* in use")) << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors,
                         "\n    \\d+ messages of aggregator number \\d+ 'flood' <.*> in \\d+ frames from PE "
                         "0 are not handled yet"))
        << outcome.errors;
    EXPECT_TRUE(
        contains(outcome.errors, "\n    last handler run: aggregator number \\d+ 'flood' <.*>, for a frame from PE 0"))
        << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(StallReport, names_messages_that_nobody_can_handle_by_aggregator_and_sender) {
  const Outcome outcome = run_to_end({victim(), "missing"}, pes(3) + soon);
  EXPECT_EQ(outcome.status, 122);
  EXPECT_TRUE(contains(outcome.errors,
                       "\n  PE 1 .*\n    1 message from PE 0 is undelivered on PE 1: aggregator number \\d+ "
                       "was never made there"))
      << outcome.errors;
}

TEST(StallReport, of_64_pes_is_readable) {
  const Outcome outcome = run_to_end({victim(), "cross_purposes"}, pes(64) + Variables{{"HEADWAY_STALL", "2s"}});
  EXPECT_EQ(outcome.status, 122);
  EXPECT_TRUE(contains(outcome.errors, "\n  a cycle: PE \\d+ waits for PE \\d+( waits for PE \\d+)*\n"))
      << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "\n  PE 63 \\(pid \\d+\\) waits in a blocking collective for PE 62"))
      << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "\\n  PE .* \\(\\d+ PEs\\): each waits in quiesce\\(\\)")) << outcome.errors;
  EXPECT_LT(std::ranges::count(outcome.errors, '\n'), 100) << outcome.errors;
}

// --- on demand

TEST(ReportOnDemand, shows_where_a_pe_is_stuck_in_user_code_and_the_run_goes_on) {
  for (const auto& [n, per_process] : shapes) {
    for (const auto& command : both_ways({victim(), "stuck", "60"})) {
      if (per_process != 1 && command.size() != 3) continue;
      Session session(command, pes(n, per_process));
      ASSERT_TRUE(session.wait_for_lines(n)) << session.errors();
      std::this_thread::sleep_for(std::chrono::seconds(1));
      ASSERT_EQ(kill(session.pid(), SIGUSR1), 0);
      ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
      let_go(session);
      EXPECT_EQ(session.wait(), 0) << session.errors();
      const std::string page = session.errors();
      EXPECT_TRUE(page.starts_with("headway: a report on " + std::to_string(n) + " PEs, asked for by a signal:\n"))
          << page;
      EXPECT_TRUE(contains(page, "\n  all others wait in the end for PE 1, which is outside the library\n")) << page;
      EXPECT_TRUE(contains(page, "\n  PE 1 \\(pid \\d+\\) is outside the library;")) << page;
      EXPECT_EQ(count_of(part_of(page, 1), " victim::stuck_in_user_code"), 1U) << page;
      EXPECT_TRUE(contains(page, "\n  PE 0 \\(pid \\d+\\) waits in quiesce\\(\\) for PE 1")) << page;
      EXPECT_EQ(session.leftovers(), "");
    }
  }
}

TEST(ReportOnDemand, shows_a_handler_that_runs_for_long) {
  Session session({victim(), "stuck", "60", "in_handler"}, pes(3));
  ASSERT_TRUE(session.wait_for_lines(3)) << session.errors();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_EQ(kill(session.pid(), SIGUSR1), 0);
  ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
  let_go(session);
  EXPECT_EQ(session.wait(), 0) << session.errors();
  const std::string page = session.errors();
  EXPECT_TRUE(contains(page,
                       "\n  PE 1 \\(pid \\d+\\) runs a handler;.*\n    in the handler of: aggregator number "
                       "\\d+ 'slow' <.*>, for a frame from PE 0"))
      << page;
  EXPECT_EQ(count_of(part_of(page, 1), " victim::stuck_in_user_code"), 1U) << page;
}

TEST(ReportOnDemand, names_places_by_file_and_offset_where_addr2line_is_missing) {
  Session session({victim(), "stuck", "60"}, pes(2) + Variables{{"PATH", "/there/is/none"}});
  ASSERT_TRUE(session.wait_for_lines(2)) << session.errors();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ASSERT_EQ(kill(session.pid(), SIGUSR1), 0);
  ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
  let_go(session);
  EXPECT_EQ(session.wait(), 0) << session.errors();
  EXPECT_TRUE(contains(session.errors(), "\n      by failures_victim\\+0x[0-9a-f]+\n")) << session.errors();
}

TEST(ReportOnDemand, does_not_disturb_a_run_however_often_it_is_asked) {
  for (const auto& [n, per_process] : shapes) {
    Session session({victim(), "quiesce_for", "20"}, pes(n, per_process) + soon);
    ASSERT_TRUE(session.wait_for_lines(n)) << session.errors();
    const auto begin = std::chrono::steady_clock::now();
    while (seconds_since(begin) < 0.8 ||
           (seconds_since(begin) < 15 && count_of(session.errors(), "headway: a report on ") < 2)) {
      kill(session.pid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    let_go(session);
    EXPECT_EQ(session.wait(), 0) << session.errors();
    EXPECT_GT(count_of(session.errors(), "headway: a report on "), 1U) << session.errors();
    EXPECT_FALSE(contains(session.errors(), "a cycle")) << session.errors();
    EXPECT_EQ(session.leftovers(), "");
  }
}

TEST(ReportOnDemand, may_be_asked_of_any_process_of_the_run) {
  for (const auto& command : both_ways({victim(), "stuck", "60"})) {
    Session session(command, pes(5, 2));
    ASSERT_TRUE(session.wait_for_lines(5)) << session.errors();
    for (const pid_t child : session.children()) ASSERT_EQ(kill(child, SIGUSR1), 0);
    ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
    let_go(session);
    EXPECT_EQ(session.wait(), 0) << session.errors();
  }
}

TEST(ReportOnDemand, wakes_nobody_who_sleeps_in_the_kernel) {
  Session session({victim(), "sleeps", "2"}, pes(3));
  ASSERT_TRUE(session.wait_for_lines(3)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGUSR1), 0);
  ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
  EXPECT_EQ(session.wait(), 0) << session.errors();
}

TEST(ReportOnDemand, of_64_busy_pes_is_readable) {
  Session session({victim(), "load", "traffic", "none", "0"}, pes(64, 8));
  ASSERT_TRUE(session.wait_for_lines(64, 60)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGUSR1), 0);
  ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
  EXPECT_LT(std::ranges::count(session.errors(), '\n'), 200) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGTERM), 0);
  EXPECT_EQ(session.wait(), 128 + SIGTERM);
}

// --- programs with signals of their own

TEST(ReportSignals, that_the_caller_ignores_ask_for_nothing) {
  Session session({"sh", "-c", "trap '' USR1; exec " + victim() + " quiesce_for 1"}, pes(2));
  ASSERT_TRUE(session.wait_for_lines(2)) << session.errors();
  ASSERT_EQ(kill(-session.pid(), SIGUSR1), 0);
  EXPECT_EQ(session.wait(), 0) << session.errors();
  EXPECT_EQ(session.errors(), "");
}

TEST(ReportSignals, that_the_program_handles_are_its_own) {
  for (const char* when : {"before", "after"}) {
    for (const auto& [n, per_process] : shapes) {
      Session session({victim(), "own_handler", when}, pes(n, per_process));
      ASSERT_TRUE(session.wait_for_lines(n)) << session.errors();
      ASSERT_EQ(kill(-session.pid(), SIGUSR1), 0);
      EXPECT_EQ(session.wait(), 0) << session.errors();
      EXPECT_TRUE(when == std::string("after") || session.errors().empty()) << session.errors();
    }
  }
}

TEST(ReportSignals, leave_those_alone_that_the_program_uses) {
  Session session({victim(), "own_real_time_handlers", "1.5"}, pes(3));
  ASSERT_TRUE(session.wait_for_lines(3)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGUSR1), 0);
  ASSERT_TRUE(wait_for_pages(session, 1)) << session.errors();
  EXPECT_EQ(session.wait(), 0) << session.errors();
}

TEST(ReportSignals, are_as_they_were_after_the_run) {
  for (const auto& command : both_ways({victim(), "signals_afterwards"})) {
    EXPECT_EQ(run_to_end(command, pes(3)).status, 0);
  }
}

}  // namespace
}  // namespace headway::testing
