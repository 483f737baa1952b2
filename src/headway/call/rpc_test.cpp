// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <headway/am/epoch.hpp>
#include <headway/am/wait.hpp>
#include <headway/call/rpc.hpp>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <support/counted.hpp>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using call::CallNumber;
using testing::catch_run;
using testing::Counted;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;
using testing::shapes;
using testing::Shared;
using testing::Tallied;
using testing::Tally;

int twice(int n) { return 2 * n; }
int twice_for_sure(int n) noexcept { return 2 * n; }
std::uint64_t add_to(std::uint64_t& sum, std::uint64_t value) { return sum += value; }
int throw_text(const std::string& text) { throw std::runtime_error(text); }

std::size_t next_of(Pe& pe) { return (pe.id() + 1) % pe.size(); }

Task<> ask_all(Pe& pe, int& done) {
  for (std::size_t target = 0; target < pe.size(); ++target) {
    const int n = int(10 * pe.id() + target);
    EXPECT_EQ(co_await rpc(pe, target, twice, n), 2 * n);
    const auto ids = [](Pe& there, PeId source, int k) { return int(there.id() * 100 + source) + k; };
    EXPECT_EQ(co_await rpc(pe, target, ids, n), int(target * 100 + pe.id()) + n);
  }
  ++done;
}

TEST(Rpc, gives_a_coroutine_the_results_of_functions_on_other_pes) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      int done = 0;
      spawn(pe, ask_all(pe, done));
      EXPECT_EQ(pe.quiesce(), 4 * pe.size() * pe.size());
      EXPECT_EQ(done, 1);
    });
  }
}

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

// --- coroutines

/// Sums the numbers of the PEs from here to the last of `left` more.
Task<std::uint64_t> sum_along(Pe& pe, std::uint32_t left) {
  if (left == 0) co_return pe.id();
  co_return pe.id() + co_await rpc(pe, next_of(pe), sum_along, left - 1);
}

TEST(Rpc, coroutines_call_on_and_answer_when_they_are_done) {
  for (const Shape shape : {Shape{1, 1}, Shape{2, 1}, Shape{3, 3}, Shape{5, 1}, Shape{8, 1}, Shape{8, 4}}) {
    expect_run(shape, [](Pe& pe) {
      const std::uint64_t pes = pe.size();
      constexpr std::uint64_t rounds = 20;
      const std::uint64_t once_round = pes * (pes - 1) / 2;
      EXPECT_EQ(rpc(pe, next_of(pe), sum_along, std::uint32_t(rounds * pes - 1)).get(), rounds * once_round);
      EXPECT_EQ(run_task(pe, sum_along(pe, std::uint32_t(pes - 1))), once_round);
      pe.quiesce();
    });
  }
}

Task<std::uint64_t> fibonacci(Pe& pe, std::uint32_t n) {
  if (n < 2) co_return n;
  const std::uint32_t before = n - 1;
  Future<std::uint64_t> left = rpc(pe, (pe.id() * 7 + n) % pe.size(), fibonacci, before);
  const std::uint64_t right = co_await fibonacci(pe, n - 2);
  co_return right + co_await left;
}

TEST(Rpc, a_tree_of_coroutines_over_all_pes_comes_to_its_sum) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      EXPECT_EQ(run_task(pe, fibonacci(pe, 14)), 377u);
      pe.quiesce();
      EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
    });
  }
}

TEST(Rpc, coroutines_take_values_and_the_receivers_objects) {
  expect_run({3, 1}, [](Pe& pe) {
    DistObject<std::vector<std::string>> texts(pe);
    const auto add = [](Pe& there, PeId source, std::vector<std::string>& mine, std::string text,
                        std::vector<int> numbers) -> Task<std::string> {
      static_cast<void>(co_await rpc(there, source, twice, 1));  // the message is gone after this
      mine.push_back(text + std::to_string(std::accumulate(numbers.begin(), numbers.end(), 0)));
      co_return mine.back();
    };
    const std::string text(100, 'x');
    const std::vector<int> numbers(50, 2);
    EXPECT_EQ(rpc(pe, next_of(pe), add, texts, text, numbers).get(), text + "100");
    pe.quiesce();
    EXPECT_EQ(texts->size(), 1u);
  });
}

/// What GCC 12 destroys twice where it is made with braces in an expression with co_await (GCC bug 99576).
struct Label {
  std::string text;
  int number;
};

// The forms that the pages show, where AddressSanitizer looks on.
TEST(Rpc, named_arguments_are_destroyed_once) {
  expect_run({2, 1}, [](Pe& pe) {
    const auto ask = [](Pe& here) -> Task<std::size_t> {
      const auto length = [](const Label& label) { return label.text.size() + std::size_t(label.number); };
      const Label label{std::string(100, 'l'), 1};
      const std::size_t named = co_await rpc(here, next_of(here), length, label);
      auto future = rpc(here, next_of(here), length, label);
      std::vector<Future<std::size_t>> futures;
      futures.push_back(std::move(future));
      futures.push_back(rpc(here, 0, length, label));
      const std::vector<std::size_t> both = co_await when_all(here, std::move(futures));
      co_return named + both[0] + both[1];
    };
    EXPECT_EQ(run_task(pe, ask(pe)), 303u);
    pe.quiesce();
  });
}

/// A Label that is tallied.
struct TalliedLabel {
  Tallied tallied;
  std::string text;
};
/// With a temporary where the compiler destroys it once, and rpc takes it.
template <class Made>
Task<std::size_t> ask_length(Pe& pe, Tally& tally) {
  const auto length = [](const Made& label) { return label.text.size(); };
  if constexpr (am::destroys_temporaries_twice) {
    const Made label{Tallied(tally), std::string(100, 'l')};
    co_return co_await rpc(pe, next_of(pe), length, label);
  } else {
    co_return co_await rpc(pe, next_of(pe), length, Made{Tallied(tally), std::string(100, 'l')});
  }
}

TEST(Rpc, an_argument_is_destroyed_once_in_the_shortest_form_that_compiles) {
  expect_run({2, 1}, [](Pe& pe) {
    Tally tally;
    EXPECT_EQ(run_task(pe, ask_length<TalliedLabel>(pe, tally)), 100u);
    EXPECT_EQ(tally.made, 1);
    EXPECT_EQ(tally.destroyed, 1);
    pe.quiesce();
  });
}

TEST(RpcFf, a_function_that_is_a_coroutine_runs_to_its_end) {
  expect_run({3, 1}, [](Pe& pe) {
    DistObject<int> sum(pe, 0);
    const auto add = [](Pe& there, PeId source, int& mine, int n) -> Task<> {
      mine += co_await rpc(there, source, twice, n);
    };
    for (std::size_t target = 0; target < pe.size(); ++target) rpc_ff(pe, target, add, sum, int(target));
    pe.quiesce();
    EXPECT_EQ(*sum, int(3 * 2 * pe.id()));
  });
}

TEST(Aggregator, a_handler_that_is_a_coroutine_runs_to_its_end) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      std::size_t sum = 0;
      int began = 0;
      Aggregator<std::string, int> texts(pe);
      texts.on([&sum, count = 0, &began](Pe& here, PeId source, std::string text, int n) mutable -> Task<> {
        began = ++count;
        sum += text.size() + std::size_t(co_await rpc(here, source, twice, n));
        sum += text.size();
      });
      const std::string text(1000, 'x');
      for (int i = 0; i < 100; ++i) texts.send(std::size_t(i) % pe.size(), text, i);
      EXPECT_EQ(pe.quiesce(), 3 * 100 * pe.size());
      std::size_t expected = 0;
      int mine = 0;
      for (std::size_t i = pe.id(); i < 100; i += pe.size()) {
        expected += pe.size() * (2000 + 2 * i);
        mine += int(pe.size());
      }
      EXPECT_EQ(sum, expected);
      EXPECT_EQ(began, mine);
    });
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

TEST(Rpc, when_all_waits_for_many) {
  expect_run({5, 2}, [](Pe& pe) {
    const auto ask = [](Pe& here) -> Task<int> {
      std::vector<Future<int>> futures;
      for (int i = 0; i < 1000; ++i) futures.push_back(rpc(here, std::size_t(i) % here.size(), twice, i));
      const std::vector<int> values = co_await when_all(here, std::move(futures));
      co_return std::accumulate(values.begin(), values.end(), 0);
    };
    EXPECT_EQ(run_task(pe, ask(pe)), 999'000);
    pe.quiesce();
  });
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

TEST(Rpc, an_epoch_counts_its_calls_their_answers_and_later_calls_of_coroutines) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      int done = 0;
      Epoch epoch(pe);
      spawn(pe, ask_all(pe, done));
      EXPECT_EQ(epoch.wait(), 4 * pe.size() * pe.size());
      EXPECT_EQ(done, 1);
      pe.quiesce();
    });
  }
}

TEST(Rpc, a_wait_in_an_epoch_for_a_promise_of_the_main_program_keeps_the_epoch_open) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Promise<> go(pe);
      int answers = 0;
      const auto task = [](Pe& here, Future<> when, int& count) -> Task<> {
        co_await when;
        count += co_await rpc(here, next_of(here), twice, 1);
      };
      spawn(pe, task(pe, go.future(), answers));
      Epoch epoch(pe);
      go.set();  // the task goes on in the epoch
      EXPECT_EQ(epoch.wait(), 2 * pe.size());
      EXPECT_EQ(answers, 2);
      pe.quiesce();
    });
  }
}

TEST(Rpc, a_coroutine_that_is_destroyed_while_it_waits_is_not_resumed) {
  expect_run({3, 1}, [](Pe& pe) {
    int destroyed = 0;
    const auto ask = [](Pe& here, Counted) -> Task<> {
      static_cast<void>(co_await rpc(here, next_of(here), twice, 1));
      ADD_FAILURE() << "resumed";
    };
    for (int i = 0; i < 100; ++i) {
      Task<> task = ask(pe, Counted(&destroyed));
      task.start();
    }
    EXPECT_EQ(destroyed, 100);
    EXPECT_EQ(pe.quiesce(), 2 * 100 * pe.size());
    EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
  });
}

TEST(Rpc, a_call_that_is_never_answered_ends_the_run_and_says_so) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    const auto never = [](Pe& there) -> Task<int> {
      Promise<int> own(there);
      Future<int> future = own.future();
      co_return co_await future;
    };
    if (pe.id() == 0) static_cast<void>(rpc(pe, 1, never));
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, exit_status::undelivered) << outcome.text;
  const char* text = "1 coroutine on PE 1 still waits at the end of the run: a call that is to be ";
  EXPECT_NE(outcome.text.find(text), std::string::npos) << outcome.text;
}

Task<> wait_and_count(Pe& pe, std::size_t target, std::uint64_t n, std::uint64_t& sum) {
  const std::vector<std::uint64_t> kept(8, n);  // something to leak
  const auto next = [](std::uint64_t k) { return k + 1; };
  const std::uint64_t first = co_await rpc(pe, target, next, n);
  const std::uint64_t second = co_await rpc(pe, (target + 1) % pe.size(), next, first);
  sum += second - kept[7];
}

TEST(Rpc, ten_thousand_coroutines_wait_on_every_pe_and_none_is_lost) {
  for (const Shape shape : {Shape{1, 1}, Shape{3, 3}, Shape{4, 1}}) {
    expect_run(shape, [](Pe& pe) {
      std::uint64_t sum = 0;
      for (std::uint64_t i = 0; i < 10'000; ++i) spawn(pe, wait_and_count(pe, i % pe.size(), i, sum));
      EXPECT_EQ(pe.quiesce(), 4 * 10'000 * pe.size());
      EXPECT_EQ(sum, 20'000u);
      EXPECT_EQ(call::PendingCalls::of(pe).size(), 0u);
    });
  }
}

}  // namespace
}  // namespace headway
