// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>
#include <support/task.hpp>
#include <utility>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using testing::Shape;
using testing::shapes;
using testing::Task;

/// Each message is sent on to the next PE until it is 0.
class Countdowns {
 public:
  explicit Countdowns(Pe& pe, const AggregatorOptions& options = {}) : pe_(&pe), words_(pe, options) {
    words_.on([this](int left) {
      ++handled;
      if (left != 0) send(left - 1);
    });
  }
  void send(int from) { words_.send((pe_->id() + 1) % pe_->size(), from); }

  std::uint64_t handled = 0;

 private:
  Pe* pe_;
  Aggregator<int> words_;
};

TEST(EpochOverlap, an_epoch_gets_done_while_the_program_works_on) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Countdowns first_words(pe, {.topology = grid(2)}), second_words(pe);
      Epoch first(pe);
      first_words.send(20);
      first.close();
      Epoch second(pe);
      std::uint64_t sent = 0;
      // Sends, and progress(), are all that the first needs to get done.
      for (; sent < 1000 || !first.done(); ++sent) {
        second_words.send(0);
        if (sent % 16 == 0) pe.progress();
      }
      EXPECT_EQ(first.handled(), 21 * pe.size());
      EXPECT_EQ(first.wait(), 21 * pe.size());
      EXPECT_GE(second.wait(), 1000 * pe.size());
      pe.quiesce();
    });
  }
}

TEST(EpochOverlap, a_program_that_only_sends_gets_earlier_epochs_done) {
  expect_run({2, 1}, [](Pe& pe) {
    Countdowns words(pe, {.topology = direct()});
    Epoch first(pe);
    words.send(5);
    first.close();
    while (!first.done()) words.send(0);
    EXPECT_EQ(first.handled(), 12u);
    pe.quiesce();
  });
}

TEST(EpochOverlap, continuations_run_as_handlers_of_the_epoch_in_which_they_were_registered) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Countdowns words(pe, {.topology = grid(2)});
      const std::uint64_t pes = pe.size();
      std::uint64_t ran = 0;
      Epoch outer(pe);
      Epoch inner(pe);
      words.send(2);
      inner.then([&](std::uint64_t handled) {
        EXPECT_EQ(handled, 3 * pes);
        expect_usage_error([&] { pe.quiesce(); }, "inside a handler");
        words.send(1);  // in `outer`
        ++ran;
      });
      inner.then([&](std::uint64_t) { ++ran; });
      EXPECT_EQ(ran, 0u);
      EXPECT_EQ(outer.wait(), 5 * pes);
      EXPECT_EQ(ran, 2u);
      inner.then([&](std::uint64_t handled) {  // it is done already
        EXPECT_EQ(handled, 3 * pes);
        words.send(0);
        ++ran;
      });
      EXPECT_EQ(ran, 2u);
      EXPECT_EQ(pe.quiesce(), 6 * pes);
      EXPECT_EQ(ran, 3u);
    });
  }
}

TEST(EpochOverlap, a_chain_of_continuations_makes_epoch_after_epoch) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Countdowns words(pe);
      int rounds = 0;
      std::function<void(std::uint64_t)> next = [&](std::uint64_t) {
        if (++rounds > 200) return;
        Epoch epoch(pe);
        words.send(1);
        epoch.then(next);
      };
      Epoch outer(pe);
      {
        Epoch first(pe);
        first.then(next);
      }
      EXPECT_EQ(outer.wait(), 400 * pe.size());
      EXPECT_EQ(rounds, 201);
    });
  }
}

Task levels(Pe& pe, Countdowns& words, int& finished) {
  for (int level = 0; level < 100; ++level) {
    Epoch epoch(pe);
    for (int i = 0; i < level; ++i) words.send(2);
    const std::uint64_t handled = co_await epoch;
    EXPECT_EQ(handled, 3u * unsigned(level) * pe.size());
  }
  ++finished;
}

TEST(EpochOverlap, a_coroutine_waits_for_epochs_and_makes_the_next_ones) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Countdowns words(pe, {.topology = grid(2)});
      int finished = 0;
      const Task task = levels(pe, words, finished);
      EXPECT_EQ(finished, 0);
      EXPECT_EQ(pe.quiesce(), 3 * 4950 * pe.size());
      EXPECT_EQ(finished, 1);
      EXPECT_TRUE(task.done());
    });
  }
}

Task nested(Pe& pe, Countdowns& words, std::uint64_t& total) {
  {
    Epoch begin(pe);
    co_await begin;
  }
  Epoch outer(pe);
  words.send(0);
  for (int i = 0; i < 3; ++i) {
    Epoch inner(pe);
    words.send(1);
    EXPECT_EQ(co_await inner, 2 * pe.size());
    words.send(0);  // in `outer` again
  }
  total = co_await outer;
}

TEST(EpochOverlap, a_coroutine_keeps_an_epoch_open_while_it_waits_for_those_within) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Countdowns words(pe);
      std::uint64_t total = 0;
      const Task task = nested(pe, words, total);
      words.send(0);  // this belongs to none
      EXPECT_EQ(pe.quiesce(), 11 * pe.size());
      EXPECT_EQ(total, 10 * pe.size());
    });
  }
}

Task wait_for_ever(Epoch& epoch, int& resumed) {
  co_await epoch;
  ++resumed;
}

Task wait_for_own(Pe& pe, Countdowns& words) {
  Epoch outer(pe);
  Epoch inner(pe);
  words.send(3);
  co_await inner;
  ADD_FAILURE() << "resumed";
}

TEST(EpochOverlap, a_coroutine_that_is_destroyed_is_not_resumed_and_its_epochs_end) {
  for (const Shape shape : shapes) {
    expect_run(shape, [](Pe& pe) {
      Countdowns words(pe);
      int resumed = 0;
      Epoch epoch(pe);
      words.send(1);
      { const Task dropped = wait_for_ever(epoch, resumed); }
      { const Task dropped = wait_for_own(pe, words); }
      words.send(0);
      EXPECT_EQ(pe.quiesce(), (2 + 4 + 1) * pe.size());
      EXPECT_EQ(epoch.handled(), 2 * pe.size());
      EXPECT_EQ(resumed, 0);
      const Task late = wait_for_ever(epoch, resumed);  // it is done: nothing to wait for
      EXPECT_EQ(resumed, 1);
    });
  }
}

TEST(EpochOverlap, an_epoch_of_the_main_program_is_not_ended_by_a_coroutine_that_was_resumed) {
  expect_run({2, 1}, [](Pe& pe) {
    auto task = [](Pe& here) -> Task {
      Epoch outer(here);
      Epoch inner(here);
      co_await inner;
      expect_usage_error([&] { outer.close(); }, "the main program ends it");
    }(pe);
    pe.quiesce();
    EXPECT_TRUE(task.done());
  });
}

TEST(EpochOverlap, an_exception_of_a_continuation_ends_the_run) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    Epoch epoch(pe);
    epoch.then([](std::uint64_t) { throw std::runtime_error("no further"); });
    pe.quiesce();
  });
  EXPECT_EQ(outcome.status, 121) << outcome.text;
  EXPECT_NE(outcome.text.find("a continuation of an epoch threw: no further"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace headway
