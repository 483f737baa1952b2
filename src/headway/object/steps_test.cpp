// SPDX-License-Identifier: BSD-3-Clause
/// Waiting: triggers, coroutines, many reductions at once, epochs, while elements move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <headway/am/epoch.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/object/object.hpp>
#include <headway/transfer/send_buffer.hpp>
#include <numeric>
#include <span>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Settings;
using testing::Shape;
using testing::shapes;

// --- triggers

/// Averages its value with its neighbours in a row, step by step.
class Point : public Element<Point, Index<1>> {
 public:
  Point() = default;
  explicit Point(int) : value_(double(index()[0] * index()[0])) {}

  /// A message of step 0: neighbours may start before this element.
  void start(int step, int steps) {
    EXPECT_EQ(step, step_);
    steps_ = steps;
    send_ghosts(step);
  }
  void ghost(int step, double value, std::span<const int> more) {
    EXPECT_EQ(step, step_);
    EXPECT_EQ(more.size(), std::size_t(step % 3));
    sum_ += value;
  }
  std::size_t neighbours() const { return index()[0] == 0 || index()[0] + 1 == int(all().size()) ? 1 : 2; }
  std::size_t expected(int step) const { return neighbours() + (step == 0 ? 1 : 0); }
  void relax(int step) {
    EXPECT_EQ(step, step_);
    value_ = (value_ + sum_) / double(1 + neighbours());
    sum_ = 0;
    if (++step_ < steps_) send_ghosts(step_);
    if ((step + index()[0]) % 2 == 0) migrate_to((pe().id() + 1 + std::size_t(step) % 3) % pe().size());
  }
  double value() const { return value_; }
  template <class A>
  void serialize(A& archive) {
    archive(value_, sum_, step_, steps_);
  }
  static constexpr auto aggregation = entries(entry<&Point::ghost>{});
  static constexpr auto triggers =
      headway::triggers(trigger<&Point::relax, &Point::start, &Point::ghost>(&Point::expected));

 private:
  void send_ghosts(int step) {
    const std::vector<int> more(std::size_t(step % 3));
    for (const int side : {-1, 1}) {
      const int other = index()[0] + side;
      if (other >= 0 && other < int(all().size())) all()[other].send<&Point::ghost>(step, value_, more);
    }
  }
  double value_ = 0, sum_ = 0;
  int step_ = 0, steps_ = 0;
};

std::vector<double> averaged(int points, int steps) {
  std::vector<double> now(static_cast<std::size_t>(points)), next = now;
  for (std::size_t i = 0; i < now.size(); ++i) now[i] = double(i * i);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      double sum = now[i], count = 1;
      if (i > 0) sum += now[i - 1], ++count;
      if (i + 1 < now.size()) sum += now[i + 1], ++count;
      next[i] = sum / count;
    }
    now = next;
  }
  return now;
}

TEST(Triggers, run_in_step_while_messages_of_later_steps_wait_and_move_with_their_elements) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int points = 24, steps = 20;
      Array<Point> row(pe, points, {}, 0);
      if (pe.id() ==
          pe.size() - 1) {  // every second element starts after its neighbours' messages of step 0 have arrived
        for (int i = 0; i < points; i += 2) row[i].send<&Point::start>(0, steps);
        for (int i = 0; i < 1000; ++i) pe.progress();
        for (int i = 1; i < points; i += 2) row[i].send<&Point::start>(0, steps);
      }
      pe.quiesce();
      const std::vector<double> expected = averaged(points, steps);
      row.for_each_local(
          [&](Point& point) { EXPECT_NEAR(point.value(), expected[std::size_t(point.index()[0])], 1e-9); });
      EXPECT_EQ(allreduce(pe, row.local_size(), std::plus<>()), std::size_t(points));
    });
  }
}

class Gated : public Element<Gated, Index<1>> {
 public:
  void one(int) {}
  void done(int) {}
  static constexpr auto triggers = headway::triggers(trigger<&Gated::done, &Gated::one>(2));
};

TEST(Triggers, a_message_of_a_step_that_is_over_is_an_error_and_one_of_a_step_that_never_comes_is_undelivered) {
  const Outcome late = catch_run({2, 1}, [](Pe& pe) {
    Array<Gated> gated(pe, 1);
    if (pe.id() == 0) {
      for (int i = 0; i < 3; ++i) gated[0].send<&Gated::one>(0);
    }
    pe.quiesce();
  });
  EXPECT_EQ(late.status, 121);
  EXPECT_NE(late.text.find("a message of step 0 arrived when step 1 was the current one"), std::string::npos)
      << late.text;
  const Outcome never = catch_run({2, 1}, [](Pe& pe) {
    Array<Gated> gated(pe, 1);
    if (pe.id() == 0) gated[0].send<&Gated::one>(3);
    pe.quiesce();
  });
  EXPECT_EQ(never.status, 123) << never.text;
}

// --- coroutines

class Walker : public Element<Walker, Sparse<int>> {
 public:
  void token(int step, int value) {
    EXPECT_EQ(step, step_);
    sum_ += value;
  }
  /// Asks to move first; the move happens after its coroutine.
  Task<int> walk(std::size_t to, int steps) {
    const std::size_t here = pe().id();
    migrate_to(to);
    for (step_ = 0; step_ < steps; ++step_) {
      co_await when<&Walker::token>(step_, 2);
      EXPECT_EQ(pe().id(), here);
    }
    co_return sum_;
  }
  Task<> walk_and_leave(int steps) {
    erase();
    for (step_ = 0; step_ < steps; ++step_) co_await when<&Walker::token>(step_, 2);
    EXPECT_EQ(sum_, steps * 2 * 3);
  }
  std::size_t where() const { return pe().id(); }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, step_);
  }
  static constexpr auto awaited = headway::awaited<&Walker::token>;

 private:
  int sum_ = 0, step_ = 0;
};

TEST(Coroutines, wait_for_messages_of_their_steps_and_let_their_elements_go_when_they_are_through) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int steps = 5;
      SparseArray<Walker> walkers(pe);
      if (pe.id() == 0) walkers[1].insert(), walkers[2].insert();
      pe.quiesce();
      if (pe.id() == 0) {
        Future<int> sum = walkers[1].rpc<&Walker::walk>(pe.size() - 1, steps);
        walkers[2].send<&Walker::walk_and_leave>(steps);
        for (int step = steps; step-- > 0;) {  // last step first
          for (int i = 0; i < 2; ++i)
            walkers[1].send<&Walker::token>(step, 1), walkers[2].send<&Walker::token>(step, 3);
          if (step % 2 == 0) pe.progress();
        }
        EXPECT_EQ(sum.get(), 2 * steps);
      }
      pe.quiesce();
      EXPECT_EQ(walkers.find_local(2), nullptr);
      EXPECT_EQ(walkers[1].rpc<&Walker::where>().get(), pe.size() - 1);
      EXPECT_EQ(allreduce(pe, walkers.local_size(), std::plus<>()), 1u);
      pe.quiesce();  // the answer of a forwarded call may arrive before the news of the element's PE
    });
  }
}

// --- reductions

class Giver : public Element<Giver, Index<1>> {
 public:
  void give(int round, const Proxy<class Taker>& takers, const Section<Giver>& odd);
  void take_all(int sum) {
    EXPECT_EQ(sum, int(all().size()));
    ++all_;
  }
  void take_odd(std::string text) {
    std::ranges::sort(text);
    EXPECT_EQ(text, std::string(all().size() / 2, 'o'));
    ++odd_;
  }
  int got() const { return all_ * 1000 + odd_; }
  template <class A>
  void serialize(A& archive) {
    archive(all_, odd_);
  }

 private:
  int all_ = 0, odd_ = 0;
};
class Taker : public Element<Taker, Index<1>> {
 public:
  void take(double least) {
    EXPECT_EQ(least, -double(index()[0]));
    ++taken;
  }
  int taken = 0;
};

struct Least {
  double operator()(double a, double b) const { return a < b ? a : b; }
};

void Giver::give(int round, const Proxy<Taker>& takers, const Section<Giver>& odd) {
  contribute(double(index()[0]) - double(round % 4), Least(), to<&Taker::take>(takers[round % 4]));
  contribute(1, std::plus<>(), to<&Giver::take_all>(all()));
  if (index()[0] % 2 == 1)
    contribute(odd, std::string("o"), std::plus<>(), to<&Giver::take_odd>(proxy()[round % int(all().size())]));
  migrate_to((pe().id() + std::size_t(index()[0] + round)) % pe().size());
}

TEST(Contributions, reach_elements_all_and_those_of_sections_many_at_once_while_elements_move) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int elements = 20, rounds = 30;
      Array<Giver> givers(pe, elements);
      Array<Taker> takers(pe, 4);
      Section<Giver> odd;
      if (pe.id() == 0) {
        std::vector<Index<1>> names;
        for (int i = 1; i < elements; i += 2) names.emplace_back(i);
        odd = givers.section(names);
        for (int round = 0; round < rounds; ++round) givers.broadcast<&Giver::give>(round, takers.proxy(), odd);
      }
      pe.quiesce();
      int got = 0, taken = 0;
      givers.for_each_local([&](Giver& giver) { got += giver.got(); });
      takers.for_each_local([&](Taker& taker) { taken += taker.taken; });
      EXPECT_EQ(allreduce(pe, got, std::plus<>()), elements * rounds * 1000 + rounds);
      EXPECT_EQ(allreduce(pe, taken, std::plus<>()), rounds);
      if (pe.id() == 0) odd.release();
      pe.quiesce();
    });
  }
}

class Early : public Element<Early, Index<1>> {
 public:
  void give(const Proxy<class Late>& late);
  static constexpr auto aggregation = entries(entry<&Early::give>{});
};
class Late : public Element<Late, Index<1>> {
 public:
  void take(int) { ++taken; }
  int taken = 0;
};
void Early::give(const Proxy<Late>& late) {
  contribute(1, std::plus<>(), to<&Late::take>(late));
  contribute(1, std::plus<>(), to<&Late::take>(late[0]));
}

TEST(Contributions, to_a_collection_that_the_root_has_not_made_yet_wait_for_it) {
  expect_run({3, 1}, [](Pe& pe) {
    Array<Early> early(pe, 1, {.placement = place<Index<1>>([](const Index<1>&) { return 2u; })});
    if (pe.id() == 0) {  // other PEs have made the collection and contribute before this PE makes its part
      const auto until = pe.engine().now() + 50'000'000;
      while (pe.engine().now() < until) pe.progress();
    }
    Array<Late> late(pe, 4);
    if (pe.id() == 2) early[0].send<&Early::give>(late.proxy());
    pe.quiesce();
    int taken = 0;
    late.for_each_local([&](Late& one) { taken += one.taken; });
    EXPECT_EQ(allreduce(pe, taken, std::plus<>()), 5);
  });
}

class Confused : public Element<Confused, Index<1>> {
 public:
  void give() {
    if (index()[0] == 0)
      contribute(1, std::plus<>(), to<&Confused::take>(all()));
    else
      contribute(1.0, std::plus<>(), to<&Confused::take>(all()));
  }
  void take(double) {}
};

TEST(Contributions, of_different_types_are_an_error) {
  const Outcome outcome = catch_run({1, 1}, [](Pe& pe) {
    Array<Confused> confused(pe, 2);
    confused.broadcast<&Confused::give>();
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, 121);
  EXPECT_NE(outcome.text.find("different types to reduction number 0"), std::string::npos) << outcome.text;
}

// --- beside collectives and epochs

class Mover : public Element<Mover, Index<1>> {
 public:
  void add(int value) { sum_ += value; }
  void go(int by) { migrate_to((pe().id() + std::size_t(by)) % pe().size()); }
  void take(std::span<const std::uint32_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) right_ = right_ && values[i] == values.size() + i;
    sum_ += int(values.size());
  }
  int sum() const { return right_ ? sum_ : -1; }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, right_);
  }
  static constexpr auto aggregation = entries(entry<&Mover::add>{}, entry<&Mover::take>{});

 private:
  int sum_ = 0;
  bool right_ = true;
};

TEST(Broadcasts, leave_the_order_of_the_programs_own_collectives_alone) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Array<Mover> a(pe, 5), b(pe, 3);
      constexpr int rounds = 200;
      std::vector<Future<std::uint64_t>> sums;
      for (int round = 0; round < rounds; ++round) {
        if (round % int(pe.size()) == int(pe.id())) a.broadcast<&Mover::add>(1);
        if ((round + 1) % int(pe.size()) == int(pe.id())) b.broadcast<&Mover::add>(1);
        // Called in the same order on all PEs, but at different moments relative to arriving messages.
        sums.push_back(allreduce_async(pe, std::uint64_t(round), std::plus<>()));
        if (pe.id() % 2 == 0) pe.progress();
      }
      for (std::size_t round = 0; round < rounds; ++round) EXPECT_EQ(sums[round].get(), round * pe.size());
      pe.quiesce();
      a.for_each_local([&](Mover& mover) { EXPECT_EQ(mover.sum(), rounds); });
      b.for_each_local([&](Mover& mover) { EXPECT_EQ(mover.sum(), rounds); });
    });
  }
}

TEST(Epochs, wait_for_messages_to_elements_that_others_messages_have_moved) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      constexpr int elements = 16, rounds = 30;
      Array<Mover> movers(pe, elements);
      const Section<Mover> some =
          movers.section({1, 2, 3});  // messages that make the section belong to the run, not to the epoch
      for (int round = 0; round < rounds; ++round) {
        for (int i = int(pe.id()); i < elements; i += int(pe.size())) movers[i].send<&Mover::go>(1 + (i + round) % 3);
        Epoch epoch(pe);
        for (int i = 0; i < elements; ++i) movers[i].send<&Mover::add>(1);
        if (round == 0) some.broadcast<&Mover::add>(1'000'000);
        if (pe.id() == 0) movers.broadcast<&Mover::add>(1000);
        epoch.wait();
        const int pes = int(pe.size());
        // An element may be in transit, but no message of the epoch is: elements of this PE have got all of them.
        movers.for_each_local([&](Mover& mover) { EXPECT_EQ(mover.sum() % 1'000'000, (round + 1) * (1000 + pes)); });
        barrier(pe);
      }
      pe.quiesce();
    });
  }
}

TEST(Transfers, content_that_need_not_be_copied_reaches_elements_that_move) {
  for (const char* const way : {"auto", "frames"}) {
    for (const Shape shape : {Shape{2, 1}, Shape{5, 2}, Shape{3, 3}}) {
      expect_run(
          shape,
          [](Pe& pe) {
            Array<Mover> movers(pe, 4);
            constexpr int rounds = 12;
            std::vector<std::vector<std::uint32_t>> contents;
            int done = 0, sent = 0;
            for (int round = 0; round < rounds; ++round) {
              contents.emplace_back(std::size_t(1) << (round + 5));
              std::iota(contents.back().begin(), contents.back().end(), std::uint32_t(contents.back().size()));
            }
            for (int round = 0; round < rounds; ++round) {
              sent += int(contents[std::size_t(round)].size());
              if (pe.id() == std::size_t(round) % pe.size()) movers[round % 4].send<&Mover::go>(1 + round % 2);
              movers[round % 4].send<&Mover::take>(send_buffer(contents[std::size_t(round)], [&] { ++done; }));
            }
            pe.quiesce();
            EXPECT_EQ(done, rounds);
            int sum = 0;
            movers.for_each_local([&](Mover& mover) {
              EXPECT_GT(mover.sum(), 0);
              sum += mover.sum();
            });
            EXPECT_EQ(allreduce(pe, sum, std::plus<>()), sent * int(pe.size()));
          },
          Settings{{"HEADWAY_TRANSFER", way}});
    }
  }
}

}  // namespace
}  // namespace headway
