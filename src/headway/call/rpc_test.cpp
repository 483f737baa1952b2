// SPDX-License-Identifier: BSD-3-Clause
// rpc() to functions: results, exceptions, answers to no call, and many calls at once.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <headway/call/rpc.hpp>
#include <headway/call/rpc_test.hpp>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using call::CallNumber;
using rpc_test::next_of;
using rpc_test::twice;
using testing::catch_run;
using testing::expect_run;
using testing::Outcome;
using testing::Shape;
using testing::shapes;

int twice_for_sure(int n) noexcept { return 2 * n; }
std::uint64_t add_to(std::uint64_t& sum, std::uint64_t value) { return sum += value; }
int throw_text(const std::string& text) { throw std::runtime_error(text); }

TEST(Rpc, gives_the_main_program_its_result) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      for (std::size_t target = 0; target < pe.size(); ++target) {
        EXPECT_EQ(rpc(
                      pe, target, [](Pe& there, int n) { return int(there.id()) + n; }, 5)
                      .get(),
                  int(target) + 5);
      }
      pe.quiesce();
    });
  }
}

TEST(Rpc, gives_a_callback_its_result) {
  expect_run({5, 2}, [](Pe& pe) {
    int sum = 0;
    for (int i = 0; i < 100; ++i) rpc(pe, std::size_t(i) % pe.size(), twice, i).then([&](int n) { sum += n; });
    EXPECT_EQ(pe.quiesce(), 200 * pe.size());
    EXPECT_EQ(sum, 9900);
  });
}

TEST(Rpc, brings_back_values_of_every_kind) {
  struct Point {
    double x, y;
    bool operator==(const Point&) const = default;
  };
  struct Record {
    std::string name;
    std::vector<int> values;
    std::map<int, std::string> texts;
    bool operator==(const Record&) const = default;
  };
  expect_run({3, 1}, [](Pe& pe) {
    const std::size_t next = next_of(pe);
    EXPECT_EQ(rpc(pe, next, [] { return true; }).get(), true);
    EXPECT_EQ(rpc(
                  pe, next, [](double x) { return x / 2; }, 5.0)
                  .get(),
              2.5);
    EXPECT_EQ(rpc(
                  pe, next,
                  [](const Point& p) {
                    return Point{p.y, p.x};
                  },
                  Point{1, 2})
                  .get(),
              (Point{2, 1}));
    const auto shouted = [](std::string_view text) { return std::string(text) + "!"; };
    EXPECT_EQ(rpc(pe, next, shouted, "literal").get(), "literal!");
    EXPECT_EQ(rpc(pe, next, [] { return std::string(); }).get(), "");
    EXPECT_EQ(rpc(
                  pe, next, [](std::size_t n) { return std::string(n, 's'); }, std::size_t(1'000'000))
                  .get(),
              std::string(1'000'000, 's'));
    std::vector<std::uint64_t> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), 0);
    const auto reversed = [](std::span<const std::uint64_t> s) {
      return std::vector<std::uint64_t>(s.rbegin(), s.rend());
    };
    const std::vector<std::uint64_t> backwards(numbers.rbegin(), numbers.rend());
    EXPECT_EQ(rpc(pe, next, reversed, std::span<const std::uint64_t>(numbers)).get(), backwards);
    EXPECT_EQ(rpc(pe, next, reversed, numbers).get(), backwards);
    const Record record{"r", {1, 2}, {{1, "one"}}};
    const auto changed = [](const Record& r) {
      Record more = r;
      more.values.push_back(3);
      return more;
    };
    EXPECT_EQ(rpc(pe, next, changed, record).get(), (Record{"r", {1, 2, 3}, {{1, "one"}}}));
    using Texts = std::vector<std::string>;
    EXPECT_EQ(rpc(
                  pe, next, [](int n) { return Texts(std::size_t(n), "text"); }, 3)
                  .get(),
              Texts(3, "text"));
    using Maybe = std::optional<std::vector<int>>;
    const auto maybe = [](bool some) { return some ? Maybe(std::vector<int>(1, 7)) : std::nullopt; };
    EXPECT_EQ(rpc(pe, next, maybe, true).get(), maybe(true));
    EXPECT_EQ(rpc(pe, next, maybe, false).get(), std::nullopt);
    EXPECT_EQ(rpc(pe, next, [] { return std::array<std::uint64_t, 9>{1, 2, 3}; }).get()[2], 3u);
    pe.quiesce();
  });
}

TEST(Rpc, calls_functions_of_every_kind) {
  expect_run({3, 3}, [](Pe& pe) {
    const std::size_t next = next_of(pe);
    DistObject<std::uint64_t> sum(pe, pe.id() * 1000);
    EXPECT_EQ(rpc(pe, next, twice, 4).get(), 8);
    EXPECT_EQ(rpc(pe, next, &twice_for_sure, 4).get(), 8);
    EXPECT_EQ(rpc(pe, next, add_to, sum, std::uint64_t(1)).get(), next * 1000 + 1);
    pe.quiesce();
    // The caller gets a value, also where the function returns a reference.
    const auto of_mine = [](std::uint64_t& mine) -> const std::uint64_t& { return mine; };
    EXPECT_EQ(rpc(pe, next, of_mine, sum).get(), next * 1000 + 1);
    Future<> nothing = rpc(
        pe, next, [](std::uint64_t& mine) { mine += 10; }, sum);
    nothing.get();
    EXPECT_EQ(rpc(pe, next, of_mine, sum).get(), next * 1000 + 11);
    pe.quiesce();
  });
}

TEST(Rpc, goes_by_any_aggregator_of_calls) {
  expect_run({5, 1}, [](Pe& pe) {
    CallAggregator calls(pe, {.buffer_bytes = 1_KiB, .topology = grid(2)});
    int sum = 0;
    for (int i = 0; i < 1000; ++i) rpc(calls, std::size_t(i) % pe.size(), twice, i).then([&](int n) { sum += n; });
    EXPECT_EQ(calls.statistics().messages, 1000u);
    pe.quiesce();
    EXPECT_EQ(sum, 999'000);
  });
}

// --- failures

template <class F>
std::string remote_error_of(F f, PeId expected) {
  try {
    f();
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.pe, expected);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Rpc, brings_back_exceptions) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 1}, Shape{4, 4}}) {
    expect_run(shape, [](Pe& pe) {
      const std::size_t next = next_of(pe);
      const std::string text = "of PE " + std::to_string(pe.id());
      const std::string plain =
          remote_error_of([&] { static_cast<void>(rpc(pe, next, throw_text, text).get()); }, next);
      EXPECT_NE(plain.find("on PE " + std::to_string(next) + " threw: " + text), std::string::npos) << plain;
      EXPECT_NE(plain.find("int (*)(const std::"), std::string::npos) << plain;
      const std::string lambda = remote_error_of(
          [&] {
            rpc(
                pe, next, [](int n) { throw n; }, 1)
                .get();
          },
          next);
      EXPECT_NE(lambda.find("lambda"), std::string::npos) << lambda;
      EXPECT_NE(lambda.find("threw: something that is no std::exception"), std::string::npos) << lambda;
      const std::string coroutine = remote_error_of(
          [&] {
            const auto throws = [](Pe& there) -> Task<int> {
              static_cast<void>(co_await rpc(there, 0, twice, 1));
              throw std::runtime_error("late");
            };
            static_cast<void>(rpc(pe, next, throws).get());
          },
          next);
      EXPECT_NE(coroutine.find("threw: late"), std::string::npos) << coroutine;
      pe.quiesce();
      EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
    });
  }
}

TEST(Rpc, an_exception_passes_through_the_pes_that_wait_for_it) {
  expect_run({3, 1}, [](Pe& pe) {
    struct Chain {
      static Task<int> ask(Pe& here, int left) {
        if (left == 0) throw std::runtime_error("the end");
        co_return co_await rpc(here, next_of(here), ask, left - 1);
      }
    };
    const std::string text =
        remote_error_of([&] { static_cast<void>(rpc(pe, next_of(pe), Chain::ask, 2).get()); }, next_of(pe));
    for (std::size_t pe_on_the_way = 0; pe_on_the_way < pe.size(); ++pe_on_the_way) {
      EXPECT_NE(text.find("on PE " + std::to_string(pe_on_the_way) + " threw: "), std::string::npos) << text;
    }
    EXPECT_TRUE(text.ends_with("the end")) << text;
    pe.quiesce();
  });
}

TEST(Rpc, a_failure_that_a_spawned_task_does_not_catch_ends_the_run) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    const auto task = [](Pe& here) -> Task<> {
      const std::string text = "not today";
      static_cast<void>(co_await rpc(here, 1, throw_text, text));
    };
    if (pe.id() == 0) spawn(pe, task(pe));
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
  EXPECT_NE(outcome.text.find("a task that was spawned at rpc_test.cpp:"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("on PE 1 threw: not today"), std::string::npos) << outcome.text;
}

TEST(Rpc, a_destination_out_of_range_is_refused_and_leaves_nothing) {
  expect_run({2, 1}, [](Pe& pe) {
    EXPECT_THROW(static_cast<void>(rpc(pe, 2, twice, 1)), UsageError);
    EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
    EXPECT_EQ(pe.quiesce(), 0u);
  });
}

TEST(Rpc, waiting_for_it_in_a_handler_is_an_error_that_comes_back) {
  expect_run({2, 1}, [](Pe& pe) {
    const auto waits = [](Pe& there) { return rpc(there, 0, twice, 1).get(); };
    const std::string text = remote_error_of([&] { static_cast<void>(rpc(pe, 1, waits).get()); }, 1);
    EXPECT_NE(text.find("get() of a future inside a handler: a handler may not wait; make it a coroutine"),
              std::string::npos)
        << text;
    pe.quiesce();
  });
}

// Answers without a call. Their functions are like any other; only the call numbers mark them as answers.
TEST(Rpc, answers_to_no_call_end_the_run_and_say_so) {
  struct Case {
    void (*body)(Pe&);
    const char* text;
  };
  const Case cases[] = {
      {[](Pe& pe) {
         rpc_ff(pe, 0, call::TakeAnswer<int>(), CallNumber{7, 0}, 1);
       },
       "no call that waits for one"},
      {[](Pe& pe) {
         auto used = rpc(pe, 0, twice, 1);
         static_cast<void>(used.get());
         rpc_ff(pe, 0, call::TakeAnswer<int>(), CallNumber{0, 0}, 1);  // the same once more
         auto again = rpc(pe, 0, twice, 1);
         static_cast<void>(again.get());
       },
       "no call that waits for one"},
      {[](Pe& pe) {
         static_cast<void>(rpc(pe, 0, twice, 1));
         rpc_ff(pe, 0, call::TakeAnswer<double>(), CallNumber{0, 0}, 1.0);
       },
       "with a value of another type than its function returns"},
      {[](Pe& pe) {
         static_cast<void>(rpc(pe, 1, twice, 1));
         rpc_ff(pe, 0, call::TakeAnswer<int>(), CallNumber{0, 0}, 1);
       },
       "PE 0 answers call 0, which went to PE 1"},
  };
  for (const Case& c : cases) {
    const Outcome outcome = catch_run({2, 1}, [&c](Pe& pe) {
      if (pe.id() == 0) c.body(pe);
      pe.quiesce();
    });
    EXPECT_EQ(outcome.status, exit_status::failed) << outcome.text;
    EXPECT_NE(outcome.text.find(c.text), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find("'rpc_ff'"), std::string::npos) << outcome.text;
  }
}

// --- many, and those without a waiting caller

TEST(Rpc, thousands_are_under_way_at_once) {
  for (const Shape shape : shapes) {
    expect_run(shape,
               [](Pe& pe) {
                 std::vector<Future<std::string>> futures;
                 const auto repeat = [](int n) { return std::string(std::size_t(n % 200), char('a' + n % 26)); };
                 for (int i = 0; i < 5000; ++i) futures.push_back(rpc(pe, std::size_t(i) % pe.size(), repeat, i));
                 int wrong = 0;
                 for (int i = 4999; i >= 0; --i) wrong += futures[std::size_t(i)].get() != repeat(i);
                 EXPECT_EQ(wrong, 0);
                 pe.quiesce();
               },
               {{"HEADWAY_BUDGET", "1M"}});
  }
}

TEST(Rpc, quiesce_counts_calls_whose_future_was_dropped) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      DistObject<std::uint64_t> calls(pe, 0u);
      for (int i = 0; i < 500; ++i) {
        static_cast<void>(rpc(pe, std::size_t(i) % pe.size(), add_to, calls, std::uint64_t(1)));
      }
      static_cast<void>(rpc(pe, next_of(pe), [] { throw std::runtime_error("nobody is told"); }));
      EXPECT_EQ(pe.quiesce(), 2 * 501 * pe.size());
      EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
      std::uint64_t mine = 0;
      for (std::uint64_t i = 0; i < 500; ++i) mine += i % pe.size() == pe.id() ? pe.size() : 0;
      EXPECT_EQ(*calls, mine);
    });
  }
}

}  // namespace
}  // namespace headway
