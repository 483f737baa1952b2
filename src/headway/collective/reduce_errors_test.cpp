// SPDX-License-Identifier: BSD-3-Clause
/// How runs end in which collectives cannot.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <headway/base/error.hpp>
#include <headway/collective/exchange.hpp>
#include <headway/collective/gather.hpp>
#include <headway/collective/scan.hpp>
#include <initializer_list>
#include <regex>
#include <stdexcept>
#include <string>
#include <support/run_pes.hpp>
#include <vector>

namespace headway {
namespace {

using testing::catch_run;
using testing::Outcome;
using testing::Shape;

void expect_end(const Outcome& outcome, int status, std::initializer_list<const char*> parts) {
  EXPECT_EQ(outcome.status, status) << outcome.text;
  for (const char* part : parts)
    EXPECT_NE(outcome.text.find(part), std::string::npos) << part << " in " << outcome.text;
}

/// PE 0 calls one thing, PE 1 and 2 another: messages of PE 1 meet PE 0.
template <class One, class Other>
void expect_mismatch(One one, Other other, std::initializer_list<const char*> parts) {
  for (const bool zero_is_late : {true, false}) {
    const Outcome outcome = catch_run({3, 1}, [&](Pe& pe) {
      static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
      if ((pe.id() == 0) == zero_is_late) usleep(5'000);
      if (pe.id() == 0)
        one(pe);
      else
        other(pe);
      pe.quiesce();
    });
    expect_end(outcome, exit_status::failed, parts);
    expect_end(outcome, exit_status::failed,
               {"as collective number 1 of all PEs, PE ", "PE 0", "the same ones in the same order"});
  }
}

TEST(ReduceMismatch, of_operators_names_both) {
  expect_mismatch([](Pe& pe) { static_cast<void>(reduce_async(pe, 1, std::plus<>(), 0)); },
                  [](Pe& pe) { static_cast<void>(reduce_async(pe, 1, std::multiplies<>(), 0)); },
                  {"reduce of 1 int with std::plus<>, root 0", "reduce of 1 int with std::multiplies<>, root 0"});
}

// GCC gives both closures one name.
TEST(ReduceMismatch, of_two_closures_of_one_function_names_both) {
  const auto sum = [](long a, long b) { return a + b; };
  const auto product = [](long a, long b) { return a * b; };
  expect_mismatch([&](Pe& pe) { static_cast<void>(reduce_async(pe, 1L, sum, 0)); },
                  [&](Pe& pe) { static_cast<void>(reduce_async(pe, 1L, product, 0)); },
                  {"reduce of 1 long", ", root 0", ", and PE "});
}

TEST(ReduceMismatch, of_counts_names_both) {
  const std::vector<double> values(100'000);
  expect_mismatch(
      [&](Pe& pe) { static_cast<void>(allreduce_async(pe, std::span(values), std::plus<>())); },
      [&](Pe& pe) { static_cast<void>(allreduce_async(pe, std::span(values).first(99'999), std::plus<>())); },
      {"allreduce of 100000 double with", "allreduce of 99999 double with"});
  expect_mismatch([&](Pe& pe) { static_cast<void>(all_to_all_async(pe, std::span(values).first(3))); },
                  [&](Pe& pe) { static_cast<void>(all_to_all_async(pe, std::span(values).first(6))); },
                  {"all_to_all of 1 double", "all_to_all of 2 double"});
}

TEST(ReduceMismatch, of_types_names_both) {
  expect_mismatch([](Pe& pe) { static_cast<void>(reduce_async(pe, 1.0f, std::plus<>(), 0)); },
                  [](Pe& pe) { static_cast<void>(reduce_async(pe, 1, std::plus<>(), 0)); },
                  {"reduce of 1 float", "reduce of 1 int"});
}

TEST(ReduceMismatch, of_roots_names_both) {
  expect_mismatch([](Pe& pe) { static_cast<void>(reduce_async(pe, 1, std::plus<>(), 2)); },
                  [](Pe& pe) { static_cast<void>(reduce_async(pe, 1, std::plus<>(), 0)); }, {"root 2", "root 0"});
}

TEST(ReduceMismatch, of_kinds_names_both) {
  expect_mismatch([](Pe& pe) { static_cast<void>(gather_async(pe, 1, 0)); },
                  [](Pe& pe) { static_cast<void>(scan_async(pe, 1, std::plus<>())); },
                  {"gather of 1 int, root 0", "scan of 1 int with std::plus<>"});
  expect_mismatch([](Pe& pe) { static_cast<void>(allreduce_async(pe, 1, std::plus<>(), {.ordered = true})); },
                  [](Pe& pe) { static_cast<void>(allreduce_async(pe, 1, std::plus<>())); },
                  {"allreduce of 1 int with std::plus<>, ordered", "allreduce of 1 int with std::plus<>,"});
}

TEST(ReduceMismatch, of_counts_of_a_broadcast_in_place_names_both) {
  expect_mismatch(
      [](Pe& pe) {
        std::vector<int> values(4);
        broadcast_in_place(pe, std::span(values), 0);
      },
      [](Pe& pe) {
        std::vector<int> values(5);
        broadcast_in_place(pe, std::span(values), 0);
      },
      {"broadcast of 4 int, root 0", "broadcast of 5 int, root 0"});
}

TEST(ReduceUnfinished, a_member_that_never_calls_is_named_at_the_end) {
  const Outcome outcome = catch_run({4, 1}, [](Pe& pe) {
    if (pe.id() != 3) static_cast<void>(allreduce_async(pe, 1, std::plus<>()));  // others wait for 3 or an outcome
  });
  // Whichever says it first: one that waits, or PE 3, which has not called.
  expect_end(outcome, exit_status::undelivered, {"allreduce of 1 int with std::plus<>, number 0"});
  const Outcome early = catch_run({2, 1}, [](Pe& pe) {
    if (pe.id() == 1) static_cast<void>(reduce_async(pe, 1, std::plus<>(), 0));
  });
  expect_end(early, exit_status::undelivered,
             {"1 contribution on PE 0 is for a collective that it has not called: reduce of 1 int", "from PE 1"});
}

TEST(ReduceUnfinished, who_waits_for_a_member_that_never_calls_is_a_stall) {
  const Outcome outcome = catch_run({3, 1},
                                    [](Pe& pe) {
                                      if (pe.id() != 2) static_cast<void>(allreduce_async(pe, 1, std::plus<>()).get());
                                    },
                                    {{"HEADWAY_STALL", "500ms"}});
  // PE 1 waits for PE 2 as well, or where contributions are messages for the outcome from PE 0.
  EXPECT_TRUE(std::regex_search(outcome.text, std::regex("PE 0 \\(pid \\d+\\) waits for a future for PE 2")))
      << outcome.text;
  EXPECT_EQ(outcome.status, exit_status::stalled) << outcome.text;
}

TEST(ReduceFailure, a_pe_that_dies_inside_ends_the_run_everywhere) {
  for (const Shape shape : {Shape{3, 1}, Shape{8, 4}}) {
    const Outcome outcome = catch_run(shape, [](Pe& pe) {
      const std::vector<double> values(300'000, 1.0);
      auto sums = allreduce_async(pe, std::span(values), std::plus<>());
      for (int i = 0; i < 20; ++i) pe.progress();
      if (pe.id() == 1) raise(SIGKILL);
      static_cast<void>(sums.get());
      static_cast<void>(allreduce_async(pe, std::span(values), std::plus<>()).get());
    });
    expect_end(outcome, exit_status::failed, {"was killed by signal 9"});
  }
}

TEST(ReduceFailure, an_operator_that_throws_ends_the_run) {
  const Outcome outcome = catch_run({3, 1}, [](Pe& pe) {
    const auto divide = [](int a, int b) { return b == 0 ? throw std::domain_error("a division by zero") : a / b; };
    static_cast<void>(reduce(pe, int(pe.id()) - 1, divide, 0));
    pe.quiesce();
  });
  expect_end(outcome, exit_status::failed, {"a division by zero"});
}

TEST(ReduceFailure, an_operator_that_throws_in_a_call_cannot_be_caught_there) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    const auto throws = [](int, int) -> int { throw std::runtime_error("no sum today"); };
    if (pe.id() == 1) {
      static_cast<void>(reduce_async(pe, 1, throws, 0));
      return;
    }
    for (int i = 0; i < 1000; ++i) {  // its contribution is early
      usleep(100);
      pe.progress();
    }
    try {
      static_cast<void>(reduce_async(pe, 1, throws, 0));
    } catch (const std::runtime_error& error) {
      if (std::string(error.what()) == "no sum today") return;
      throw;
    }
  });
  expect_end(outcome, exit_status::failed, {"no sum today", "reduce of 1 int", "on PE 0"});
}

TEST(ReduceFailure, a_call_that_meets_one_which_is_through_ends_the_run) {
  const Outcome outcome = catch_run({2, 1}, [](Pe& pe) {
    static_cast<void>(reduce_async(pe, 1, std::plus<>(), 1 - pe.id()));  // each is the other's leaf
    pe.quiesce();
  });
  expect_end(outcome, exit_status::failed,
             {"collective number 0", "root 0", "root 1", "the same ones in the same order"});
}

TEST(ReduceFailure, those_who_run_ahead_of_one_that_never_calls_fill_no_memory) {
  const Outcome outcome = catch_run({3, 1},
                                    [](Pe& pe) {
                                      const std::vector<double> values(1'000, 1.0);
                                      if (pe.id() != 0) {
                                        for (int i = 0; i < 20'000; ++i)
                                          static_cast<void>(reduce_async(pe, std::span(values), std::plus<>(), 0));
                                      }
                                      pe.quiesce();
                                    },
                                    {{"HEADWAY_SPILL", "4M"}});
  expect_end(outcome, exit_status::failed, {"the cap of", "HEADWAY_SPILL"});
}

}  // namespace
}  // namespace headway
