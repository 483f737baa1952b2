// SPDX-License-Identifier: BSD-3-Clause
/// Resources that are missing or forbidden: each run ends with its result, or names the missing resource and its
/// remedy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "session.hpp"

namespace headway::testing {
namespace {

namespace fs = std::filesystem;

bool contains(const std::string& text, const std::string& expression) {
  return std::regex_search(text, std::regex(expression));
}

const std::string works = " finite mixed 0.3";

/// A shell script in a mount namespace of its own.
std::vector<std::string> with_mounts(const std::string& script) { return {"unshare", "--mount", "sh", "-ec", script}; }

bool may_mount() { return run_to_end(with_mounts("mount -t tmpfs none /mnt")).status == 0; }

/// The words that execute a command as a user without other processes, with limits on processes and threads.
std::vector<std::string> as_user_with(int processes, const std::vector<std::string>& command) {
  const std::string limit = std::to_string(processes);
  std::vector<std::string> words = {"prlimit", "--nproc=" + limit + ":" + limit,         "setpriv",
                                    "--reuid", "71" + std::to_string(getpid() % 10'000), "--clear-groups"};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

TEST(Processes, that_may_not_be_started_are_refused_in_one_line_that_names_the_limit) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user who has no other process";
  if (run_to_end(as_user_with(100, {victim(), "hello"}), pes(2)).status != 0) {
    GTEST_SKIP() << "another user cannot be, or cannot run the program";
  }
  const Outcome outcome = run_to_end(as_user_with(20, {victim(), "hello"}), pes(40));
  EXPECT_EQ(outcome.status, 120);
  EXPECT_TRUE(contains(outcome.errors,
                       "^headway: fork of process \\d+ of 40 \\(ulimit -u allows this user 20 processes and threads; .*"
                       "use fewer PEs\\): Resource temporarily unavailable"))
      << outcome.errors;
  EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
}

TEST(Threads, that_may_not_be_started_end_the_run_with_the_pe_and_the_limits) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become a user who has no other process";
  if (run_to_end(as_user_with(100, {victim(), "hello"}), pes(2, 2)).status != 0) {
    GTEST_SKIP() << "another user cannot be, or cannot run the program";
  }
  const Outcome outcome = run_to_end(as_user_with(20, {victim(), "hello"}), pes(40, 40));
  EXPECT_EQ(outcome.status, 121);
  EXPECT_TRUE(contains(outcome.errors,
                       "^headway: PE \\d+ \\(pid \\d+\\): its thread cannot be made: pthread_create: "
                       "Resource temporarily unavailable; ulimit -u, -v or -s, or a container's pids.max"))
      << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
}

/// A control group of cgroup v1 or v2 with limited memory; gone with the object.
class MemoryGroup {
 public:
  explicit MemoryGroup(const std::string& bytes) {
    for (const char* root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      folder_ = fs::path(root) / ("headway-test-" + std::to_string(getpid()));
      std::error_code error;
      if (!fs::create_directory(folder_, error)) continue;
      const bool v1 = fs::exists(folder_ / "memory.limit_in_bytes");
      std::ofstream limit(folder_ / (v1 ? "memory.limit_in_bytes" : "memory.max"));
      if (fs::exists(folder_ / (v1 ? "memory.limit_in_bytes" : "memory.max")) && limit << bytes << std::flush) return;
      fs::remove(folder_, error);
    }
    folder_.clear();
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  ~MemoryGroup() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove(folder_, ignored);
  }
  bool exists() const { return !folder_.empty(); }
  std::vector<std::string> command(const std::string& script) const {
    return {"sh", "-c", "echo $$ > " + (folder_ / "cgroup.procs").string() + " && exec " + script};
  }

 private:
  fs::path folder_;
};

TEST(Memory, that_the_container_does_not_have_ends_the_run_and_is_said_to_be_missing) {
  const MemoryGroup group("16M");
  if (!group.exists()) GTEST_SKIP() << "no control group for memory can be made here";
  const Outcome outcome = run_to_end(group.command(victim() + " load large none 0"), pes(4));
  if (outcome.status == 128 + 9) GTEST_SKIP() << "the supervisor itself was chosen to be killed";
  EXPECT_EQ(outcome.status, 121) << outcome.errors;
  EXPECT_TRUE(contains(
      outcome.errors,
      "was killed by signal 9 \\(Killed\\); meanwhile the system has killed processes because memory ran out: .*"
      "HEADWAY_BUDGET or HEADWAY_SPILL\n"))
      << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
}

TEST(Memory, of_64_mb_in_dev_shm_is_enough_for_any_run) {
  if (!may_mount()) GTEST_SKIP() << "no mount namespace can be made here";
  const Outcome outcome =
      run_to_end(with_mounts("mount -t tmpfs -o size=64M none /dev/shm; exec " + victim() + works), pes(8));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");
  // Nor does it need any of it.
  EXPECT_EQ(run_to_end(with_mounts("mount -t tmpfs -o ro none /dev/shm; exec " + victim() + works), pes(3)).status, 0);
}

TEST(Memory, of_other_processes_may_be_out_of_reach) {
  for (const auto& shape : {pes(3), pes(5, 2)}) {
    const Outcome outcome = run_to_end({victim(), "without_memory_access", victim(), "finite", "mixed", "0.3"}, shape);
    if (outcome.status == 98) GTEST_SKIP() << "system calls cannot be forbidden here";
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
  }
}

TEST(Files, need_no_place_that_can_be_written) {
  if (!may_mount()) GTEST_SKIP() << "no mount namespace can be made here";
  const Variables nowhere = {
      {"HOME", "/mnt"}, {"TMPDIR", "/mnt"}, {"XDG_RUNTIME_DIR", "/mnt"}, {"XDG_CACHE_HOME", "/mnt"}};
  const std::string read_only = "mount -t tmpfs -o ro none /mnt; cd /mnt; exec ";
  for (const std::string& launcher : {std::string(), headway_command() + " run "}) {
    const Outcome outcome = run_to_end(with_mounts(read_only + launcher + victim() + works), pes(4, 2) + nowhere);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, "");
  }
}

TEST(Proc, is_not_needed) {
  if (run_to_end(with_mounts("umount -l /proc")).status != 0) GTEST_SKIP() << "/proc cannot be taken away here";
  for (const auto& shape : {pes(3), pes(4, 4), pes(5, 2)}) {
    const Outcome outcome = run_to_end(with_mounts("umount -l /proc; exec " + victim() + works), shape);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Proc, is_not_needed_to_say_which_pe_died_or_that_a_run_has_stalled) {
  if (run_to_end(with_mounts("umount -l /proc")).status != 0) GTEST_SKIP() << "/proc cannot be taken away here";
  const Outcome died = run_to_end(with_mounts("umount -l /proc; exec " + victim() + " load mixed kill 1"), pes(3));
  EXPECT_EQ(died.status, 121);
  EXPECT_TRUE(contains(died.errors, "^headway: PE 1 \\(pid \\d+\\) was killed by signal 9 \\(Killed\\)\n"))
      << died.errors;
  EXPECT_EQ(died.leftovers, "");

  const Outcome stalled = run_to_end(with_mounts("umount -l /proc; exec " + victim() + " cross_purposes"),
                                     pes(3) + Variables{{"HEADWAY_STALL", "700ms"}});
  EXPECT_EQ(stalled.status, 122);
  EXPECT_TRUE(contains(stalled.errors, "\n  a cycle: PE 0 waits for PE 2 waits for PE 0\n")) << stalled.errors;
}

TEST(Descriptors, that_run_out_within_a_run_do_no_harm) {
  const Outcome outcome = run_to_end({"sh", "-c", "ulimit -n 32; exec " + victim() + works}, pes(6));
  EXPECT_EQ(outcome.status, 0) << outcome.errors;
}

}  // namespace
}  // namespace headway::testing
