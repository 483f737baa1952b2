// SPDX-License-Identifier: BSD-3-Clause
/// The page for given views of PEs: its conclusions, and its length.
#include <gtest/gtest.h>

#include <algorithm>
#include <headway/report/stall_page.hpp>

namespace headway::report {
namespace {

PeView waiting(Phase phase, std::vector<std::uint32_t> for_whom) {
  PeView view;
  view.phase = phase;
  view.answered = true;
  view.report.waits_for = std::move(for_whom);
  return view;
}

PeView computing() {
  PeView view;
  view.phase = Phase::computing;
  return view;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

std::size_t lines_of(const std::string& text) { return std::size_t(std::ranges::count(text, '\n')) + 1; }

TEST(StallPage, names_a_cycle) {
  const std::vector<PeView> pes = {waiting(Phase::quiescing, {1}), waiting(Phase::collective, {3}), computing(),
                                   waiting(Phase::sending, {2, 1})};
  const std::string page = stall_page("title:", pes);
  EXPECT_TRUE(page.starts_with("title:\n  a cycle: PE 1 waits for PE 3 waits for PE 1\n")) << page;
}

TEST(StallPage, names_no_cycle_of_pes_that_moved_while_they_were_asked) {
  std::vector<PeView> pes = {waiting(Phase::quiescing, {1}), waiting(Phase::quiescing, {0})};
  EXPECT_TRUE(contains(stall_page("", pes), "a cycle"));
  pes[1].consistent = false;
  EXPECT_FALSE(contains(stall_page("", pes), "a cycle"));
}

TEST(StallPage, names_the_pe_that_all_wait_for) {
  std::vector<PeView> pes = {waiting(Phase::quiescing, {1}), waiting(Phase::quiescing, {2}), computing()};
  EXPECT_TRUE(contains(stall_page("", pes), "\n  all others wait in the end for PE 2, which is outside the library\n"));
  // A stopped PE waits for no other PE, in any phase.
  pes[2] = waiting(Phase::sending, {0});
  pes[2].state = "is stopped by a signal";
  const std::string page = stall_page("", pes);
  EXPECT_FALSE(contains(page, "a cycle")) << page;
  EXPECT_TRUE(contains(page, "for PE 2, which waits in a send and is stopped by a signal\n")) << page;
}

TEST(StallPage, puts_pes_that_ended_too_early_into_one_line) {
  std::vector<PeView> pes(4);
  pes[0] = waiting(Phase::quiescing, {1, 2, 3});
  for (std::size_t pe = 1; pe < 4; ++pe) pes[pe].phase = Phase::finished;
  EXPECT_TRUE(contains(stall_page("", pes), "\n  one PE waits in the end for PE 1 to 3; each has finished\n"));
}

TEST(StallPage, shows_everything_of_few_pes) {
  std::vector<PeView> pes = {waiting(Phase::sending, {1}), computing()};
  pes[0].process = "pid 7";
  pes[0].created = 12;
  pes[0].handled = 5;
  pes[0].held_frames = 3;
  pes[0].last_handler = "aggregator number 2 'edges', for a frame from PE 1";
  pes[0].report.lines = {"5 messages of aggregator number 2 'edges' in frames that wait to be posted: 5 for PE 1"};
  pes[0].stack = {"visit(int) at main.cpp:7", "main at main.cpp:20"};
  const std::string page = stall_page("", pes);
  EXPECT_TRUE(contains(page,
                       "\n  PE 0 (pid 7) waits in a send for PE 1; messages created 12, handled 5; frames held 3"
                       "\n    last handler run: aggregator number 2 'edges', for a frame from PE 1"
                       "\n    5 messages of aggregator number 2 'edges' in frames that wait to be posted: 5 for PE 1"
                       "\n    in visit(int) at main.cpp:7"
                       "\n      by main at main.cpp:20"))
      << page;
}

TEST(StallPage, of_many_pes_describes_the_relevant_ones_and_groups_the_others) {
  constexpr std::size_t n = 256;
  std::vector<PeView> pes;
  for (std::uint32_t pe = 0; pe < n; ++pe) {
    pes.push_back(waiting(Phase::quiescing, {pe & (pe - 1)}));
    pes.back().created = pes.back().handled = 10;
  }
  pes[0].report.waits_for = {128};
  pes[128].report.waits_for = {192};
  pes[192].report.waits_for = {193};
  pes[193] = computing();
  pes[193].stack = {"endless_loop()"};
  pes[100].report.lines = {"3 messages of aggregator number 0 'lost' wait"};
  const std::string page = stall_page("title", pes);
  EXPECT_LT(lines_of(page), 12U) << page;
  EXPECT_TRUE(contains(page, "\n  all others wait in the end for PE 193, which is outside the library\n")) << page;
  EXPECT_TRUE(contains(page, "\n  PE 193 is outside the library;")) << page;
  EXPECT_TRUE(contains(page, "\n    in endless_loop()")) << page;
  EXPECT_TRUE(contains(page, "3 messages of aggregator number 0 'lost' wait")) << page;
  EXPECT_TRUE(contains(page, "(254 PEs): each waits in quiesce(); together messages created 2540, handled 2540"))
      << page;
}

TEST(StallPage, stays_short_whatever_the_pes_do) {
  std::vector<PeView> pes;
  for (std::uint32_t pe = 0; pe < 1024; ++pe) {
    pes.push_back(pe % 3 == 0 ? computing() : waiting(pe % 3 == 1 ? Phase::sending : Phase::collective, {pe / 3 * 3}));
    if (pe % 2 == 0) pes.back().report.lines.assign(4, "messages wait");
  }
  EXPECT_LT(lines_of(stall_page("", pes)), 80U);
}

}  // namespace
}  // namespace headway::report
