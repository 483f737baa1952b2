// SPDX-License-Identifier: BSD-3-Clause
/// Runs with PEs that a launcher starts. TEST_LAUNCHER names a launcher, for example `mpirun --oversubscribe`. The test
/// then starts itself under it, once for each of its runs. The started test goes to the same position and the same run,
/// with the results of the runs before, and its processes are the PEs' processes. The memory that the PEs share with
/// the test belongs to the test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <sstream>
#include <string>
#include <vector>

namespace headway::testing {

/// The position of the running test.
struct Position {
  const ::testing::TestInfo* test = nullptr;
  std::vector<int> statuses;  // of its runs so far
  std::vector<int> memories;  // files in memory that it shares, as descriptors of `owner`; first those of all tests
  std::size_t mapped = 0;     // of these, in a process that was launched
  std::size_t of_all = 0;     // of these, made before any test
  long owner = getpid();      // the test's process
  int output = -1;            // standard output, while nothing that the test has already said goes there

  static Position& now() {
    static Position position;
    if (const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info(); test != position.test) {
      if (position.test == nullptr) position.of_all = std::max(position.memories.size(), position.mapped);
      for (; position.memories.size() > position.of_all; position.memories.pop_back()) close(position.memories.back());
      position.mapped = position.of_all;
      position.statuses.clear();
      position.test = test;
    }
    return position;
  }
};

inline bool launches() { return std::getenv("TEST_LAUNCHER") != nullptr; }

/// In a process that a launcher has started for a run: how far the test was when it did so.
inline const Position* launched() {
  static const Position* const position = []() -> const Position* {
    const char* const text = std::getenv("TEST_WAY");
    if (text == nullptr) return nullptr;
    auto* const result = new Position;
    std::istringstream in(text);
    std::size_t runs = 0;
    in >> result->owner >> runs;
    result->statuses.resize(runs);
    for (int& status : result->statuses) in >> status;
    for (int file; in >> file;) result->memories.push_back(file);
    return result;
  }();
  return position;
}

/// A file of the test's, for memory that it shares with PEs that a launcher starts. Throws std::bad_alloc.
inline int shared_file(std::size_t bytes) {
  Position& position = Position::now();
  if (const Position* const there = launched()) {
    if (position.mapped >= there->memories.size()) throw std::bad_alloc();
    const std::string path =
        "/proc/" + std::to_string(there->owner) + "/fd/" + std::to_string(there->memories[position.mapped++]);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) throw std::bad_alloc();
    return file;
  }
  const int file = memfd_create("headway test", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(bytes)) != 0) throw std::bad_alloc();
  position.memories.push_back(file);
  return file;
}

/// Starts the test below the launcher, up to here, and returns the status of `processes` processes; in these, calls
/// run() and ends.
template <class Run>
int launch_run(std::size_t processes, Run run) {
  Position& position = Position::now();
  if (const Position* const there = launched()) {
    if (position.output < 0) {
      std::fflush(stdout);
      position.output = dup(STDOUT_FILENO);
      if (std::freopen("/dev/null", "w", stdout) == nullptr) std::abort();
    }
    if (position.statuses.size() < there->statuses.size()) {
      position.statuses.push_back(there->statuses[position.statuses.size()]);
      return position.statuses.back();
    }
    std::fflush(stdout);
    dup2(position.output, STDOUT_FILENO);
    const int status = run();
    std::fflush(stdout);
    std::exit(status);
  }
  std::ostringstream text;
  text << position.owner << ' ' << position.statuses.size();
  for (const int status : position.statuses) text << ' ' << status;
  for (const int file : position.memories) text << ' ' << file;
  setenv("TEST_WAY", text.str().c_str(), 1);
  std::ostringstream command;
  command << std::getenv("TEST_LAUNCHER") << " -n " << processes << " '"
          << std::filesystem::read_symlink("/proc/self/exe").string()
          << "' --gtest_brief=1 '--gtest_filter=" << position.test->test_suite_name() << '.' << position.test->name()
          << '\'';
  std::fflush(stdout);
  const int ended = std::system(command.str().c_str());
  unsetenv("TEST_WAY");
  position.statuses.push_back(WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended));
  return position.statuses.back();
}

}  // namespace headway::testing
