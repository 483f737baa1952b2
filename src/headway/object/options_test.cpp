// SPDX-License-Identifier: BSD-3-Clause
/// Options of collections: those that a class declares for its entries, and those that a program gives.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/object/object.hpp>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>

namespace headway {
namespace {

using testing::expect_run;
using testing::expect_setting_error;

class Tuned : public Element<Tuned, Index<1>> {
 public:
  void a(std::uint64_t) { ++taken_; }
  void b(std::uint64_t) { ++taken_; }
  void c(std::uint64_t) { ++taken_; }
  void d(std::uint64_t) { ++taken_; }
  int taken() const { return taken_; }
  static constexpr auto aggregation =
      entries(entry<&Tuned::a, &Tuned::b>{{.buffer_bytes = 4096, .timeout = no_timeout, .flush_when_idle = false}},
              entry<&Tuned::c>{{.buffer_bytes = 4096, .timeout = no_timeout, .flush_when_idle = false}});

 private:
  int taken_ = 0;
};

TEST(Options, methods_of_one_entry_share_buffers_and_programs_may_say_otherwise_when_they_run) {
  expect_run({2, 1}, [](Pe& pe) {
    const AggregatorOptions small{.buffer_bytes = 256, .timeout = no_timeout, .flush_when_idle = false},
        single{.topology = direct()};
    CollectionOptions set, all{.override_all = single};
    set.set<&Tuned::b>(small);
    Array<Tuned> declared(pe, 2), of_b(pe, 2, set), of_all(pe, 2, all);
    for (Array<Tuned>* const tuned : {&declared, &of_b, &of_all}) {
      if (pe.id() == 0) {
        for (int i = 0; i < 50; ++i) {
          (*tuned)[1].send<&Tuned::a>(1u);
          (*tuned)[1].send<&Tuned::b>(1u);
          (*tuned)[1].send<&Tuned::c>(1u);
        }
      }
      pe.quiesce();
      EXPECT_EQ((tuned->statistics<&Tuned::a>().messages), pe.id() == 0 ? 100u : 0u);
      EXPECT_EQ((tuned->statistics<&Tuned::b>().messages), pe.id() == 0 ? 100u : 0u);
      tuned->for_each_local([&](Tuned& one) { EXPECT_EQ(one.taken(), pe.id() == 1 ? 150 : 0); });
    }
    if (pe.id() == 0) {
      EXPECT_EQ(declared.statistics<&Tuned::a>().frames, 1u);
      EXPECT_EQ(declared.statistics<&Tuned::c>().frames, 1u);
      EXPECT_GT(of_b.statistics<&Tuned::a>().frames, 8u);
      EXPECT_EQ(of_b.statistics<&Tuned::c>().frames, 1u);
      EXPECT_EQ(of_all.statistics<&Tuned::c>().frames, 50u);
    }
    CollectionOptions wrong;
    wrong.set<&Tuned::d>(small);
    expect_setting_error([&] { Array<Tuned>(pe, 2, wrong); }, "has no entry in its class");
    pe.quiesce();
  });
}

class Overloaded : public Element<Overloaded, Index<1>> {
 public:
  void add(std::uint64_t) {}
  void add(double) {}
  static constexpr auto of_number = static_cast<void (Overloaded::*)(std::uint64_t)>(&Overloaded::add);
  static constexpr auto of_double = static_cast<void (Overloaded::*)(double)>(&Overloaded::add);
  static constexpr auto aggregation =
      entries(entry<of_number>{{.buffer_bytes = 4096}}, entry<of_double>{{.buffer_bytes = 4096}});
};
class OneOfTwo : public Element<OneOfTwo, Index<1>> {
 public:
  void add(std::uint64_t) {}
  void add(double) {}
  static constexpr auto of_number = static_cast<void (OneOfTwo::*)(std::uint64_t)>(&OneOfTwo::add);
  static constexpr auto of_double = static_cast<void (OneOfTwo::*)(double)>(&OneOfTwo::add);
  static constexpr auto aggregation = entries(entry<of_number>{{.buffer_bytes = 4096}});
};

TEST(Options, of_an_overloaded_method_are_not_those_of_another) {
  expect_run({2, 1}, [](Pe& pe) {
    CollectionOptions options;
    options.set<Overloaded::of_double>({.buffer_bytes = 8192});
    const Array<Overloaded> both(pe, 2, options);
    EXPECT_EQ(both.options<Overloaded::of_number>().buffer_bytes, 4096u);
    EXPECT_EQ(both.options<Overloaded::of_double>().buffer_bytes, 8192u);
    CollectionOptions wrong;
    wrong.set<OneOfTwo::of_double>({.buffer_bytes = 8192});
    expect_setting_error([&] { Array<OneOfTwo>(pe, 2, wrong); }, "options are set for &");
    pe.quiesce();
  });
}

}  // namespace
}  // namespace headway
