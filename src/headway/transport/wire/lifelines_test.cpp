// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <headway/transport/wire/lifelines.hpp>
#include <headway/transport/wire/sockets.hpp>
#include <mutex>
#include <thread>

namespace headway::wire {
namespace {

using Event = Lifelines::Event;

/// A process's lines and their reports.
struct Process {
  std::mutex mutex;
  std::vector<Lifelines::Loss> losses;
  Lifelines lines;

  Process(std::size_t process, bool expects_children) : lines(process, expects_children) {}
  void hold(std::size_t parent, const LifelineAddress& address, const std::vector<std::size_t>& children = {}) {
    lines.hold(parent, address, children, [this](const Lifelines::Loss& loss) {
      const std::scoped_lock lock(mutex);
      losses.push_back(loss);
    });
  }
  std::size_t count() {
    const std::scoped_lock lock(mutex);
    return losses.size();
  }
  bool hears(std::size_t number, int ms = 5000) {
    for (; ms > 0 && count() < number; ms -= 10) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return count() >= number;
  }
};

void wait_a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(300)); }

TEST(Lifelines, are_silent_when_processes_leave_one_after_the_other) {
  for (const bool parent_first : {false, true}) {
    auto parent = std::make_unique<Process>(0, true);
    auto child = std::make_unique<Process>(1, false), other = std::make_unique<Process>(2, false);
    parent->hold(0, {}, {1, 2});
    child->hold(0, parent->lines.address());
    other->hold(0, parent->lines.address());
    wait_a_while();
    (parent_first ? parent : child).reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(1700));
    for (const auto* one : {&parent, &child, &other}) {
      EXPECT_EQ(*one ? (*one)->count() : 0, 0u);
    }
  }
}

TEST(Lifelines, of_processes_that_leave_at_once_are_silent) {
  for (int round = 0; round < 50; ++round) {
    Process parent(0, true);
    parent.hold(0, {}, {1});
    Process child(1, false);
    child.hold(0, parent.lines.address());
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    EXPECT_EQ(parent.count() + child.count(), 0u);
  }
}

TEST(Lifelines, pass_on_the_end_of_the_run_and_its_status) {
  Process parent(0, true), child(3, false), other(4, false);
  parent.hold(0, {}, {3, 4});
  child.hold(0, parent.lines.address());
  other.hold(0, parent.lines.address());
  wait_a_while();
  child.lines.tell_end(121);
  ASSERT_TRUE(parent.hears(1));
  EXPECT_EQ(parent.losses[0].event, Event::told);
  EXPECT_EQ(parent.losses[0].process, 3u);
  EXPECT_EQ(parent.losses[0].status, 121);
  parent.lines.tell_end(122);
  ASSERT_TRUE(other.hears(1));
  EXPECT_EQ(other.losses[0].status, 122);
  EXPECT_EQ(child.count(), 0u);  // it knows
}

TEST(Lifelines, report_a_process_that_is_killed_at_either_end) {
  Process parent(0, true);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t killed = fork();
  if (killed == 0) {
    Process child(1, true);
    child.hold(0, parent.lines.address(), {2});
    if (write(ready[1], &child.lines.address(), sizeof(LifelineAddress)) < 0) _exit(1);
    for (;;) pause();
  }
  LifelineAddress of_child;
  ASSERT_EQ(read(ready[0], &of_child, sizeof of_child), ssize_t(sizeof of_child));
  parent.hold(0, {}, {1});
  Process grandchild(2, false);
  grandchild.hold(1, of_child);
  wait_a_while();
  kill(killed, SIGKILL);
  waitpid(killed, nullptr, 0);
  for (Process* one : {&parent, &grandchild}) {
    ASSERT_TRUE(one->hears(1));
    EXPECT_EQ(one->losses[0].event, Event::ended);
    EXPECT_EQ(one->losses[0].process, 1u);
  }
  wait_a_while();
  EXPECT_EQ(parent.count() + grandchild.count(), 2u);  // once each
  for (const int end : ready) close(end);
}

TEST(Lifelines, find_the_parent_at_another_of_its_numbers) {
  Process parent(0, true), child(1, false);
  LifelineAddress address = parent.lines.address();
  ASSERT_GE(address.numbers, 1);
  std::memcpy(address.number[1], address.number[0], sizeof address.number[0]);
  std::strcpy(address.number[0], "240.0.0.1");
  address.numbers = 2;
  parent.hold(0, {}, {1});
  child.hold(0, address);
  wait_a_while();
  parent.lines.tell_end(1);
  EXPECT_TRUE(child.hears(1));
}

TEST(Lifelines, ignore_connections_of_other_programs) {
  Process parent(0, true), stranger(1, false), unexpected(7, false);
  parent.hold(0, {}, {1});
  LifelineAddress guessed = parent.lines.address();
  guessed.token ^= 1;
  stranger.hold(0, guessed);
  unexpected.hold(0, parent.lines.address());
  const int silent = connect_to("127.0.0.1", parent.lines.address().port);
  ASSERT_GE(silent, 0);
  const char noise[100] = "GET / HTTP/1.0";
  EXPECT_TRUE(write_all(silent, noise, sizeof noise));
  wait_a_while();
  close(silent);
  stranger.lines.tell_end(1);
  unexpected.lines.tell_end(1);
  EXPECT_FALSE(parent.hears(1, 1700));
  EXPECT_EQ(stranger.count() + unexpected.count(), 0u);
}

}  // namespace
}  // namespace headway::wire
