// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <headway/am/task.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <support/counted.hpp>
#include <support/expect_error.hpp>
#include <support/later.hpp>
#include <support/run_pes.hpp>
#include <tuple>
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
using testing::Tallied;
using testing::Tally;

Task<int> one_more(Future<int> future) { co_return 1 + co_await future; }
Task<int> number(int n) { co_return n; }
Task<> nothing() { co_return; }
Task<int> failing(const char* text) {
  throw std::runtime_error(text);
  co_return 0;
}

/// Appends to `log` when it is resumed and when it is destroyed.
struct Trace {
  std::string& log;
  ~Trace() { log += "gone "; }
};
Task<> traced(Future<int>& future, std::string& log) {
  const Trace trace{log};
  log += "began ";
  log += std::to_string(co_await future) + " ";
}

TEST(Task, does_nothing_before_it_is_started_and_gives_its_value) {
  expect_run({1, 1}, [](Pe& pe) {
    std::string log;
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    { const Task<> never = traced(future, log); }
    EXPECT_EQ(log, "");
    Task<> task = traced(future, log);
    EXPECT_FALSE(task.done());
    later(pe, [&] { promise.set(5); });
    run_task(pe, std::move(task));
    EXPECT_EQ(log, "began 5 gone ");
    expect_usage_error([&] { run_task(pe, std::move(task)); }, "started once");
    EXPECT_EQ(run_task(pe, number(3)), 3);
  });
}

TEST(Task, rethrows_its_exception_in_the_waiting_coroutine) {
  expect_run({1, 1}, [](Pe& pe) {
    const auto outer = []() -> Task<std::string> {
      try {
        static_cast<void>(co_await failing("inner"));
      } catch (const std::runtime_error& error) {
        co_return error.what();
      }
      co_return "nothing";
    };
    EXPECT_EQ(run_task(pe, outer()), "inner");
    EXPECT_THROW(run_task(pe, failing("to the main program")), std::runtime_error);
  });
}

TEST(Task, is_awaited_once) {
  expect_run({1, 1}, [](Pe& pe) {
    const auto twice = []() -> Task<int> {
      Task<int> task = number(1);
      const int first = co_await task;
      co_return first + co_await task;
    };
    expect_usage_error([&] { run_task(pe, twice()); }, "started once");
  });
}

TEST(Task, run_task_in_a_handler_is_an_error) {
  expect_run({1, 1}, [](Pe& pe) {
    in_handler(pe, [&] { expect_usage_error([&] { run_task(pe, number(1)); }, "run_task() inside a handler"); });
  });
}

TEST(Task, a_loop_over_tasks_that_need_not_wait_takes_no_stack) {
  expect_run({1, 1}, [](Pe& pe) {
    const auto sum = []() -> Task<std::uint64_t> {
      std::uint64_t all = 0;
      for (int i = 0; i < 200'000; ++i) all += std::uint64_t(co_await number(i));
      co_return all;
    };
    EXPECT_EQ(run_task(pe, sum()), std::uint64_t(199'999) * 100'000);
  });
}

TEST(Task, is_not_resumed_after_it_was_destroyed_while_waiting) {
  expect_run({1, 1}, [](Pe& pe) {
    std::string log;
    Promise<int> promise(pe), other(pe);
    Future<int> future = promise.future(), another = other.future();
    {
      Task<> task = traced(future, log);
      task.start();
    }
    EXPECT_EQ(log, "began gone ");
    in_handler(pe, [&] { promise.set(1); });
    EXPECT_EQ(log, "began gone ");
    EXPECT_EQ(future.get(), 1);  // still untaken
    // Its value is set, and it would be resumed next.
    {
      Task<> task = traced(another, log);
      task.start();
      other.set(2);
    }
    while (pe.progress()) {
    }
    EXPECT_EQ(log, "began gone began gone ");
  });
}

TEST(Task, continues_after_its_waiter_was_destroyed) {
  expect_run({1, 1}, [](Pe& pe) {
    std::string log;
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    Task<> inner = traced(future, log);
    const auto outer = [](Task<>& task, std::string& text) -> Task<> {
      co_await task;
      text += "outer ";
    };
    {
      Task<> waits = outer(inner, log);
      waits.start();
    }
    in_handler(pe, [&] { promise.set(1); });
    EXPECT_TRUE(inner.done());
    EXPECT_EQ(log, "began 1 gone ");
  });
}

TEST(Spawn, runs_a_task_that_its_pe_owns) {
  expect_run({1, 1}, [](Pe& pe) {
    int destroyed = 0, done = 0;
    Promise<int> promise(pe);
    const auto task = [](Future<int> future, Counted, int& count) -> Task<int> {
      count += co_await future;
      co_return count;
    };
    spawn(pe, task(promise.future(), Counted(&destroyed), done));
    spawn(pe, nothing());
    EXPECT_EQ(destroyed, 0);
    in_handler(pe, [&] { promise.set(4); });
    EXPECT_EQ(done, 4);
    EXPECT_EQ(destroyed, 1);
  });
}

TEST(Spawn, an_exception_of_a_task_ends_the_run_and_names_the_task) {
  for (const bool at_once : {true, false}) {
    const Outcome outcome = catch_run({2, 1}, [at_once](Pe& pe) {
      if (pe.id() == 0) return;
      Promise<int> promise(pe);
      const auto task = [](Future<int> future) -> Task<> {
        static_cast<void>(co_await future);
        co_await failing("too bad");
      };
      if (at_once) promise.set(1);
      spawn(pe, task(promise.future()));
      promise.set(1);
      pe.quiesce();
    });
    EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
    EXPECT_NE(outcome.text.find("PE 1"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("a task that was spawned at task_test.cpp:"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("threw: too bad"), std::string::npos) << outcome.text;
  }
}

TEST(Spawn, tasks_that_still_wait_when_the_run_ends_are_destroyed_and_reported) {
  Shared<int> destroyed;
  const Outcome outcome = catch_run({3, 3}, [&](Pe& pe) {
    if (pe.id() != 2) return;
    const auto task = [](Pe& here, Counted) -> Task<> {
      Promise<> own(here);
      Future<> future = own.future();
      co_await future;
      ADD_FAILURE() << "resumed";
    };
    const auto outer = [&task](Pe& here, int* count) -> Task<> { co_await task(here, Counted(count)); };
    for (int i = 0; i < 5; ++i) spawn(pe, outer(pe, &*destroyed));
    spawn(pe, task(pe, Counted(&*destroyed)));
  });
  EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
  EXPECT_NE(outcome.text.find("6 coroutines on PE 2 still wait at the end of the run: a task that was "
                              "spawned at task_test.cpp:"),
            std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("(5)"), std::string::npos) << outcome.text;
  EXPECT_EQ(*destroyed, 6);
}

TEST(WhenAll, gives_the_values_of_futures_in_order) {
  expect_run({1, 1}, [](Pe& pe) {
    std::vector<Promise<int>> promises;
    std::vector<Future<int>> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(promises.emplace_back(pe).future());
    later(pe, [&] {
      for (int i = 99; i >= 0; --i) promises[std::size_t(i)].set(i);
    });
    const std::vector<int> values = run_task(pe, when_all(pe, std::move(futures)));
    ASSERT_EQ(values.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(values[std::size_t(i)], i);
    EXPECT_TRUE(run_task(pe, when_all(pe, std::vector<Future<int>>())).empty());
    run_task(pe, when_all(pe, std::vector<Future<>>()));
  });
}

TEST(WhenAll, throws_the_first_failure_when_all_are_ready) {
  expect_run({1, 1}, [](Pe& pe) {
    std::vector<Promise<>> promises;
    std::vector<Future<>> futures;
    for (int i = 0; i < 4; ++i) futures.push_back(promises.emplace_back(pe).future());
    const auto task = [](Pe& here, std::vector<Future<>> all, std::string& text) -> Task<> {
      try {
        co_await when_all(here, std::move(all));
      } catch (const std::exception& error) {
        text = error.what();
      }
    };
    std::string text;
    spawn(pe, task(pe, std::move(futures), text));
    in_handler(pe, [&] {
      promises[2].fail(std::make_exception_ptr(std::runtime_error("number 2")));
      promises[1].fail(std::make_exception_ptr(std::runtime_error("number 1")));
      promises[0].set();
    });
    EXPECT_EQ(text, "");
    in_handler(pe, [&] { promises[3].set(); });
    EXPECT_EQ(text, "number 1");
  });
}

TEST(WhenAll, runs_tasks_together) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<int> first(pe), second(pe);
    std::vector<Task<int>> tasks;
    tasks.push_back(one_more(first.future()));
    tasks.push_back(one_more(second.future()));
    tasks.push_back(number(30));
    later(pe, [&] { second.set(20); });
    later(pe, [&] { first.set(10); });
    EXPECT_EQ(run_task(pe, when_all(std::move(tasks))), (std::vector<int>{11, 21, 30}));

    const auto text = []() -> Task<std::string> { co_return "text"; };
    const auto all = run_task(pe, when_all(number(1), text(), nothing()));
    EXPECT_EQ(std::get<0>(all), 1);
    EXPECT_EQ(std::get<1>(all), "text");

    std::vector<Task<>> many;
    for (int i = 0; i < 1000; ++i) many.push_back(nothing());
    run_task(pe, when_all(std::move(many)));
    EXPECT_TRUE(run_task(pe, when_all(std::vector<Task<int>>())).empty());
  });
}

TEST(WhenAll, an_exception_of_a_task_does_not_stop_the_others) {
  expect_run({1, 1}, [](Pe& pe) {
    Promise<int> promise(pe);
    std::string log;
    Future<int> future = promise.future();
    std::vector<Task<>> tasks;
    const auto throws = [](const char* text) -> Task<> { static_cast<void>(co_await failing(text)); };
    tasks.push_back(traced(future, log));
    tasks.push_back(throws("second"));
    tasks.push_back(throws("third"));
    later(pe, [&] { promise.set(1); });
    try {
      run_task(pe, when_all(std::move(tasks)));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "second");
    }
    EXPECT_EQ(log, "began 1 gone ");
  });
}

TEST(WhenAll, destroying_it_destroys_its_tasks) {
  expect_run({1, 1}, [](Pe& pe) {
    std::string log;
    Promise<int> promise(pe);
    Future<int> future = promise.future();
    std::vector<Task<>> tasks;
    tasks.push_back(nothing());
    tasks.push_back(traced(future, log));
    {
      Task<> all = when_all(std::move(tasks));
      all.start();
    }
    EXPECT_EQ(log, "began gone ");
    in_handler(pe, [&] { promise.set(1); });
    EXPECT_EQ(log, "began gone ");
  });
}

// --- temporaries beside co_await

/// An aggregate, which braces initialise member by member.
struct Braced {
  Tallied tallied;
  int number;
};
Task<> look_at(const auto&...) { co_return; }

// If this fails with a new compiler, am::destroys_temporaries_twice must name it correctly.
TEST(Task, temporaries_beside_co_await_are_destroyed_twice_by_the_compilers_that_are_known_for_it_alone) {
  const auto braces = [](Tally& tally) -> Task<> { co_await look_at(Braced{Tallied(tally), 1}); };
  const auto captures = [](Tally& tally) -> Task<> {
    const Tallied named(tally);
    co_await look_at([named] {});
  };
  const auto constructor = [](Tally& tally) -> Task<> { co_await look_at(Tallied(tally), 1); };
  const auto named = [](Tally& tally) -> Task<> {
    const Braced label{Tallied(tally), 1};
    co_await look_at(label);
  };
  expect_run({1, 1}, [&](Pe& pe) {
    const auto destroyed_too_often = [&pe](auto body) {
      Tally tally;
      run_task(pe, body(tally));
      EXPECT_GE(tally.made, 1);
      return tally.destroyed - tally.made;
    };
    EXPECT_EQ(destroyed_too_often(braces), am::destroys_temporaries_twice ? 1 : 0);
    EXPECT_EQ(destroyed_too_often(captures), am::destroys_temporaries_twice ? 1 : 0);
    EXPECT_EQ(destroyed_too_often(constructor), 0);
    EXPECT_EQ(destroyed_too_often(named), 0);
  });
}

}  // namespace
}  // namespace headway
