// SPDX-License-Identifier: BSD-3-Clause
/// The output of PEs arrives: whole lines, all of them, and no process hangs because of it.
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <sstream>
#include <thread>

#include "session.hpp"

namespace headway::testing {
namespace {

/// Each PE's lines are all there, in order, untorn.
void expect_lines(const std::string& text, std::size_t pes, std::size_t count, std::size_t bytes) {
  std::map<std::size_t, std::size_t> seen;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t pe = 0, number = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "<%zu:%zu:", &pe, &number), 2) << line.substr(0, 200);
    ASSERT_EQ(line.size(), std::max(bytes, line.find_last_of(':') + 2)) << line.substr(0, 50);
    const auto body = line.find_last_of(':') + 1;
    ASSERT_EQ(line.find_first_not_of(char('a' + pe % 26), body), line.size() - 1) << "PE " << pe;
    ASSERT_EQ(line.back(), '>');
    ASSERT_EQ(number, seen[pe]++) << "PE " << pe;
  }
  ASSERT_EQ(seen.size(), pes);
  for (const auto& [pe, lines_of_pe] : seen) EXPECT_EQ(lines_of_pe, count) << "PE " << pe;
}

TEST(Output, of_many_pes_at_once_is_whole_lines_and_none_is_lost) {
  struct Case {
    std::size_t pes, count, bytes;
  };
  for (const auto& [n, count, bytes] :
       {Case{8, 2000, 40}, Case{8, 200, 5000}, Case{5, 3, 70'000}, Case{3, 2, 900'000}}) {
    SCOPED_TRACE(std::to_string(n) + " PEs, " + std::to_string(bytes) + " bytes");
    const Outcome outcome = run_to_end({victim(), "lines", std::to_string(count), std::to_string(bytes)}, pes(n));
    EXPECT_EQ(outcome.status, 0);
    expect_lines(outcome.output, n, count, bytes);
    expect_lines(outcome.errors, n, count, bytes);
  }
}

TEST(Output, of_threads_of_one_process_is_whole_lines_where_each_is_one_call) {
  for (const auto& shape : {pes(8, 8), pes(8, 3)}) {
    const Outcome outcome = run_to_end({victim(), "lines", "500", "3000", "ended"}, shape);
    EXPECT_EQ(outcome.status, 0);
    expect_lines(outcome.output, 8, 500, 3000);
    expect_lines(outcome.errors, 8, 500, 3000);
  }
}

TEST(Output, through_a_slow_pipe_is_whole_lines_and_none_is_lost) {
  const Outcome outcome = run_to_end(
      {"sh", "-c", victim() + " lines 3000 100 2> /dev/null | (sleep 0.5; dd bs=1000 2> /dev/null)"}, pes(4));
  EXPECT_EQ(outcome.status, 0);
  expect_lines(outcome.output, 4, 3000, 100);
}

TEST(Output, by_cout_with_a_buffer_of_its_own_is_whole_lines) {
  const Outcome outcome = run_to_end({victim(), "by_cout"}, pes(4));
  EXPECT_EQ(outcome.status, 0);
  std::map<std::string, int> next;
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    int pe = 0, number = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "PE %d says %d", &pe, &number), 2) << line;
    ASSERT_EQ(number, next[std::to_string(pe)]++) << line;
  }
  ASSERT_EQ(next.size(), 4U);
  for (const auto& [pe, count] : next) EXPECT_EQ(count, 1000) << pe;
}

TEST(Output, that_lay_in_buffers_before_run_is_written_once) {
  const Outcome outcome = run_to_end({victim(), "text_before"}, pes(4));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "once by cout\nonce by printf\n");
}

TEST(Output, of_one_pe_is_its_own_to_the_byte) {
  EXPECT_EQ(run_to_end({victim(), "lines", "1", "20"}, pes(1)).output, "<0:0:aaaaaaaaaaaaaa>\n");
  EXPECT_EQ(run_to_end({"sh", "-c", victim() + " hello | cat"}, pes(1)).output, "hello from PE 0 of 1\n");
}

TEST(Output, that_nobody_reads_any_more_ends_the_run_as_it_ends_any_program) {
  Session session({"bash", "-c", victim() + " prints_for_ever | head -1; exit ${PIPESTATUS[0]}"}, pes(3));
  EXPECT_EQ(session.wait(), 128 + SIGPIPE);
  EXPECT_EQ(session.output(), "line 0\n");
  EXPECT_EQ(session.errors().find("headway:"), std::string::npos) << session.errors();
  EXPECT_EQ(session.leftovers(), "");
}

TEST(Output, to_a_full_disk_is_said_to_be_incomplete) {
  const Outcome outcome = run_to_end({"sh", "-c", victim() + " hello > /dev/full"}, pes(3));
  EXPECT_EQ(outcome.errors, "headway: standard output cannot be written: No space left on device; it is incomplete\n");
}

TEST(Output, of_a_process_that_outlives_the_run_does_not_keep_it) {
  Session session({victim(), "leaves_noise"}, pes(2));
  EXPECT_EQ(session.wait(15), 0) << session.errors();  // that writes for 20
}

TEST(Output, handlers_at_exit_run_once_in_the_caller) {
  const Outcome outcome = run_to_end({victim(), "at_exit"}, pes(4));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "an exit handler\na static destructor\n");
}

TEST(Streams, standard_input_goes_to_pe_0) {
  for (const std::string launcher : {"", "headway run"}) {
    std::vector<std::string> command = {victim(), "reads"};
    if (!launcher.empty()) command.insert(command.begin(), {headway_command(), "run"});
    const std::string output = run_to_end(command, pes(3), {.input = std::string(200'000, 'x')}).output;
    EXPECT_NE(output.find("PE 0 read 200000 bytes\n"), output.npos) << output;
    EXPECT_NE(output.find("PE 1 read 0 bytes\n"), output.npos) << output;
    EXPECT_NE(output.find("PE 2 read 0 bytes\n"), output.npos) << output;
  }
}

TEST(Streams, what_the_caller_has_not_read_of_standard_input_goes_to_pe_0) {
  for (const auto& shape : {pes(3), pes(8)}) {
    const std::string output =
        run_to_end({victim(), "reads", "line"}, shape, {.input = "a line\n" + std::string(1000, 'x')}).output;
    EXPECT_NE(output.find("PE 0 read 1000 bytes\n"), output.npos) << output;
    EXPECT_NE(output.find("PE 2 read 0 bytes\n"), output.npos) << output;
  }
}

TEST(Streams, a_question_on_a_terminal_is_seen_before_it_is_answered) {
  if (!has_terminals()) GTEST_SKIP() << "no terminal can be made here";
  Session session({victim(), "asks"}, pes(3), {.terminal = true});
  const auto begin = std::chrono::steady_clock::now();
  while (session.output().find("how many? ") == std::string::npos && seconds_since(begin) < 60) continue;
  EXPECT_EQ(session.output(), "how many? ");
  session.type("forty\n");
  EXPECT_EQ(session.wait(), 0);
  EXPECT_NE(session.output().find("so many: forty"), std::string::npos) << session.output();
}

TEST(Streams, any_of_them_may_be_closed) {
  for (const std::string closed : {"<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"}) {
    for (const auto& shape : {pes(3), pes(3, 3), pes(3, 2)}) {
      EXPECT_EQ(run_to_end({"sh", "-c", victim() + " hello " + closed}, shape).status, 0) << closed;
      EXPECT_EQ(run_to_end({"sh", "-c", headway_command() + " run " + victim() + " hello " + closed}, shape).status, 0)
          << closed;
    }
  }
  const Outcome outcome = run_to_end({"sh", "-c", victim() + " lines 10 50 <&- >&-"}, pes(3));
  expect_lines(outcome.errors, 3, 10, 50);
}

}  // namespace
}  // namespace headway::testing
