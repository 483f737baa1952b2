// SPDX-License-Identifier: BSD-3-Clause
#include "child.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

namespace headway::tools {
namespace {

using std::chrono::seconds;

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 600 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return condition();
}

/// A shell that starts a process which outlives it, and says which.
struct Orphan {
  std::string file = ::testing::TempDir() + "headway-orphan-" + std::to_string(::getpid());
  std::vector<std::string> command = {"sh", "-c", "sleep 300 & echo $! > " + file + "; wait"};
  Orphan() { std::remove(file.c_str()); }
  ~Orphan() { std::remove(file.c_str()); }
  Orphan(const Orphan&) = delete;
  Orphan& operator=(const Orphan&) = delete;

  /// The state that the system shows: S sleeps, T is stopped, Z has ended and is not reaped; empty: no such process.
  std::string state() const {
    std::string pid;
    std::ifstream(file) >> pid;
    std::ifstream in("/proc/" + pid + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(in), {}};
    const std::size_t name_end = stat.rfind(')');
    return name_end == stat.npos ? "" : stat.substr(name_end + 2, 1);
  }
  bool comes_to(std::string_view wanted) const {
    return eventually([&] { return state() == wanted; });
  }
  bool was_started() const { return std::ifstream(file).peek() != std::ifstream::traits_type::eof(); }
  bool ends() const {
    EXPECT_TRUE(was_started());
    return eventually([&] { return state() == "" || state() == "Z"; });
  }
};

std::vector<std::string> tuned(const Orphan& orphan) {
  std::vector<std::string> command = {HEADWAY_COMMAND, "tune"};
  command.insert(command.end(), orphan.command.begin(), orphan.command.end());
  return command;
}

TEST(Child, a_time_limit_ends_what_a_shell_started_too) {
  const Orphan orphan;
  const ChildResult result = run_child(orphan.command, {}, seconds(1));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.status, 128 + SIGTERM);
  EXPECT_TRUE(orphan.ends());
}

TEST(Child, a_signal_to_the_command_ends_all_that_it_started) {
  const Orphan orphan;
  const ChildResult result = run_child(tuned(orphan), {}, seconds(1));  // which are two groups
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.status, 128 + SIGTERM);
  EXPECT_TRUE(orphan.ends());
}

/// `command` as a group of its own, as a shell starts it.
pid_t start(const std::vector<std::string>& command) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

TEST(Child, a_stopped_command_stops_what_it_started_until_it_goes_on) {
  const Orphan orphan;
  const pid_t command = start(tuned(orphan));
  EXPECT_TRUE(orphan.comes_to("S"));
  int status = 0;
  ::kill(command, SIGTSTP);
  EXPECT_EQ(::waitpid(command, &status, WUNTRACED), command);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(orphan.comes_to("T"));
  ::kill(command, SIGCONT);
  EXPECT_TRUE(orphan.comes_to("S"));
  ::kill(command, SIGTERM);
  EXPECT_EQ(::waitpid(command, &status, 0), command);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_TRUE(orphan.ends());
}

TEST(Child, a_program_that_closed_its_output_is_ended_as_well) {
  const ChildResult result = run_child({"sh", "-c", "exec sleep 300 > /dev/null 2>&1"}, {}, seconds(1));
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.status, 128 + SIGTERM);
}

TEST(Child, the_end_of_what_it_prints_is_kept_where_not_all_is) {
  const std::vector<std::string> command = {"sh", "-c", "yes | head -c 1000000; echo end; echo why >&2; exit 3"};
  const ChildResult some = run_child(command, {}, seconds(60), 1000), all = run_child(command, {}, seconds(60));
  EXPECT_EQ(some.status, 3);
  EXPECT_EQ(some.output.size(), 1000u);
  EXPECT_TRUE(some.output.ends_with("y\nend\n"));
  EXPECT_EQ(some.errors, "why\n");
  EXPECT_EQ(all.output.size(), 1'000'004u);
}

}  // namespace
}  // namespace headway::tools
