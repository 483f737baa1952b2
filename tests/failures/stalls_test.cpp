// SPDX-License-Identifier: BSD-3-Clause
/// What waits for ever is ended and explained; what takes long is not.
#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <thread>

#include "session.hpp"

namespace headway::testing {
namespace {

const Variables soon = {{"HEADWAY_STALL", "700ms"}};

bool contains(const std::string& text, const std::string& expression) {
  return std::regex_search(text, std::regex(expression));
}

const std::vector<std::pair<std::size_t, std::size_t>> shapes = {{3, 1}, {3, 3}, {5, 2}};

TEST(Stalls, pes_that_wait_for_different_things_are_ended_with_122_and_a_page_that_names_both) {
  for (const auto& [n, per_process] : shapes) {
    Session session({victim(), "cross_purposes"}, pes(n, per_process) + soon);
    ASSERT_TRUE(session.wait_for_lines(n)) << session.errors();
    EXPECT_GT(session.until_gone().all, 0.5);
    EXPECT_EQ(session.wait(), 122);
    const std::string page = session.errors();
    EXPECT_TRUE(contains(page, "^headway: nothing has moved for [0-9.]+ s though work is pending:\n")) << page;
    for (std::size_t pe = 0; pe < n; ++pe) {
      EXPECT_TRUE(contains(page, "\n  PE " + std::to_string(pe) + " \\(pid \\d+\\) waits in " +
                                     (pe + 1 == n ? "a blocking collective" : "quiesce\\(\\)") + " for PE \\d"))
          << page;
    }
    EXPECT_TRUE(contains(page, "\n  a cycle: PE \\d waits for PE \\d( waits for PE \\d)*\n")) << page;
    EXPECT_EQ(session.leftovers(), "");
  }
}

TEST(Stalls, a_pe_that_is_stopped_by_a_signal_is_named) {
  const Outcome outcome = run_to_end({victim(), "stops_itself"}, pes(3) + soon);
  EXPECT_EQ(outcome.status, 122);
  EXPECT_TRUE(contains(outcome.errors, "\n  PE 2 \\(pid \\d+\\) is outside the library and is stopped by a signal"))
      << outcome.errors;
  EXPECT_EQ(outcome.leftovers, "");

  Session session({victim(), "load", "quiesce", "none", "0"}, pes(4, 2) + soon);  // from outside, in the middle
  ASSERT_TRUE(session.wait_for_lines(4)) << session.errors();
  ASSERT_EQ(kill(session.children()[1], SIGSTOP), 0);
  EXPECT_EQ(session.wait(), 122);
  EXPECT_TRUE(contains(session.errors(), "is stopped by a signal")) << session.errors();
}

TEST(Stalls, a_process_that_is_stopped_before_it_comes_to_run_is_named) {
  const Outcome outcome = run_to_end({headway_command(), "run", "sh", "-c",
                                      "case $HEADWAY_LAUNCH in *:1) kill -STOP $$;; esac; exec " + victim() + " hello"},
                                     pes(3) + soon);
  EXPECT_EQ(outcome.status, 122);
  EXPECT_TRUE(contains(outcome.errors, "\n  PE 0 \\(pid \\d+\\) waits for the others to start: PE 1"))
      << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "\n  PE 1 \\(pid \\d+\\) is starting and is stopped")) << outcome.errors;
}

TEST(Stalls, a_pe_that_calls_a_collective_once_more_than_the_others_is_named) {
  for (const auto& [n, per_process] : shapes) {
    const Outcome outcome = run_to_end({victim(), "uneven"}, pes(n, per_process) + soon);
    EXPECT_EQ(outcome.status, 122);
    EXPECT_TRUE(contains(outcome.errors, "\n  PE 0 \\(pid \\d+\\) waits in quiesce\\(\\) for PE 1")) << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, "\n  PE " + std::to_string(n - 1) + " \\(.*\\) has finished;"))
        << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Stalls, a_long_computation_is_none) {
  const std::pair<Variables, const char*> cases[] = {{pes(3), "asleep"}, {pes(3, 3), "busy"}, {pes(5, 2), "busy"}};
  for (const auto& [shape, how] : cases) {
    const Outcome outcome = run_to_end({victim(), "long_computation", "1.5", how}, shape + soon);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
  }
  EXPECT_EQ(run_to_end({victim(), "waits_for_nothing", "1.5"}, pes(3) + soon).status, 0);
}

TEST(Stalls, a_long_handler_is_none) {
  for (const char* how : {"busy", "asleep"}) {
    const Outcome outcome = run_to_end({victim(), "long_handler", "1.5", how}, pes(3) + soon);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
  }
}

TEST(Stalls, many_collectives_without_messages_are_none) {
  for (const auto& [what, n] : {std::pair("reduce_for", 2), {"reduce_for", 8}, {"quiesce_for", 4}}) {
    const Outcome outcome = run_to_end({victim(), what, "1.5"}, pes(std::size_t(n)) + soon);
    EXPECT_EQ(outcome.status, 0) << outcome.errors;
  }
}

TEST(Stalls, being_stopped_for_a_while_as_a_whole_is_none) {
  Session session({victim(), "load", "quiesce", "none", "0"}, pes(3) + soon);
  ASSERT_TRUE(session.wait_for_lines(3)) << session.errors();
  ASSERT_EQ(kill(-session.pid(), SIGSTOP), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ASSERT_EQ(kill(-session.pid(), SIGCONT), 0);
  EXPECT_EQ(session.wait(1.5), -1) << session.errors();
  ASSERT_EQ(kill(session.pid(), SIGTERM), 0);
  EXPECT_EQ(session.wait(), 128 + SIGTERM);
}

TEST(Stalls, never_when_told_so) {
  Session session({victim(), "cross_purposes"}, pes(2) + Variables{{"HEADWAY_STALL", "0"}});
  EXPECT_EQ(session.wait(1.5), -1) << session.errors();
}

// --- messages that no handler gets

TEST(Undelivered, messages_for_an_aggregator_that_another_pe_lacks_end_the_run_with_123) {
  for (const auto& [n, per_process] : shapes) {
    const Outcome outcome = run_to_end({victim(), "undelivered", "missing"}, pes(n, per_process));
    EXPECT_EQ(outcome.status, 123);
    EXPECT_TRUE(contains(outcome.errors,
                         "^headway: PE 1 \\(pid \\d+\\): 1 message from PE 0 is undelivered on PE 1: "
                         "aggregator number \\d+ was never made there"))
        << outcome.errors;
    EXPECT_EQ(outcome.leftovers, "");
  }
}

TEST(Undelivered, messages_for_an_aggregator_without_handler_end_the_run_with_123) {
  const Outcome outcome = run_to_end({victim(), "undelivered", "without_handler"}, pes(3));
  EXPECT_EQ(outcome.status, 123);
  EXPECT_TRUE(contains(outcome.errors,
                       "1 message from PE 0 is undelivered on PE 1: aggregator number \\d+ 'lost' .* has no "
                       "handler there \\(call on\\(\\)\\)"))
      << outcome.errors;
}

// --- what must not wait

TEST(Blocking, in_a_handler_is_an_error_that_names_call_handler_and_pe) {
  const std::pair<const char*, const char*> calls[] = {{"progress", "progress\\(\\)"},
                                                       {"quiesce", "quiesce\\(\\)"},
                                                       {"allreduce", "a blocking collective"},
                                                       {"barrier", "a blocking collective"}};
  for (const auto& [call, name] : calls) {
    for (const auto& [n, per_process] : shapes) {
      const Outcome outcome = run_to_end({victim(), "blocks", call}, pes(n, per_process));
      EXPECT_EQ(outcome.status, 121);
      EXPECT_TRUE(
          contains(outcome.errors, std::string("^headway: PE \\d \\(pid \\d+\\): the handler of aggregator number \\d+ "
                                               "'blocking' .*for a message in a frame from PE \\d threw: ") +
                                       name + " inside a handler"))
          << outcome.errors;
    }
    EXPECT_EQ(run_to_end({victim(), "blocks", call, "caught"}, pes(3)).status, 0) << call;
  }
}

TEST(Blocking, while_handlers_are_deferred_is_an_error) {
  const Outcome outcome = run_to_end({victim(), "blocks_deferred"}, pes(2));
  EXPECT_EQ(outcome.status, 121);
  EXPECT_TRUE(contains(outcome.errors, "quiesce\\(\\) while handlers are deferred")) << outcome.errors;
}

}  // namespace
}  // namespace headway::testing
