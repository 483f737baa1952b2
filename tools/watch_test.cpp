// SPDX-License-Identifier: BSD-3-Clause
/// `headway watch` on programs that run: its views, and the lines with which it refuses.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <record/record.hpp>
#include <sstream>
#include <thread>

#include "run_command.hpp"

namespace headway::tools {
namespace {

using bench::Json;

/// The program under a name of this test process, since others may run it at the same time.
class NamedProgram {
 public:
  NamedProgram() { std::filesystem::copy_file(WATCHED_PROGRAM, path_); }
  NamedProgram(const NamedProgram&) = delete;
  NamedProgram& operator=(const NamedProgram&) = delete;
  ~NamedProgram() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  std::string path() const { return path_; }
  std::string name() const { return path_.filename(); }

 private:
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("headway-watched-" + std::to_string(getpid()));
};
const NamedProgram program_file;

/// A program that is watched. It ends with this object.
class Watched {
 public:
  Watched(std::vector<std::string> arguments, const std::vector<Variable>& environment) {
    arguments.insert(arguments.begin(), program_file.path());
    pid_ = fork();
    if (pid_ != 0) {
      wait_until_it_runs();
      return;
    }
    for (const Variable& variable : environment) setenv(variable.name.c_str(), variable.value.c_str(), 1);
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    execv(words[0], words.data());
    _exit(127);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::string pid() const { return std::to_string(pid_); }

 private:
  void wait_until_it_runs() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < end) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator("/proc/" + pid() + "/fd", error)) {
        if (std::filesystem::read_symlink(entry.path(), error).native() == "/memfd:headway (deleted)") return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    FAIL() << "the program does not start";
  }
  pid_t pid_ = -1;
};

std::vector<Json> views_of(const ChildResult& result) {
  std::vector<Json> views;
  std::istringstream lines(result.output);
  for (std::string line; std::getline(lines, line);) views.push_back(Json::parse(line));
  return views;
}

/// A shell script for --agent.
class Agent {
 public:
  explicit Agent(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("headway-watch-agent-" + std::to_string(getpid()))) {
    std::ofstream(path_) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Two PEs that are processes, threads of one, and simulated.
const std::vector<Variable> processes = {{"HEADWAY_PES", "2"}};
const std::vector<Variable> threads = {{"HEADWAY_PES", "2"}, {"HEADWAY_PES_PER_PROCESS", "2"}};

void expect_one_computes_and_one_waits(const std::vector<Variable>& environment) {
  const Watched program({"busy", "60"}, environment);
  const ChildResult result = headway({"watch", program.pid(), "--json", "--interval", "1", "--count", "3"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const std::vector<Json> views = views_of(result);
  ASSERT_EQ(views.size(), 3U) << result.output;
  const Json& pes = views.back()["pes"];
  ASSERT_EQ(pes.size(), 2U);
  EXPECT_EQ(views.back()["program"], program_file.path());
  EXPECT_FALSE(views.back()["simulated"].get<bool>());
  EXPECT_GT(pes[0]["messages_per_s"], 1000);
  EXPECT_GT(pes[0]["frames_per_s"], 1);
  EXPECT_GT(pes[0]["messages_per_frame"], 1);
  EXPECT_LT(pes[0]["waiting"], 0.3);
  EXPECT_GT(pes[1]["handled_per_s"], 1000);
  EXPECT_GT(pes[1]["waiting"], 0.6);
  EXPECT_GT(pes[0]["resident_bytes"], 100'000);
  EXPECT_GT(pes[0]["messages"], views.front()["pes"][0]["messages"]);
  EXPECT_EQ(pes[1]["state"], "waits in quiesce()");
}

TEST(Watch, shows_which_process_computes_and_which_waits) { expect_one_computes_and_one_waits(processes); }
TEST(Watch, shows_which_thread_computes_and_which_waits) { expect_one_computes_and_one_waits(threads); }

TEST(Watch, shows_frames_that_are_spilled) {
  const Watched program({"spill", "10"}, {{"HEADWAY_PES", "2"}, {"HEADWAY_BUDGET", "1M"}});
  const ChildResult result = headway({"watch", program.pid(), "--json", "--interval", "1", "--count", "2"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json pe = views_of(result).back()["pes"][0];
  EXPECT_GT(pe["spilled_frames"], 0);
  EXPECT_GT(pe["spill_bytes"], 0);
  EXPECT_EQ(pe["budget_bytes"], 1 << 20);
}

TEST(Watch, shows_that_a_pe_is_outside_the_library_and_does_not_answer) {
  const Watched program({"outside", "60"}, processes);
  const ChildResult result = headway({"watch", program.pid(), "--json", "--interval", "0.5", "--count", "2"});
  ASSERT_EQ(result.status, 0) << result.errors;
  const Json pe = views_of(result).back()["pes"][0];
  EXPECT_EQ(pe["state"], "is outside the library");
  EXPECT_TRUE(pe["messages_per_s"].is_null());
  EXPECT_LT(pe["waiting"], 0.3);
}

TEST(Watch, prints_tables_without_escape_codes_where_the_output_is_no_terminal) {
  const Watched program({"busy", "60"}, processes);
  const ChildResult result = headway({"watch", program.pid(), "--interval", "0.3", "--count", "2"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("messages/s"), std::string::npos) << result.output;
  EXPECT_EQ(result.output.find('\033'), std::string::npos);
}

TEST(Watch, ends_with_the_program) {
  const Watched program({"outside", "2"}, processes);
  const ChildResult result = headway({"watch", program.pid(), "--json", "--interval", "0.5"});
  EXPECT_EQ(result.status, 0);
  EXPECT_NE(result.errors.find(program_file.name() + " has ended"), std::string::npos) << result.errors;
}

TEST(Watch, lists_the_runs_if_there_are_several) {
  const Watched first({"busy", "60"}, processes), second({"busy", "60"}, threads);
  const ChildResult result = headway({"watch", "--program", program_file.name()});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("2 programs run here"), std::string::npos) << result.errors;
  for (const std::string& pid : {first.pid(), second.pid()})
    EXPECT_NE(result.errors.find(pid), std::string::npos) << result.errors;
  const ChildResult none = headway({"watch", "--program", "no_such_program"});
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.errors.find("'no_such_program'"), std::string::npos) << none.errors;
}

TEST(Watch, refuses_a_process_that_is_not_of_headway) {
  const ChildResult result = headway({"watch", std::to_string(getpid())});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.errors.find("has no part in a run of Headway"), std::string::npos) << result.errors;
}

TEST(Watch, merges_the_views_of_hosts_and_names_one_that_fails) {
  const Watched program({"busy", "60"}, processes);
  const Agent agent("test $1 != down || { echo no route to $1 >&2; exit 255; }\nexec sh -c \"$2\"\n");
  const ChildResult result = headway({"watch", "--hosts", "a,down,b", "--agent", agent.path(), "--program",
                                      program_file.path(), "--json", "--interval", "0.5", "--count", "2"});
  EXPECT_NE(result.errors.find("host down: no route to down"), std::string::npos) << result.errors;
  const std::vector<Json> views = views_of(result);
  ASSERT_EQ(views.size(), 2U) << result.output << result.errors;
  const Json& pes = views.back()["pes"];
  ASSERT_EQ(pes.size(), 4U);  // of the one program, which both see
  EXPECT_EQ(pes[0]["host"], "a");
  EXPECT_EQ(pes[1]["host"], "b");
  EXPECT_EQ(pes[1]["pe"], 0);
  EXPECT_EQ(pes[3]["pe"], 1);
  EXPECT_EQ(result.status, 1);
}

}  // namespace
}  // namespace headway::tools
