// SPDX-License-Identifier: BSD-3-Clause
/// Kills runs while they write checkpoints: the last complete checkpoint must be readable.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <headway/object/object.hpp>
#include <iterator>
#include <random>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

class Page : public Element<Page, Index<1>> {
 public:
  void fill(std::int64_t round) {
    words_.assign(std::size_t(50 + index()[0]), round * 1000 + index()[0]);
    round_ = round;
  }
  std::int64_t round() const { return round_; }
  const std::vector<std::int64_t>& words() const { return words_; }
  template <class A>
  void serialize(A& archive) {
    archive(round_, words_);
  }

 private:
  std::int64_t round_ = 0;
  std::vector<std::int64_t> words_;
};

constexpr int pages_made = 300, kills = 50;

/// Writes checkpoints until it is killed.
void write_for_ever(const std::string& path, std::int64_t first,
                    const testing::Shared<std::atomic<std::int64_t>>& complete) {
  testing::run_pes(4, 1, [&](Pe& pe) {
    Array<Page> pages(pe, {pages_made}, {});
    for (std::int64_t round = first;; ++round) {
      if (pe.id() == 0) pages.broadcast<&Page::fill>(round);
      checkpoint(pe, path, pages);
      if (pe.id() == 0) complete->store(round);
    }
  });
}

TEST(CheckpointKill, whenever_a_run_is_killed_the_last_complete_checkpoint_is_restarted) {
  if (testing::launches()) GTEST_SKIP() << "its processes are its launcher's";
  std::string folder = (std::filesystem::temp_directory_path() / "headway-kill-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/checkpoint";
  const testing::Shared<std::atomic<std::int64_t>> complete, found;
  std::mt19937 random(1);
  int in_the_middle = 0;
  for (int kill_number = 0; kill_number < kills; ++kill_number) {
    const std::int64_t first = found->load() + 1;
    const pid_t victim = fork();
    ASSERT_GE(victim, 0);
    if (victim == 0) {
      setpgid(0, 0);  // the parent kills the PEs of this process too
      write_for_ever(path, first, complete);
      _exit(1);
    }
    setpgid(victim, victim);
    while (complete->load() < first) {  // wait until the run has started
      ASSERT_EQ(waitpid(victim, nullptr, WNOHANG), 0) << "it ended by itself";
      usleep(500);
    }
    usleep(useconds_t(random() % 20000));
    ASSERT_EQ(kill(-victim, SIGKILL), 0);
    ASSERT_EQ(waitpid(victim, nullptr, 0), victim);
    in_the_middle += std::filesystem::exists(path + "/manifest.new") ||
                     std::distance(std::filesystem::directory_iterator(path), {}) != 5;
    testing::expect_run({3, 1}, [&](Pe& pe) {
      Array<Page> pages(pe, {pages_made}, {.empty = true});
      restart(pe, path, pages);
      const std::int64_t round = pages[0].rpc<&Page::round>().get();
      EXPECT_GE(round, complete->load());
      EXPECT_LE(round, complete->load() + 1);
      pages.for_each_local([&](Page& page) {
        EXPECT_EQ(page.round(), round);
        const int number = page.index()[0];
        EXPECT_EQ(page.words(), std::vector<std::int64_t>(std::size_t(50 + number), round * 1000 + number));
      });
      if (pe.id() == 0) found->store(round);
      pe.quiesce();
    });
    if (HasFailure()) break;
  }
  RecordProperty("killed_while_writing", in_the_middle);
  EXPECT_GT(in_the_middle, kills / 10) << "few were killed while they wrote";
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headway
