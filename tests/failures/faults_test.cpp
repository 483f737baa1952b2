// SPDX-License-Identifier: BSD-3-Clause
/// Faults by seed: processes are killed, stopped and slowed down at random moments under random loads.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <headway/base/random.hpp>
#include <map>
#include <regex>
#include <thread>

#include "session.hpp"

namespace headway::testing {
namespace {

constexpr double seconds_to_end = 2;  // the contract's bound
constexpr double stall_seconds = 1;

const std::vector<std::string> loads = {"traffic", "recursion", "large", "allreduce", "quiesce", "mixed"};

/// A random run, as a seed has it.
struct Case {
  explicit Case(std::uint64_t seed) : random(seed) {
    pes = random.between(2, 8);
    pes_per_process = random.one_in(2) ? 1 : random.between(1, pes);
    load = loads[random.below(loads.size())];
    launched = random.one_in(4);
  }
  std::size_t processes() const { return (pes + pes_per_process - 1) / pes_per_process; }
  Variables variables() const { return testing::pes(pes, pes_per_process); }
  std::vector<std::string> command(std::vector<std::string> words) const {
    words.insert(words.begin(), victim());
    if (launched) words.insert(words.begin(), {headway_command(), "run"});
    return words;
  }
  /// How messages name the PEs of a process.
  std::string name_of(std::size_t process) const {
    const std::size_t first = process * pes_per_process, last = std::min(first + pes_per_process, pes) - 1;
    if (first == last) return "PE " + std::to_string(first);
    return "the process of PE " + std::to_string(first) + " to PE " + std::to_string(last);
  }
  std::string text() const {
    return std::to_string(pes) + " PEs, " + std::to_string(pes_per_process) + " in a process, " + load +
           (launched ? ", launched" : "");
  }

  Random random;
  std::size_t pes, pes_per_process;
  std::string load;
  bool launched;
};

std::uint64_t first_seed() { return std::uint64_t(GTEST_FLAG_GET(random_seed)) * 1'000'000; }

void nap(Random& random, double seconds_max) {
  std::this_thread::sleep_for(std::chrono::duration<double>(random.fraction() * seconds_max));
}

void print(const char* what, std::vector<double> seconds) {
  if (seconds.empty()) return;
  std::ranges::sort(seconds);
  const auto at = [&](double part) { return 1e3 * seconds[std::size_t(part * double(seconds.size() - 1))]; };
  std::printf("%s: %zu times; median %.0f ms, 90%% %.0f ms, 99%% %.0f ms, slowest %.0f ms\n", what, seconds.size(),
              at(0.5), at(0.9), at(0.99), at(1));
}

TEST(Faults, a_process_that_is_killed_at_any_moment_ends_the_run_within_two_seconds_and_is_named) {
  std::vector<double> all, fair;
  std::map<std::string, int> causes;
  for (std::size_t round = 0; round < repeats(10); ++round) {
    Case c(first_seed() + round);
    SCOPED_TRACE("seed " + std::to_string(first_seed() + round) + ": " + c.text());
    Session session(c.command({"load", c.load, "none", "0"}), c.variables());
    const bool at_start = c.random.one_in(5);
    if (!at_start) {
      ASSERT_TRUE(session.wait_for_lines(c.pes)) << session.errors();
    }
    nap(c.random, at_start ? 0.02 : 0.15);
    std::vector<pid_t> children;
    while ((children = session.children()).empty()) ASSERT_EQ(session.wait(0), -1);
    const std::size_t process = c.random.below(children.size());
    const int signal = c.random.one_in(4) ? (c.random.one_in(2) ? SIGSEGV : SIGABRT) : SIGKILL;
    ASSERT_EQ(kill(children[process], signal), 0);

    const Session::Seconds seconds = session.until_gone(30);
    all.push_back(seconds.all);
    fair.push_back(seconds.fair);
    EXPECT_LT(seconds.fair, seconds_to_end) << seconds.all << " in all";
    ASSERT_EQ(session.wait(), 121) << session.errors();
    const std::string expected = " (pid " + std::to_string(children[process]) + ") was killed by signal " +
                                 std::to_string(signal) + " (" + strsignal(signal) + ")";
    // More is said where the system happens to be short of memory.
    EXPECT_TRUE(session.errors().starts_with("headway: " + c.name_of(process) + expected)) << session.errors();
    EXPECT_EQ(std::ranges::count(session.errors(), '\n'), 1) << session.errors();
    ++causes["signal " + std::to_string(signal) + (at_start ? " at the start" : " under load")];
    EXPECT_EQ(session.leftovers(), "");
    if (::testing::Test::HasFailure()) break;
  }
  print("from a kill to the end of the last process", all);
  print("less the wait for a processor", fair);
  for (const auto& [cause, count] : causes) std::printf("  %s: named %d times\n", cause.c_str(), count);
}

TEST(Faults, a_process_that_is_stopped_at_any_moment_ends_the_run_after_the_stall_time_and_is_named) {
  std::vector<double> all;
  for (std::size_t round = 0; round < std::max<std::size_t>(repeats(10) / 5, 3); ++round) {
    Case c(first_seed() + 500'000 + round);
    if (c.processes() == 1) c.pes_per_process = c.pes - 1;  // at least 1 other process must wait
    SCOPED_TRACE("seed " + std::to_string(first_seed() + 500'000 + round) + ": " + c.text());
    const Variables variables = c.variables() + Variables{{"HEADWAY_STALL", "1s"}, {"HEADWAY_BUDGET", "2M"}};
    Session session(c.command({"load", c.load, "none", "0"}), variables);
    ASSERT_TRUE(session.wait_for_lines(c.pes)) << session.errors();
    nap(c.random, 0.15);
    const std::vector<pid_t> children = session.children();
    ASSERT_EQ(children.size(), c.processes());
    const std::size_t process = c.random.below(children.size());
    ASSERT_EQ(kill(children[process], SIGSTOP), 0);

    const Session::Seconds seconds = session.until_gone(60);
    all.push_back(seconds.all);
    EXPECT_GT(seconds.all, 0.8 * stall_seconds);
    // On a full machine the supervisor looks less often, and it waits some seconds at most for addr2line.
    EXPECT_LT(seconds.fair, stall_seconds + 10);
    ASSERT_EQ(session.wait(), 122) << session.errors();
    const std::string page = session.errors();
    EXPECT_TRUE(
        std::regex_search(page, std::regex("\n  PE " + std::to_string(process * c.pes_per_process) + " \\(pid " +
                                           std::to_string(children[process]) + "\\) .* is stopped by a signal;")))
        << page;
    EXPECT_TRUE(std::regex_search(page, std::regex("\n  .* in the end for PE .*is stopped by a signal\n"))) << page;
    EXPECT_FALSE(std::regex_search(page, std::regex("a cycle"))) << page;
    EXPECT_EQ(session.leftovers(), "");
    if (::testing::Test::HasFailure()) break;
  }
  print("from a stop to the end of the last process, with a stall time of 1 s", all);
}

TEST(Faults, a_process_that_is_stopped_and_goes_on_before_the_stall_time_changes_nothing) {
  for (std::size_t round = 0; round < std::max<std::size_t>(repeats(10) / 10, 2); ++round) {
    Case c(first_seed() + 700'000 + round);
    SCOPED_TRACE("seed " + std::to_string(first_seed() + 700'000 + round) + ": " + c.text());
    Session session(c.command({"finite", c.load, "1"}), c.variables() + Variables{{"HEADWAY_STALL", "10s"}});
    ASSERT_TRUE(session.wait_for_lines(c.pes)) << session.errors();
    nap(c.random, 0.2);
    const std::vector<pid_t> children = session.children();
    const pid_t stopped = children[c.random.below(children.size())];
    ASSERT_EQ(kill(stopped, SIGSTOP), 0);
    nap(c.random, 0.7);
    ASSERT_EQ(kill(stopped, SIGCONT), 0);
    EXPECT_EQ(session.wait(120), 0) << session.errors();
    EXPECT_EQ(session.errors(), "");
    EXPECT_EQ(session.leftovers(), "");
  }
}

// --- slow PEs: the result is right, and what waits for them stays within bounds

/// The most that any process of the session held resident until its end, in bytes.
std::size_t watch_memory(Session& session, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  std::size_t most = 0;
  while (session.wait(0) < 0 && seconds_since(begin) < seconds) {
    for (const pid_t child : session.children()) {
      std::ifstream file("/proc/" + std::to_string(child) + "/statm");
      std::size_t size = 0, resident = 0;
      file >> size >> resident;
      most = std::max(most, resident * 4096);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return most;
}

// The memory that PEs share counts for each: 8 PEs with 2 MiB of frame memory, large messages in parts, and the
// program.
constexpr std::size_t resident_bytes_max = std::size_t(128) << 20;

const Variables small_budget = {{"HEADWAY_BUDGET", "2M"}, {"HEADWAY_SPILL", "64M"}, {"HEADWAY_STALL", "30s"}};

TEST(SlowPes, that_sleep_in_handlers_do_no_harm) {
  for (const char* load : {"traffic", "mixed"}) {
    Session session({victim(), "finite", load, "1", "slow"}, pes(5, 2) + small_budget);
    EXPECT_LT(watch_memory(session, 60), resident_bytes_max);
    EXPECT_EQ(session.wait(60), 0) << session.errors();
  }
}

TEST(SlowPes, of_low_priority_do_no_harm) {
  for (const char* load : {"traffic", "recursion"}) {
    Session session({headway_command(), "run", "sh", "-c",
                     "case $HEADWAY_LAUNCH in *:1) exec nice -n 19 " + victim() + " finite " + load +
                         " 1;; esac; exec " + victim() + " finite " + load + " 1"},
                    pes(5) + small_budget);
    EXPECT_LT(watch_memory(session, 90), resident_bytes_max);
    EXPECT_EQ(session.wait(90), 0) << session.errors();
  }
}

TEST(SlowPes, that_are_stopped_and_continued_ten_times_a_second_do_no_harm) {
  for (const char* load : {"traffic", "mixed"}) {
    Session session({victim(), "finite", load, "1"}, pes(4) + small_budget);
    ASSERT_TRUE(session.wait_for_lines(4)) << session.errors();
    const pid_t slow = session.children().back();
    for (int i = 0; i < 12 && session.wait(0) < 0; ++i) {
      kill(slow, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      kill(slow, SIGCONT);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_LT(watch_memory(session, 60), resident_bytes_max);
    EXPECT_EQ(session.wait(60), 0) << session.errors();
    EXPECT_EQ(session.leftovers(), "");
  }
}

}  // namespace
}  // namespace headway::testing
