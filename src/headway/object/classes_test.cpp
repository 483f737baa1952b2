/// Elements of two classes that know each other, and wait for each other's steps.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/object/object.hpp>
#include <support/run_pes.hpp>

namespace headway {
namespace {

using testing::expect_run;
using testing::Shape;
using testing::shapes;

class Pupil;

/// Gives each pupil a task for each step, and the next when all have answered.
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

}  // namespace
}  // namespace headway
