// SPDX-License-Identifier: BSD-3-Clause
// rpc() from coroutines and to coroutines: waits, epochs, and the lifetime of arguments.
#include <gtest/gtest.h>

#include <cstdint>
#include <headway/am/epoch.hpp>
#include <headway/am/wait.hpp>
#include <headway/call/rpc.hpp>
#include <headway/call/rpc_test.hpp>
#include <numeric>
#include <string>
#include <support/counted.hpp>
#include <support/run_pes.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using rpc_test::next_of;
using rpc_test::twice;
using testing::catch_run;
using testing::Counted;
using testing::expect_run;
using testing::Outcome;
using testing::Shape;
using testing::shapes;
using testing::Tallied;
using testing::Tally;

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
