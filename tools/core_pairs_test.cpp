// SPDX-License-Identifier: BSD-3-Clause
#include "core_pairs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <headway/base/machine.hpp>

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

/// Caches of processors, as the system describes them.
class System {
 public:
  System() : root_(fs::temp_directory_path() / ("headway-core-pairs-test-" + std::to_string(::getpid()))) {}
  ~System() { fs::remove_all(root_); }
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  void add(int processor, const std::string& same_core, const std::string& same_last_level) const {
    write(processor, "0", "1", same_core);
    write(processor, "1", "3", same_last_level);
  }
  std::string path() const { return root_.string(); }

 private:
  void write(int processor, const std::string& index, const std::string& level, const std::string& shared) const {
    const fs::path folder = root_ / ("cpu" + std::to_string(processor)) / "cache" / ("index" + index);
    fs::create_directories(folder);
    std::ofstream(folder / "level") << level << '\n';
    std::ofstream(folder / "shared_cpu_list") << shared << '\n';
  }
  fs::path root_;
};

TEST(CorePairs, are_the_first_with_and_without_a_shared_cache_and_no_threads_of_one_core) {
  const System system;
  for (const int one : {0, 1, 2, 3}) system.add(one, one < 2 ? "0-1" : "2-3", "0-3");
  for (const int one : {4, 5}) system.add(one, std::to_string(one), "4,5");
  const CorePairs all = core_pairs({0, 1, 2, 3, 4, 5}, system.path());
  ASSERT_TRUE(all.sharing && all.apart);
  EXPECT_EQ(all.sharing->first, 0);
  EXPECT_EQ(all.sharing->second, 2);
  EXPECT_TRUE(all.sharing->shares_cache);
  EXPECT_EQ(all.apart->first, 0);
  EXPECT_EQ(all.apart->second, 4);
  EXPECT_FALSE(all.apart->shares_cache);
  const CorePairs of_threads = core_pairs({0, 1}, system.path());
  EXPECT_FALSE(of_threads.sharing || of_threads.apart);
  EXPECT_TRUE(core_pairs({4, 5}, system.path()).sharing);
}

TEST(CorePairs, are_none_where_the_system_tells_nothing) {
  const CorePairs pairs = core_pairs({0, 1}, "/nonexistent");
  EXPECT_FALSE(pairs.sharing || pairs.apart);
}

TEST(CorePairs, of_processes_are_restored_afterwards) {
  const std::vector<int> before = base::allowed_processors();
  {
    const RunOn here({before.front(), before.back(), true});
    const std::vector<int> now = base::allowed_processors();
    EXPECT_EQ(now.front(), before.front());
    EXPECT_EQ(now.back(), before.back());
    EXPECT_LE(now.size(), 2);
  }
  EXPECT_EQ(base::allowed_processors(), before);
}

TEST(CorePairs, know_the_time_of_a_line_between_them) {
  const std::vector<int> processors = base::allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "one core";
  const double ns = line_ns({processors[0], processors[1], true});
  // 0: the threads did not get far, on a busy machine
  EXPECT_TRUE(ns == 0 || (ns > 1 && ns < 1e5)) << ns;
  EXPECT_EQ(base::allowed_processors(), processors);
}

}  // namespace
}  // namespace headway::tools
