// SPDX-License-Identifier: BSD-3-Clause
/// Collections with several shapes of runs: messages find their elements, also after moves.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <headway/collective/allreduce.hpp>
#include <headway/object/object.hpp>
#include <map>
#include <set>
#include <span>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;

/// Counts its messages.
class Counter : public Element<Counter, Index<2>> {
 public:
  Counter() = default;
  explicit Counter(int begin) : sum_(begin), begin_(begin) {}

  void add(int value) { sum_ += value; }
  void add_many(std::span<const int> values, const std::string& text, double factor) {
    for (const int value : values) sum_ += std::int64_t(double(value) * factor);
    text_ += text;
  }
  /// Adds, and sends the rest to the next element.
  void hand_on(int value, int hops) {
    sum_ += value;
    const Index<2> extents = all().extents();
    const Index<2> here = index();
    const Index<2> next =
        here[1] + 1 < extents[1] ? Index<2>{here[0], here[1] + 1} : Index<2>{(here[0] + 1) % extents[0], 0};
    if (hops > 0) all()[next].send<&Counter::hand_on>(value, hops - 1);
  }
  void move_on(int step) { migrate_to((pe().id() + std::size_t(step)) % pe().size()); }
  std::int64_t sum() const { return sum_; }
  std::string text_and(const std::string& more) const { return text_ + more; }
  std::int64_t begin() const { return begin_; }
  void arrived() { ++moves_; }
  int moves() const { return moves_; }

  template <class A>
  void serialize(A& archive) {
    archive(sum_, begin_, text_, moves_);
  }

  static constexpr auto aggregation = entries(entry<&Counter::add>{{.buffer_bytes = 4096}},
                                              entry<&Counter::add_many, &Counter::hand_on>{{.topology = grid(2)}});

 private:
  std::int64_t sum_ = 0, begin_ = 0;
  std::string text_;
  int moves_ = 0;
};

TEST(Collection, messages_of_all_methods_reach_their_elements) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Counter> counters(pe, {3, 5}, {}, 7);
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 5; ++j) {
          counters[{i, j}].send<&Counter::add>(i * 10 + j);
          counters[{i, j}].send<&Counter::add_many>(std::vector<int>{1, 2, 3}, std::string("x"), 2.0);
        }
      }
      if (pe.id() == 0) counters[{0, 0}].send<&Counter::hand_on>(1000, 29);
      pe.quiesce();
      counters.for_each_local([&](Counter& counter) {
        const Index<2> at = counter.index();
        EXPECT_EQ(counter.sum(), 7 + 2000 + std::int64_t(pe.size()) * (at[0] * 10 + at[1] + 12));
      });
      const std::uint64_t all = allreduce(pe, std::uint64_t(counters.local_size()), std::plus<>());
      EXPECT_EQ(all, 15u);
    });
  }
}

TEST(Collection, calls_give_what_the_method_returns) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Counter> counters(pe, {4, 2}, {.placement = cyclic()}, 3);
      Future<std::int64_t> sum = counters[{1, 1}].rpc<&Counter::sum>();
      EXPECT_EQ(sum.get(), 3);
      const std::string more = "!";
      EXPECT_EQ((counters[{3, 0}].rpc<&Counter::text_and>(more).get()), "!");
      EXPECT_EQ((rpc<&Counter::begin>(counters[{2, 1}]).get()), 3);
      pe.quiesce();
    });
  }
}

TEST(Collection, messages_find_elements_that_move) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Counter> counters(pe, {4, 4}, {}, 0);
      constexpr int rounds = 20;
      for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < 4; ++i) {
          for (int j = 0; j < 4; ++j) {
            counters[{i, j}].send<&Counter::add>(1);
            if ((i + j + round) % int(pe.size()) == int(pe.id()))
              counters[{i, j}].send<&Counter::move_on>(1 + round % 3);
            counters[{i, j}].send<&Counter::add>(1);
          }
        }
        if (round % 5 == 0) pe.progress();
      }
      pe.quiesce();
      counters.for_each_local(
          [&](Counter& counter) { EXPECT_EQ(counter.sum(), 2 * rounds * std::int64_t(pe.size())); });
      EXPECT_EQ(allreduce(pe, std::uint64_t(counters.local_size()), std::plus<>()), 16u);
      if (pe.size() > 3) {
        std::uint64_t moves = 0;
        counters.for_each_local([&](Counter& counter) { moves += std::uint64_t(counter.moves()); });
        EXPECT_GT(allreduce(pe, moves, std::plus<>()), 16u);
      }
    });
  }
}

TEST(Collection, broadcasts_reach_every_element_once_while_they_move) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Counter> counters(pe, {3, 3}, {}, 0);
      constexpr int rounds = 150;
      for (int round = 0; round < rounds; ++round) {
        if (round % int(pe.size()) == int(pe.id())) counters.broadcast<&Counter::add>(1 + round);
        counters[{round % 3, round / 3 % 3}].send<&Counter::move_on>(1);
        if (round % 7 == 0) pe.progress();
      }
      pe.quiesce();
      counters.for_each_local([&](Counter& counter) { EXPECT_EQ(counter.sum(), rounds * (rounds + 1) / 2); });
    });
  }
}

TEST(Collection, a_reduction_asks_all_elements_while_they_move) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Counter> counters(pe, {5, 3}, {}, 2);
      std::vector<Future<std::int64_t>> sums;
      for (int round = 0; round < 20; ++round) {
        sums.push_back(counters.reduce<&Counter::begin>(std::plus<>()));
        counters[{round % 5, round % 3}].send<&Counter::move_on>(1);
      }
      for (Future<std::int64_t>& sum : sums) EXPECT_EQ(sum.get(), 30);
      pe.quiesce();
    });
  }
}

class Follower;

/// Expects `count` messages in each step from its followers, and then starts the next step.
class Leader : public Element<Leader, Index<1>> {
 public:
  Leader() = default;
  explicit Leader(int followers) : followers_(followers) {}

  void begin(const Proxy<Follower>& all, int steps) {
    all_ = all;
    steps_ = steps;
    start(0);
  }
  void answer(int step, int value) {
    EXPECT_EQ(step, done_);
    sum_ += value;
  }
  std::size_t expected(int) const { return std::size_t(followers_); }
  void finish(int step);
  static constexpr auto triggers = headway::triggers(trigger<&Leader::finish, &Leader::answer>(&Leader::expected));

  int done() const { return done_; }
  int sum() const { return sum_; }

  template <class A>
  void serialize(A& archive) {
    archive(all_, followers_, steps_, done_, sum_);
  }

 private:
  void start(int step);

  Proxy<Follower> all_;  // Follower is incomplete here
  int followers_ = 0, steps_ = 0, done_ = 0, sum_ = 0;
};

class Follower : public Element<Follower, Index<1>> {
 public:
  Follower() = default;
  explicit Follower(const Proxy<Leader>& leaders) : leaders_(leaders) {}

  /// A message of one of two leaders. Answers when both are in the step.
  void ask(int, int value) { value_ += value; }
  void both(int step) {
    for (int leader = 0; leader < 2; ++leader) leaders_[leader].send<&Leader::answer>(step, value_);
    value_ = 0;
    migrate_to((pe().id() + 1) % pe().size());
  }
  static constexpr auto triggers = headway::triggers(trigger<&Follower::both, &Follower::ask>(2));

  template <class A>
  void serialize(A& archive) {
    archive(leaders_, value_);
  }

 private:
  Proxy<Leader> leaders_;
  int value_ = 0;
};

void Leader::start(int step) {
  for (int i = 0; i < followers_; ++i) all_[i].send<&Follower::ask>(step, 1 + step);
}
void Leader::finish(int step) {
  if (++done_ < steps_) start(step + 1);
}

TEST(Trigger, runs_its_method_when_as_many_messages_of_the_step_have_come_as_are_expected) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Leader> leaders(pe, {2}, {}, 5);
      Array<Follower> followers(pe, {5}, {}, leaders.proxy());
      pe.quiesce();
      constexpr int steps = 12;
      if (pe.id() == 0) leaders.broadcast<&Leader::begin>(followers.proxy(), steps);
      pe.quiesce();
      leaders.for_each_local([&](const Leader& leader) {
        EXPECT_EQ(leader.done(), steps);
        EXPECT_EQ(leader.sum(), 5 * 2 * steps * (steps + 1) / 2);
      });
    });
  }
}

TEST(Section, its_members_get_broadcasts_and_reduce_while_they_move) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Counter> counters(pe, {4, 6}, {}, 1);
      std::vector<Index<2>> members;
      for (int i = 0; i < 4; ++i) members.push_back({i, (i * 2 + int(pe.id())) % 6});
      const Section<Counter> mine = counters.section(members);
      EXPECT_EQ(mine.size(), 4u);
      for (int round = 0; round < 10; ++round) {
        mine.broadcast<&Counter::add>(1);
        counters[members[std::size_t(round % 4)]].send<&Counter::move_on>(1 + round);
        if (round % 3 == 0) {
          EXPECT_EQ(mine.reduce<&Counter::begin>(std::plus<>()).get(), 4);
        }
      }
      pe.quiesce();
      std::int64_t sum = 0;
      counters.for_each_local([&](Counter& counter) { sum += counter.sum() - 1; });
      EXPECT_EQ(allreduce(pe, sum, std::plus<>()), std::int64_t(pe.size()) * 40);
      mine.release();
      pe.quiesce();
    });
  }
}

}  // namespace
}  // namespace headway
