// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/epoch.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <support/expect_error.hpp>
#include <support/run_pes.hpp>

namespace headway {
namespace {

using testing::catch_run;
using testing::expect_run;
using testing::expect_usage_error;
using testing::Outcome;
using namespace std::chrono_literals;

TEST(EpochMisuse, waiting_and_beginning_and_ending_in_a_handler_are_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    std::optional<Epoch> epoch;
    Aggregator<int> words(pe);
    int handled = 0;
    words.on([&](int) {
      ++handled;
      expect_usage_error([&] { (void)epoch->wait(); }, "inside a handler");
      expect_usage_error([&] { epoch->close(); }, "inside a handler");
      expect_usage_error([&] { epoch->then([](std::uint64_t) {}); }, "inside a handler");
      expect_usage_error([&] { const Epoch another(pe); }, "inside a handler");
    });
    epoch.emplace(pe);
    words.send(1 - pe.id(), 1);
    pe.quiesce();
    EXPECT_EQ(epoch->wait(), 2u);
    EXPECT_EQ(handled, 1);
  });
}

TEST(EpochMisuse, a_handler_of_an_epoch_that_waits_for_that_epoch_is_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Epoch outer(pe);
    Epoch inner(pe);
    Aggregator<int> words(pe);
    words.on([&](int) {
      expect_usage_error([&] { inner.then([](std::uint64_t) {}); }, "never be done");
      expect_usage_error([&] { outer.then([](std::uint64_t) {}); }, "never be done");
    });
    words.send(1 - pe.id(), 1);
    inner.close();
    outer.close();
    EXPECT_EQ(outer.wait(), 2u);
    pe.quiesce();
  });
}

TEST(EpochMisuse, an_epoch_that_ends_before_those_within_it_is_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Epoch outer(pe);
    Epoch inner(pe);
    expect_usage_error([&] { outer.close(); }, "inner epochs end first");
    expect_usage_error([&] { (void)outer.wait(); }, "inner epochs end first");
    expect_usage_error([&] { (void)outer.handled(); }, "not done");
    EXPECT_EQ(inner.wait(), 0u);
    EXPECT_EQ(outer.wait(), 0u);
  });
}

TEST(EpochMisuse, waiting_while_handlers_are_deferred_is_refused) {
  expect_run({2, 1}, [](Pe& pe) {
    Epoch epoch(pe);
    {
      const DeferHandlers deferred(pe);
      expect_usage_error([&] { (void)epoch.wait(); }, "deferred");
    }
    EXPECT_EQ(epoch.wait(), 0u);
  });
}

void expect_says(const Outcome& outcome, int status, std::initializer_list<const char*> parts) {
  EXPECT_EQ(outcome.status, status) << outcome.text;
  for (const char* part : parts)
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << "\nin: " << outcome.text;
}

TEST(EpochMisuse, an_epoch_that_some_pe_does_not_make_ends_the_run) {
  expect_says(catch_run({3, 1},
                        [](Pe& pe) {
                          Aggregator<int> words(pe);
                          words.on([](int) {});
                          std::optional<Epoch> epoch;
                          if (pe.id() != 2) epoch.emplace(pe);
                          for (int to = 0; to < 3; ++to) words.send(to, to);
                          pe.quiesce();
                        }),
              123, {"1 message from PE 0 is undelivered on PE 2: it belongs to an epoch that has not begun there"});
}

TEST(EpochMisuse, an_epoch_whose_messages_have_no_handler_ends_the_run) {
  expect_says(catch_run({2, 1},
                        [](Pe& pe) {
                          Aggregator<int> words(pe, {.name = "words"});
                          if (pe.id() == 0) words.on([](int) {});
                          Epoch epoch(pe);
                          if (pe.id() == 0) words.send(1, 1);
                          (void)epoch.wait();
                        }),
              123, {"1 message from PE 0 is undelivered on PE 1", "'words'", "has no handler there"});
}

TEST(EpochMisuse, more_held_for_an_epoch_to_come_than_the_cap_of_the_spill_ends_the_run) {
  expect_says(catch_run({2, 1},
                        [](Pe& pe) {
                          Aggregator<int> words(pe, {.topology = direct()});
                          words.on([](int) {});
                          const auto end = std::chrono::steady_clock::now() + 20s;
                          while (pe.id() == 1 && std::chrono::steady_clock::now() < end) pe.progress();
                          Epoch epoch(pe);
                          for (int i = 0; i < 1'000'000; ++i) words.send(1, i);
                          (void)epoch.wait();
                        },
                        {{"HEADWAY_SPILL", "1M"}}),
              121, {"PE 1", "epochs that it has not begun", "from PE 0", "cap of 1 MiB (HEADWAY_SPILL)"});
}

TEST(EpochMisuse, a_pe_that_does_not_wait_for_an_epoch_is_in_the_stall_report) {
  expect_says(catch_run({2, 1},
                        [](Pe& pe) {
                          Epoch epoch(pe);
                          if (pe.id() == 0) (void)epoch.wait();
                          pe.quiesce();
                        },
                        {{"HEADWAY_STALL", "1s"}}),
              122, {"PE 0", "waits for the end of an epoch", "PE 1", "waits in quiesce()"});
}

}  // namespace
}  // namespace headway
