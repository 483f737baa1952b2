// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/once.hpp>
#include <memory>
#include <stdexcept>
#include <utility>

namespace headway::base {
namespace {

TEST(Once, calls_what_lies_inside_and_what_does_not_one_time) {
  int small = 0, large = 0;
  struct Words {
    long a, b, c;
  } words{1, 2, 3};
  Once inside([&small] { ++small; }), outside([&large, words] { large += int(words.a + words.b + words.c); });
  for (int i = 0; i < 3; ++i) inside(), outside();
  EXPECT_EQ(small, 1);
  EXPECT_EQ(large, 6);
  Once nothing;
  nothing();
}

/// Counts those that live.
struct Counted {
  explicit Counted(int& n) : living(&n) { ++*living; }
  Counted(Counted&& other) noexcept : living(other.living) { ++*living; }
  ~Counted() { --*living; }
  int* living;
};

TEST(Once, destroys_what_was_called_what_was_not_and_what_throws) {
  int living = 0, calls = 0;
  {
    Once never([counted = Counted(living), &calls] { ++calls; });
    EXPECT_EQ(living, 1);
    Once moved(std::move(never));
    never();
    EXPECT_EQ(calls, 0);
    moved = Once([&calls] { calls += 10; });
    EXPECT_EQ(living, 0) << "what was assigned to";
    never = Once([counted = Counted(living)] {});
    EXPECT_EQ(living, 1);
  }
  EXPECT_EQ(living, 0);
  EXPECT_EQ(calls, 0);
  Once called([counted = Counted(living)] {});
  called();
  EXPECT_EQ(living, 0) << "at its call's end";
  Once throws([counted = Counted(living)] { throw std::runtime_error("on purpose"); });
  EXPECT_THROW(throws(), std::runtime_error);
  EXPECT_EQ(living, 0);
  throws();
}

TEST(Once, may_end_itself_while_it_is_called) {
  auto held = std::make_unique<Once>();
  bool done = false;
  *held = Once([&held, &done, more = std::make_unique<int>(1)] {
    held.reset();
    done = *more == 1;
  });
  (*held)();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace headway::base
