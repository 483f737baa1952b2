// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <headway/base/fiber.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace headway::base {
namespace {

TEST(Fiber, two_fibers_take_turns) {
  std::string order;
  auto body = [&order](char name) {
    return [&order, name] {
      for (int i = 0; i < 3; ++i) {
        order += name;
        Fiber::suspend();
      }
    };
  };
  Fiber a(body('a')), b(body('b'));
  while (!a.done() || !b.done()) {
    if (!a.done()) a.resume();
    if (!b.done()) b.resume();
  }
  EXPECT_EQ(order, "ababab");
  EXPECT_EQ(Fiber::current(), nullptr);
}

TEST(Fiber, an_exception_that_is_caught_stays_with_its_fiber) {
  std::string seen;
  auto body = [&seen](const char* text) {
    return [&seen, text] {
      try {
        throw std::runtime_error(text);
      } catch (const std::runtime_error&) {
        Fiber::suspend();
        try {
          throw;  // the current one: this fiber's
        } catch (const std::runtime_error& mine) {
          seen += mine.what();
        }
      }
    };
  };
  Fiber a(body("first ")), b(body("second "));
  a.resume();
  b.resume();
  a.resume();
  b.resume();
  EXPECT_EQ(seen, "first second ");
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(Fiber, one_that_is_not_done_may_be_abandoned_and_its_stack_used_again) {
  for (int i = 0; i < 1000; ++i) {
    volatile int deep = 0;
    Fiber fiber([&deep] {
      volatile char much[10'000];
      much[0] = 1;
      deep = much[0];
      Fiber::suspend();
      deep = 2;
    });
    fiber.resume();
    EXPECT_EQ(deep, 1);
    EXPECT_FALSE(fiber.done());
  }
}

template <std::size_t bytes>
[[gnu::noinline]] void write_all_then_suspend() {
  volatile char much[bytes];
  for (volatile char& c : much) c = 1;
  Fiber::suspend();
  much[0] = 2;
}

TEST(Fiber, the_stack_of_an_abandoned_one_serves_another_whose_variables_lie_elsewhere) {
  for (int i = 0; i < 10; ++i) {
    Fiber(write_all_then_suspend<40>).resume();
    Fiber(write_all_then_suspend<1000>).resume();
    Fiber(write_all_then_suspend<300>).resume();
  }
}

TEST(Fiber, a_fiber_may_resume_another) {
  std::string order;
  Fiber inner([&order] {
    order += 'i';
    Fiber::suspend();
    order += 'i';
  });
  Fiber outer([&] {
    order += 'o';
    inner.resume();
    order += 'o';
    Fiber::suspend();
    inner.resume();
  });
  outer.resume();
  outer.resume();
  EXPECT_EQ(order, "oioi");
  EXPECT_TRUE(inner.done() && outer.done());
}

}  // namespace
}  // namespace headway::base
