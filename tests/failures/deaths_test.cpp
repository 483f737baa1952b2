// SPDX-License-Identifier: BSD-3-Clause
/// Whatever becomes of a PE or of the supervisor: the run ends within two seconds, says what happened, leaves nothing.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <random>
#include <regex>
#include <thread>

#include "session.hpp"

namespace headway::testing {
namespace {

constexpr double seconds_to_end = 2;  // the contract's bound

struct Shape {
  const char* name;
  std::size_t pes, pes_per_process;
  std::size_t processes() const { return (pes + pes_per_process - 1) / pes_per_process; }
  Variables variables() const { return testing::pes(pes, pes_per_process); }
};

constexpr Shape shapes[] = {{"processes", 4, 1}, {"threads", 4, 4}, {"mixed", 5, 2}};

std::mt19937_64& random() {
  static std::mt19937_64 engine(
      static_cast<std::mt19937_64::result_type>(::testing::UnitTest::GetInstance()->random_seed()));
  return engine;
}

/// How the message names the PEs of the process that holds `pe`.
std::string name_of(const Shape& shape, std::size_t pe) {
  const std::size_t first = pe / shape.pes_per_process * shape.pes_per_process;
  const std::size_t last = std::min(first + shape.pes_per_process, shape.pes) - 1;
  if (first == last) return "PE " + std::to_string(first);
  return "the process of PE " + std::to_string(first) + " to PE " + std::to_string(last);
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// --- kill -9 of a PE

class KilledPe : public ::testing::TestWithParam<std::tuple<Shape, const char*>> {};

TEST_P(KilledPe, ends_the_run_within_two_seconds_and_is_named) {
  const auto& [shape, moment] = GetParam();
  const bool at_start = moment == std::string("start");
  double slowest = 0;
  for (std::size_t round = 0; round < repeats(2); ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(GTEST_FLAG_GET(random_seed)));
    std::vector<std::string> command = {victim(), "load", at_start ? "traffic" : moment, "none", "0"};
    if (round % 2 == 1) command.insert(command.begin(), {headway_command(), "run"});
    Session session(command, shape.variables());
    if (!at_start) {
      ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.errors();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random()() % (at_start ? 8'000 : 100'000)));
    std::vector<pid_t> children;
    while ((children = session.children()).empty()) ASSERT_EQ(session.wait(0), -1);
    const pid_t killed = children[random()() % children.size()];
    ASSERT_EQ(kill(killed, SIGKILL), 0);

    const double seconds = session.seconds_until_gone();
    slowest = std::max(slowest, seconds);
    ASSERT_LT(seconds, seconds_to_end);
    ASSERT_EQ(session.wait(), 121) << session.errors();
    std::smatch said;
    const std::string errors = session.errors();
    ASSERT_TRUE(std::regex_match(
        errors, said, std::regex("headway: (.*PE (\\d+)) \\(pid (\\d+)\\) was killed by signal 9 \\(Killed\\)\n")))
        << errors;
    EXPECT_EQ(said[3], std::to_string(killed));
    const std::string who = "PE (\\d+) is pid " + std::to_string(killed) + "\n";
    std::smatch known;
    if (const std::string output = session.output(); std::regex_search(output, known, std::regex(who))) {
      EXPECT_EQ(said[1], name_of(shape, std::stoul(known[1])));
    }
    EXPECT_EQ(session.leftovers(), "");
  }
  RecordProperty("slowest_end_ms", int(slowest * 1000));
  std::printf("slowest end: %.0f ms\n", slowest * 1000);
}

INSTANTIATE_TEST_SUITE_P(
    , KilledPe,
    ::testing::Combine(::testing::ValuesIn(shapes),
                       ::testing::Values("traffic", "quiesce", "allreduce", "collectives", "start")),
    [](const auto& test) { return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param); });

// --- other ways to go

struct Failure {
  const char* name;
  const char* whole_process;  // of the process: how the line ends. nullptr: it is the PE's
  const char* thrown;         // the line's words for the exception of the program or handler
};

constexpr Failure failures[] = {
    {"_exit", "exited with status 7 before run() had finished", nullptr},
    {"exit", "exited with status 7 before run() had finished", nullptr},
    {"exit0", "exited with status 0 before run() had finished", nullptr},
    {"abort", "was killed by signal 6 (Aborted)", nullptr},
    {"terminate", "was killed by signal 6 (Aborted)", nullptr},
    {"segmentation_fault", "was killed by signal 11 (Segmentation fault)", nullptr},
    {"stack_overflow", "was killed by signal 11 (Segmentation fault)", nullptr},
    {"kill", "was killed by signal 9 (Killed)", nullptr},
    {"throw", nullptr, "threw: the cat sat on the keyboard"},
    {"throw_int", nullptr, "threw: something that is no std::exception"},
    {"bad_alloc", nullptr, "threw: std::bad_alloc"},
};

class FailingPe : public ::testing::TestWithParam<std::tuple<Shape, Failure>> {};

TEST_P(FailingPe, ends_the_run_with_121_and_one_line_that_says_who_and_why) {
  const auto& [shape, failure] = GetParam();
  for (const bool in_handler : {false, true}) {
    SCOPED_TRACE(in_handler ? "in a handler" : "in the callable");
    const std::size_t pe = 2, source = 3;
    Session session({victim(), "load", "traffic", failure.name, std::to_string(pe), in_handler ? "in_handler" : ""},
                    shape.variables());
    ASSERT_TRUE(session.wait_for_lines(shape.pes + 1)) << session.errors();
    EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
    EXPECT_EQ(session.wait(), 121);
    const std::string errors = session.errors(), output = session.output();

    std::smatch known;
    ASSERT_TRUE(std::regex_search(output, known, std::regex("PE 2 is pid (\\d+)\n"))) << output;
    const std::string who = known[1].str();
    std::vector<std::string> parts;  // of the line, in their order
    if (failure.whole_process != nullptr) {
      parts = {name_of(shape, pe) + " (pid " + who + ") " + failure.whole_process + "\n"};
    } else if (in_handler) {
      // For a thrown value that is no exception, the line has no colon.
      std::string thrown = failure.thrown;
      if (failure.name == std::string("throw_int")) thrown.erase(thrown.find(':'), 1);
      parts = {"PE 2 (pid " + who + "): the handler of aggregator number ", " 'wrong' <int, 1d>",
               " for a message in a frame from PE " + std::to_string(source) + " " + thrown + "\n"};
    } else {
      parts = {"PE 2 (pid " + who + "): the program " + failure.thrown + "\n"};
    }
    std::size_t at = errors.find("headway: " + parts.front());
    EXPECT_NE(at, errors.npos) << errors << "expected: " << parts.front();
    for (const std::string& part : parts) {
      if (at == errors.npos) break;
      at = errors.find(part, at);
      EXPECT_NE(at, errors.npos) << errors << "expected: " << part;
    }
    EXPECT_EQ(count_of(errors, "headway: "), 1U) << errors;
    EXPECT_EQ(session.leftovers(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(, FailingPe, ::testing::Combine(::testing::ValuesIn(shapes), ::testing::ValuesIn(failures)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name;
                         });

TEST(Deaths, exit_in_one_thread_of_a_process_is_named_though_the_other_threads_work) {
  for (std::size_t round = 0; round < repeats(5); ++round) {
    const Outcome outcome = run_to_end({victim(), "exit_race"}, pes(4, 4));
    EXPECT_EQ(outcome.status, 121);
    EXPECT_NE(outcome.errors.find("exited with status 7"), outcome.errors.npos) << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Deaths, what_a_handler_threw_ends_the_run_also_when_the_program_swallows_it) {
  for (const char* then : {"end", "loop", "sleep", "exit"}) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(std::string(then) + ", " + shape.name);
      Session session({victim(), "swallow", then}, shape.variables());
      EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
      EXPECT_EQ(session.wait(), 121);
      EXPECT_TRUE(std::regex_search(session.errors(), std::regex("the handler of aggregator number \\d+ 'swallowed'")))
          << session.errors();
      EXPECT_NE(session.errors().find("threw: thrown by a handler"), std::string::npos) << session.errors();
    }
  }
}

TEST(Deaths, what_a_handler_threw_ends_the_run_also_when_unwinding_does_not_end) {
  Session session({victim(), "stuck_unwinding"}, pes(3));
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_EQ(session.wait(), 121);
  EXPECT_NE(session.errors().find("threw: thrown by a handler"), std::string::npos) << session.errors();
}

TEST(Deaths, a_pe_that_executes_another_program_is_named) {
  const Outcome outcome = run_to_end({victim(), "executes"}, pes(3));
  EXPECT_EQ(outcome.status, 121);
  EXPECT_NE(outcome.errors.find("PE 0 (pid "), outcome.errors.npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("exited with status 0 before run() had finished"), outcome.errors.npos)
      << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
}

TEST(Deaths, one_is_noticed_under_a_script_that_goes_on) {
  for (const Shape& shape : shapes) {
    for (const std::string after : {"true", "sleep 60"}) {
      SCOPED_TRACE(std::string(shape.name) + ", " + after);
      Session session({headway_command(), "run", "sh", "-c", victim() + " load quiesce none 0; " + after},
                      shape.variables());
      ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.errors();
      const std::string output = session.output();
      std::smatch known;
      ASSERT_TRUE(std::regex_search(output, known, std::regex("PE 2 is pid (\\d+)\n"))) << output;
      ASSERT_EQ(kill(std::stoi(known[1]), SIGKILL), 0);
      EXPECT_EQ(session.wait(seconds_to_end), 121);
      EXPECT_NE(session.errors().find(name_of(shape, 2) + " (pid " + known[1].str() + ", started by pid "),
                std::string::npos)
          << session.errors();
    }
  }
}

TEST(Deaths, one_is_noticed_while_another_pe_prints_without_end) {
  Session session({"sh", "-c", victim() + " prints_for_ever | cat > /dev/null"}, pes(2));
  const auto begin = std::chrono::steady_clock::now();
  const std::regex who("PE 1 is pid (\\d+)\n");
  std::smatch known;
  std::string errors;
  while (!std::regex_search(errors = session.errors(), known, who)) ASSERT_LT(seconds_since(begin), 60);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ASSERT_EQ(kill(std::stoi(known[1]), SIGKILL), 0);
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_NE(session.errors().find("PE 1 (pid " + known[1].str() + ") was killed by signal 9"), std::string::npos);
}

TEST(Deaths, one_is_noticed_while_nobody_reads_the_output) {
  Session session({victim(), "prints_for_ever"}, pes(2), {.output_blocked = true});
  std::vector<pid_t> children;
  while ((children = session.children()).size() != 2) ASSERT_EQ(session.wait(0), -1);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_EQ(kill(children[1], SIGKILL), 0);
  const auto begin = std::chrono::steady_clock::now();
  while (!session.children().empty() && seconds_since(begin) < 5) continue;
  EXPECT_LT(seconds_since(begin), seconds_to_end);
  EXPECT_NE(session.errors().find("was killed by signal 9"), std::string::npos) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGTERM), 0);  // the supervisor still has words for its reader
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_EQ(session.wait(), 128 + SIGTERM);
}

TEST(Deaths, one_of_many_pes_on_few_cores_ends_the_run_within_two_seconds) {
  for (const auto& [n, per_process] : {std::pair(64, 1), {100, 7}}) {
    Session session({victim(), "load", "traffic", "none", "0"}, pes(std::size_t(n), std::size_t(per_process)));
    ASSERT_TRUE(session.wait_for_lines(std::size_t(n), 60)) << session.errors();
    const std::vector<pid_t> children = session.children();
    ASSERT_EQ(kill(children[children.size() / 2], SIGKILL), 0);
    EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
    EXPECT_EQ(session.wait(), 121);
    EXPECT_EQ(count_of(session.errors(), "headway: "), 1U) << session.errors();
    EXPECT_EQ(session.leftovers(), "");
  }
}

TEST(Deaths, of_several_pes_at_once_end_the_run_and_one_is_named) {
  Session session({victim(), "load", "quiesce", "none", "0"}, pes(5));
  ASSERT_TRUE(session.wait_for_lines(5)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGSTOP), 0);  // the supervisor does not see one after the other
  for (const pid_t child : session.children()) ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(kill(session.pid(), SIGCONT), 0);
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_EQ(session.wait(), 121);
  EXPECT_NE(session.errors().find("was killed by signal 9"), std::string::npos) << session.errors();
}

TEST(Deaths, they_are_noticed_on_a_system_without_pidfd) {
  EXPECT_EQ(run_to_end({victim(), "without_pidfd"}, pes(3)).status, 0);
  Session session({victim(), "without_pidfd", "for_ever"}, pes(3));
  ASSERT_TRUE(session.wait_for_lines(3));
  ASSERT_EQ(kill(session.children()[1], SIGKILL), 0);
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_EQ(session.wait(), 121);
  EXPECT_NE(session.errors().find("was killed by signal 9"), std::string::npos) << session.errors();
}

TEST(Deaths, what_a_pe_printed_before_it_died_is_kept) {
  for (const Shape& shape : shapes) {
    const Outcome outcome = run_to_end({victim(), "prints_and_dies"}, shape.variables());
    EXPECT_EQ(outcome.status, 121);
    EXPECT_EQ(count_of(outcome.output, "result "), 1000U);
    EXPECT_TRUE(outcome.output.ends_with("last words")) << outcome.output;
  }
}

// --- kill -9 of the supervisor

class KilledSupervisor : public ::testing::TestWithParam<Shape> {};

TEST_P(KilledSupervisor, takes_all_pes_with_it_within_two_seconds) {
  const Shape& shape = GetParam();
  for (const char* moment : {"traffic", "quiesce", "allreduce"}) {
    for (std::size_t round = 0; round < repeats(1); ++round) {
      SCOPED_TRACE(moment);
      Session session({victim(), "load", moment, "none", "0"}, shape.variables());
      ASSERT_TRUE(session.wait_for_lines(shape.pes));
      ASSERT_EQ(kill(session.pid(), SIGKILL), 0);
      EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
      EXPECT_EQ(session.leftovers(), "");
    }
  }
}

TEST_P(KilledSupervisor, takes_all_with_it_at_any_moment_of_the_start) {
  const Shape& shape = GetParam();
  for (const std::string launcher : {"", "headway run"}) {
    for (std::size_t round = 0; round < repeats(2); ++round) {
      std::vector<std::string> command = {victim(), "load", "traffic", "none", "0"};
      if (!launcher.empty()) command.insert(command.begin(), {headway_command(), "run"});
      Session session(command, shape.variables());
      std::this_thread::sleep_for(std::chrono::microseconds(random()() % 15'000));
      ASSERT_EQ(kill(session.pid(), SIGKILL), 0);
      EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
      EXPECT_EQ(session.leftovers(), "");
    }
  }
}

TEST_P(KilledSupervisor, takes_pes_with_it_that_compute_under_other_programs) {
  const Shape& shape = GetParam();
  const std::string nested = "sh -c '" + victim() + " computes_for_ever; true'; true";
  Session session({headway_command(), "run", "sh", "-c", nested}, shape.variables());
  ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGKILL), 0);
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
}

TEST_P(KilledSupervisor, by_a_pe_even) {
  const Shape& shape = GetParam();
  Session session({victim(), "kills_parent"}, shape.variables());
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_EQ(session.wait(), 128 + SIGKILL);
  EXPECT_EQ(session.leftovers(), "");
}

INSTANTIATE_TEST_SUITE_P(, KilledSupervisor, ::testing::ValuesIn(shapes),
                         [](const auto& test) { return test.param.name; });

// --- signals to the run

class Interrupted : public ::testing::TestWithParam<Shape> {};

TEST_P(Interrupted, by_ctrl_c_all_end_and_no_death_is_reported) {
  if (!has_terminals()) GTEST_SKIP() << "no terminal can be made here";
  const Shape& shape = GetParam();
  for (const std::string launcher : {"", "headway run"}) {
    std::vector<std::string> command = {victim(), "load", "traffic", "none", "0"};
    if (!launcher.empty()) command.insert(command.begin(), {headway_command(), "run"});
    Session session(command, shape.variables(), {.terminal = true});
    ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.output();
    session.type("\x03");
    EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
    EXPECT_EQ(session.wait(), 128 + SIGINT);
    EXPECT_EQ(session.output().find("headway:"), std::string::npos) << session.output();
    EXPECT_EQ(session.leftovers(), "");
  }
}

TEST_P(Interrupted, by_a_signal_to_the_group_or_to_the_supervisor_all_end_and_no_death_is_reported) {
  const Shape& shape = GetParam();
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    for (const bool group : {true, false}) {
      SCOPED_TRACE(std::string(strsignal(signal)) + (group ? " to the group" : " to the supervisor"));
      Session session({victim(), "load", "quiesce", "none", "0"}, shape.variables());
      ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.errors();
      ASSERT_EQ(kill(group ? -session.pid() : session.pid(), signal), 0);
      EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
      EXPECT_EQ(session.wait(), 128 + signal);
      EXPECT_EQ(session.errors(), "");
      EXPECT_EQ(session.leftovers(), "");
    }
  }
  EXPECT_EQ(run_to_end({victim(), "hello"}, shape.variables()).status, 0);
}

TEST_P(Interrupted, at_any_moment_of_the_start_all_end_and_no_death_is_reported) {
  const Shape& shape = GetParam();
  for (const std::string launcher : {"", "headway run"}) {
    for (const bool group : {true, false}) {
      for (std::size_t round = 0; round < repeats(2); ++round) {
        std::vector<std::string> command = {victim(), "load", "traffic", "none", "0"};
        if (!launcher.empty()) command.insert(command.begin(), {headway_command(), "run"});
        Session session(command, shape.variables());
        std::this_thread::sleep_for(std::chrono::microseconds(random()() % 15'000));
        ASSERT_EQ(kill(group ? -session.pid() : session.pid(), SIGTERM), 0);
        EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
        EXPECT_EQ(session.wait(), 128 + SIGTERM);
        EXPECT_EQ(session.errors(), "");
        EXPECT_EQ(session.leftovers(), "");
      }
    }
  }
}

TEST_P(Interrupted, pes_that_ignore_the_signal_end_too) {
  const Shape& shape = GetParam();
  Session session({victim(), "ignores_termination"}, shape.variables());
  ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGTERM), 0);
  EXPECT_LT(session.seconds_until_gone(), seconds_to_end);
  EXPECT_EQ(session.wait(), 128 + SIGTERM);
  EXPECT_EQ(session.errors(), "");
}

TEST_P(Interrupted, pes_with_a_handler_of_their_own_may_clean_up) {
  const Shape& shape = GetParam();
  Session session({victim(), "cleans_up"}, shape.variables());
  ASSERT_TRUE(session.wait_for_lines(shape.pes)) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGTERM), 0);
  EXPECT_EQ(session.wait(), 128 + SIGTERM);
  EXPECT_EQ(count_of(session.output(), "has cleaned up"), shape.pes) << session.output();
  EXPECT_NE(session.output().find("run returned 143"), std::string::npos) << session.output();
}

INSTANTIATE_TEST_SUITE_P(, Interrupted, ::testing::ValuesIn(shapes), [](const auto& test) { return test.param.name; });

TEST(Deaths, a_signal_that_the_caller_ignores_does_not_end_the_run) {
  Session session({"sh", "-c", "trap '' HUP INT; exec " + victim() + " load traffic none 0"}, pes(2));
  ASSERT_TRUE(session.wait_for_lines(2)) << session.errors();
  ASSERT_EQ(kill(-session.pid(), SIGHUP), 0);
  ASSERT_EQ(kill(session.pid(), SIGINT), 0);
  EXPECT_EQ(session.wait(1.5), -1);
  ASSERT_EQ(kill(session.pid(), SIGTERM), 0);
  EXPECT_EQ(session.wait(), 128 + SIGTERM);
}

}  // namespace
}  // namespace headway::testing
