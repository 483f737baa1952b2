// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <headway/am/future.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <support/counted.hpp>
#include <support/expect_error.hpp>
#include <support/later.hpp>
#include <support/run_pes.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::Counted;
using testing::expect_run;
using testing::expect_usage_error;
using testing::in_handler;
using testing::later;
using testing::Outcome;
using testing::Shared;

template <class T>
std::string failure_of(Future<T>& future) {
  try {
    static_cast<void>(future.get());
    return "nothing failed";
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(Future, gives_the_value_of_its_promise_once) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<std::string> promise(pe);
    Future<std::string> future = promise.future();
    EXPECT_FALSE(future.ready());
    promise.set("a text that is too long to lie in the string itself");
    EXPECT_TRUE(future.ready());
    EXPECT_EQ(future.get(), "a text that is too long to lie in the string itself");
    expect_usage_error([&] { static_cast<void>(future.get()); }, "taken once");
    expect_usage_error([&] { promise.set("again"); }, "set before");
    expect_usage_error([&] { promise.fail(nullptr); }, "set before");
    expect_usage_error([&] { static_cast<void>(promise.future()); }, "one future");
    Promise<> nothing(pe);
    nothing.set();
    nothing.future().get();
    Promise<std::unique_ptr<int>> unique(pe);
    unique.set(std::make_unique<int>(7));
    EXPECT_EQ(*unique.future().get(), 7);
  });
}

TEST(Future, is_unusable_after_it_was_moved_from) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    Future<int> first = promise.future();
    Future<int> second = std::move(first);
    Promise<int> moved = std::move(promise);
    EXPECT_FALSE(first.ready());
    expect_usage_error([&] { static_cast<void>(first.get()); }, "taken once");
    expect_usage_error([&] { promise.set(1); }, "moved from");
    expect_usage_error([&] { static_cast<void>(promise.future()); }, "one future");
    moved.set(2);
    EXPECT_EQ(second.get(), 2);
  });
}

TEST(Future, get_waits_for_a_value_that_a_handler_sets) {
  expect_run({2, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    later(pe, [&] { promise.set(5); });
    EXPECT_EQ(future.get(), 5);
  });
}

TEST(Future, get_throws_the_error_of_its_promise) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    later(pe, [&] { promise.fail(std::make_exception_ptr(std::runtime_error("not today"))); });
    EXPECT_EQ(failure_of(future), "not today");
    expect_usage_error([&] { static_cast<void>(future.get()); }, "taken once");
  });
}

TEST(Future, get_in_a_handler_is_an_error_that_says_to_make_it_a_coroutine) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    in_handler(pe, [&] {
      expect_usage_error([&] { static_cast<void>(future.get()); }, "get() of a future inside a handler");
      promise.set(1);
      expect_usage_error([&] { static_cast<void>(future.get()); }, "make it a coroutine");
    });
    {
      const DeferHandlers defer(pe);
      expect_usage_error([&] { static_cast<void>(future.get()); }, "handlers are deferred");
    }
    EXPECT_EQ(future.get(), 1);
  });
}

TEST(Future, get_without_a_value_is_in_the_stall_report) {
  const Outcome outcome = catch_run({2, 1},
                                    [](Pe& pe) {
                                      Promise<int> promise(pe);
                                      Future<int> future = promise.future();
                                      if (pe.id() == 1) static_cast<void>(future.get());
                                      pe.quiesce();
                                    },
                                    {{"HEADWAY_STALL", "1s"}});
  EXPECT_EQ(outcome.status, exit_status::stalled) << outcome.text;
  EXPECT_NE(outcome.text.find("waits for a future"), std::string::npos) << outcome.text;
}

TEST(Future, a_callback_gets_the_value_when_it_is_set_or_at_once) {
  expect_run({1, 1}, [](Pe& pe) {
    std::vector<int> got;
    Promise<int> now(pe), soon(pe);
    Promise<> nothing(pe);
    now.set(1);
    now.future().then([&](int n) { got.push_back(n); });
    EXPECT_EQ(got, std::vector<int>{1});
    soon.future().then([&](int n) { got.push_back(n); });
    nothing.future().then([&] { got.push_back(3); });
    in_handler(pe, [&] {
      soon.set(2);
      EXPECT_EQ(got, (std::vector<int>{1, 2}));
      nothing.set();
    });
    EXPECT_EQ(got, (std::vector<int>{1, 2, 3}));
  });
}

TEST(Future, a_callback_for_errors_gets_the_error) {
  expect_run({1, 1}, [](Pe& pe) {
    int values = 0;
    std::string errors;
    const auto on_error = [&](std::exception_ptr error) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& e) {
        errors += e.what();
      }
    };
    Promise<int> good(pe);
    Promise<> bad(pe);
    good.future().then([&](int n) { values += n; }, on_error);
    bad.future().then([&] { values += 1000; }, on_error);
    in_handler(pe, [&] {
      good.set(1);
      bad.fail(std::make_exception_ptr(std::runtime_error("bad")));
    });
    EXPECT_EQ(values, 1);
    EXPECT_EQ(errors, "bad");
  });
}

TEST(Future, a_failure_without_a_callback_for_it_ends_the_run) {
  const Outcome outcome = catch_run({1, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    promise.future().then([](int) {});
    promise.fail(std::make_exception_ptr(std::runtime_error("not today")));
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("a callback of a future at future_test.cpp:"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("threw: not today"), std::string::npos) << outcome.text;
}

TEST(Future, an_exception_of_a_callback_ends_the_run) {
  const Outcome outcome = catch_run({1, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    promise.future().then([](int) { throw 7; }, [](std::exception_ptr) {});
    in_handler(pe, [&] { promise.set(1); });
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("threw something that is no std::exception"), std::string::npos) << outcome.text;
}

TEST(Future, a_callback_that_never_ran_is_reported_and_destroyed) {
  Shared<int> destroyed;
  const Outcome outcome = catch_run({2, 2}, [&](Pe& pe) {
    if (pe.id() == 0) return;
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    future.then([mine = std::move(promise), count = Counted(&*destroyed)](int) {});  // the setter waits for the future
  });
  EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
  const char* text = "1 coroutine on PE 1 still waits at the end of the run: a callback of a future at ";
  EXPECT_NE(outcome.text.find(text), std::string::npos) << outcome.text;
  EXPECT_EQ(*destroyed, 1);
}

TEST(Promise, fails_its_future_when_it_is_destroyed_unset) {
  expect_run({1, 1}, [](Pe& pe) {
    auto promise = std::make_unique<Promise<int>>(pe);
    Future<int> future = promise->future();
    bool continued = false;
    auto other = std::make_unique<Promise<>>(pe);
    other->future().then([] { FAIL(); },
                         [&](std::exception_ptr error) {
                           EXPECT_THROW(std::rethrow_exception(error), BrokenPromise);
                           continued = true;
                         });
    promise = nullptr;
    EXPECT_THROW(static_cast<void>(future.get()), BrokenPromise);
    in_handler(pe, [&] {
      other = nullptr;
      EXPECT_FALSE(continued);  // a destructor runs nothing
    });
    EXPECT_TRUE(continued);
    Promise<int> over(pe);
    Future<int> replaced = over.future();
    over = Promise<int>(pe);
    EXPECT_THROW(static_cast<void>(replaced.get()), BrokenPromise);
  });
}

TEST(Promise, a_value_for_a_dropped_future_is_destroyed) {
  expect_run({1, 1}, [](Pe& pe) {
    int destroyed = 0;
    {
      Promise<Counted> promise(pe), never_asked(pe), asked_late(pe);
      { const auto dropped = promise.future(); }
      promise.set(Counted(&destroyed));
      never_asked.set(Counted(&destroyed));
      asked_late.set(Counted(&destroyed));
      { const auto late = asked_late.future(); }
      EXPECT_EQ(destroyed, 0);
    }
    EXPECT_EQ(destroyed, 3);
    { const Promise<Counted> unset(pe); }
  });
}

TEST(Promise, set_resumes_waiters_in_handlers_only_and_one_after_the_other) {
  expect_run({1, 1}, [](Pe& pe) {
    std::string order;
    Promise<> first(pe), second(pe), third(pe);
    first.future().then([&] {
      EXPECT_TRUE(pe.engine().in_handler());
      order += "first{";
      second.set();
      third.set();
      order += "} ";
    });
    second.future().then([&] { order += "second "; });
    third.future().then([&] { order += "third "; });
    first.set();
    EXPECT_EQ(order, "");  // the main program is no handler
    pe.progress();
    EXPECT_EQ(order, "first{} second third ");
  });
}

TEST(Promise, a_long_chain_of_promises_uses_no_stack) {
  expect_run({1, 1}, [](Pe& pe) {
    constexpr std::size_t count = 100'000;
    std::vector<Promise<std::size_t>> promises;
    std::size_t last = 0;
    for (std::size_t i = 0; i < count; ++i) promises.emplace_back(pe);
    for (std::size_t i = 0; i < count; ++i) {
      promises[i].future().then([&](std::size_t n) {
        last = n;
        if (n + 1 < count) promises[n + 1].set(n + 1);
      });
    }
    in_handler(pe, [&] { promises[0].set(0u); });
    EXPECT_EQ(last, count - 1);
  });
}

}  // namespace
}  // namespace headway
