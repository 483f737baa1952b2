// SPDX-License-Identifier: BSD-3-Clause
/// Elements of two classes that send to each other and wait for each other's steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <headway/object/object.hpp>
#include <support/run_pes.hpp>
#include <utility>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;

class Pupil;

/// Sends a task to each pupil in each step, and starts the next step when all have answered.
class Teacher : public Element<Teacher, Index<1>> {
 public:
  Teacher() = default;
  explicit Teacher(int steps) : steps_(steps) {}

  void begin(const Proxy<Pupil>& pupils) {
    pupils_ = pupils;
    ask(0);
  }
  void answer(int, std::int64_t value) { sum_ += value; }
  std::size_t pupils(int step) const { return std::size_t(2 + step % 2); }
  void all_answered(int step) {
    seen_ = seen_ == step ? step + 1 : -1;
    if (seen_ < steps_) ask(seen_);
    migrate_to((pe().id() + 1) % pe().size());
  }
  int seen() const { return seen_; }
  std::int64_t sum() const { return sum_; }

  template <class A>
  void serialize(A& archive) {
    archive(pupils_, steps_, seen_, sum_);
  }
  static constexpr auto triggers =
      headway::triggers(trigger<&Teacher::all_answered, &Teacher::answer>(&Teacher::pupils));
  static constexpr auto aggregation = entries(entry<&Teacher::answer>{});

 private:
  void ask(int step);

  Proxy<Pupil> pupils_;
  int steps_ = 0, seen_ = 0;
  std::int64_t sum_ = 0;
};

class Pupil : public Element<Pupil, Index<2>> {
 public:
  Pupil() = default;
  explicit Pupil(const Proxy<Teacher>& teachers) : teachers_(teachers) {}
  void task(int step, std::int64_t value) { teachers_[{index()[0]}].send<&Teacher::answer>(step, 2 * value); }

  template <class A>
  void serialize(A& archive) {
    archive(teachers_);
  }

 private:
  Proxy<Teacher> teachers_;
};

void Teacher::ask(int step) {
  for (int i = 0; i < 2 + step % 2; ++i) pupils_[{index()[0], i}].send<&Pupil::task>(step, std::int64_t(step + i));
}

TEST(Classes, that_know_each_other_step_together_while_they_move) {
  constexpr int steps = 25;
  std::int64_t expected = 0;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 2 + step % 2; ++i) expected += 2 * (step + i);
  }
  for (const Shape shape : shapes) {
    expect_run(shape, [&](Pe& pe) {
      Array<Teacher> teachers(pe, {4}, {}, steps);
      Array<Pupil> pupils(pe, {4, 3}, {.placement = cyclic()}, teachers.proxy());
      EXPECT_EQ(teachers.options<&Teacher::answer>().topology, grid(1));
      if (pe.id() == 0) teachers.broadcast<&Teacher::begin>(pupils.proxy());
      pe.quiesce();
      teachers.for_each_local([&](Teacher& teacher) {
        EXPECT_EQ(teacher.seen(), steps);
        EXPECT_EQ(teacher.sum(), expected);
      });
    });
  }
}

// --- a class that is not complete yet

class Boss;

/// Receives, keeps and copies proxies of a class that is defined later.
class Worker : public Element<Worker, Index<1>> {
 public:
  explicit Worker(Proxy<Boss> boss) : boss_(boss) {}
  void join(Section<Boss> bosses) {
    const Section<Boss> copy(bosses);
    bosses_ = copy;
    bosses = std::move(bosses_);
    bosses_ = bosses;
  }
  void work(const Proxy<Boss>& boss) {
    const Proxy<Boss> copy(boss);
    Proxy<Boss> another{copy};
    another = std::move(boss_);
    boss_ = another;
    EXPECT_EQ(boss_, copy);
    report();
  }
  void report();
  Proxy<Boss> boss() const { return boss_; }
  static Collection<Boss>& same(Collection<Boss>& bosses) { return bosses; }
  static Future<Proxy<Boss>> same(Future<Proxy<Boss>> future) { return future; }
  static ElementRef<Boss> first(const Proxy<Boss>& bosses);

 private:
  Proxy<Boss> boss_;
  Section<Boss> bosses_;
};

class Boss : public Element<Boss, Single> {
 public:
  void done(std::int64_t sum) { sum_ += sum; }
  void member_done() { ++member_done_; }
  std::int64_t sum() const { return sum_; }
  std::int64_t member_done_count() const { return member_done_; }
  template <class A>
  void serialize(A& archive) {
    archive(sum_, member_done_);
  }

 private:
  std::int64_t sum_ = 0, member_done_ = 0;
};

ElementRef<Boss> Worker::first(const Proxy<Boss>& bosses) { return bosses[0]; }
void Worker::report() {
  contribute(std::int64_t(index()[0]), std::plus<>(), to<&Boss::done>(first(boss_)));
  bosses_.broadcast<&Boss::member_done>();
}

TEST(Classes, are_named_by_proxies_and_sections_before_they_are_complete) {
  expect_run({3, 1}, [](Pe& pe) {
    Singleton<Boss> boss(pe);
    Array<Worker> workers(pe, {4}, {}, boss.proxy());
    if (pe.id() == 1) workers.broadcast<&Worker::join>(Worker::same(boss).section({0}));
    pe.quiesce();
    if (pe.id() == 2) {
      const Proxy<Boss> there = Worker::same(workers[3].rpc<&Worker::boss>()).get();
      workers.broadcast<&Worker::work>(there);
    }
    pe.quiesce();
    EXPECT_EQ(boss.rpc<&Boss::sum>().get(), 0 + 1 + 2 + 3);
    EXPECT_EQ(boss.rpc<&Boss::member_done_count>().get(), 4);
    pe.quiesce();
  });
}

}  // namespace
}  // namespace headway
