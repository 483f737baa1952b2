// SPDX-License-Identifier: BSD-3-Clause
// Members of a blocking call meet: every interleaving of members that arrive round after round, and sleep until they
// are woken. Futexes do not time out: a missing wake-up is a standstill.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <explorer/shared.hpp>
#include <headway/collective/meeting.hpp>
#include <memory>
#include <string>

#include "report.hpp"

namespace headway::collective {
namespace {

using explore::Atomic;
using explore::expect_found;
using explore::expect_no_violation;
using explore::Plain;
using explore::System;

struct Places {
  static constexpr std::size_t members_max = 3;

  explicit Places(unsigned m) : members(m) {
    for (std::size_t member = 0; member < members; ++member) {
      for (std::size_t slot = 0; slot < 2; ++slot) {
        rounds[member][slot].named("round " + std::to_string(slot) + " of " + std::to_string(member));
      }
      asking[member].named("asks " + std::to_string(member));
    }
  }
  std::size_t size() const { return members; }
  Atomic<std::uint64_t>& round(std::size_t member, std::size_t slot) { return rounds[member][slot]; }
  Atomic<std::uint32_t>& asks(std::size_t member) { return asking[member]; }

  std::size_t members;
  std::array<std::array<Atomic<std::uint64_t>, 2>, members_max> rounds;
  std::array<Atomic<std::uint32_t>, members_max> asking;
};

enum class Bug { none, looks_before_it_asks, tells_nobody, one_slot, comes_relaxed };

class Rounds : public explore::Program {
 public:
  Rounds(unsigned members, unsigned rounds, Bug bug) : places_(members), rounds_(rounds), bug_(bug) {
    for (unsigned m = 0; m < members; ++m) words_[m].named("word for " + std::to_string(m));
    if (bug == Bug::comes_relaxed) {
      for (unsigned m = 0; m < members; ++m) {
        for (auto& round : places_.rounds[m]) round.plant_stores(std::memory_order_relaxed);
      }
    }
  }

  unsigned threads() const override { return unsigned(places_.size()); }

  void thread(unsigned id) override {
    BasicMeeting<Places> meeting(places_, id);
    for (unsigned round = 1; round <= rounds_; ++round) {
      brought(id, round) = round * 10 + id;
      meeting.arrive(round);
      if (meeting.all_have_arrived(round)) {
        if (bug_ != Bug::tells_nobody) meeting.tell_who_asks([this](std::size_t member) { tell(member); });
      } else {
        if (bug_ == Bug::looks_before_it_asks && meeting.all_have_arrived(round)) continue;
        meeting.ask();
        while (bug_ == Bug::looks_before_it_asks || !meeting.all_have_arrived(round)) {
          System::wait(words_[id], 0, 1);
          words_[id].store(0, std::memory_order_relaxed);
          if (bug_ == Bug::looks_before_it_asks && meeting.all_have_arrived(round)) break;
        }
        meeting.stop_asking();
      }
      for (unsigned m = 0; m < places_.size(); ++m) {
        explore::check(brought(m, round) == round * 10 + m, "a member reads what was brought to another round");
      }
      ++ended_[id];
    }
  }

  void check() override {
    for (unsigned m = 0; m < places_.size(); ++m) explore::check(ended_[m] == rounds_, "a member waits for ever");
  }

 private:
  Plain<unsigned>& brought(std::size_t member, unsigned round) {
    return brought_[member][bug_ == Bug::one_slot ? 0 : BasicMeeting<Places>::slot(round)];
  }
  void tell(std::size_t member) {
    words_[member].store(1, std::memory_order_relaxed);
    System::wake_one(words_[member]);
  }

  Places places_;
  unsigned rounds_;
  Bug bug_;
  std::array<std::array<Plain<unsigned>, 2>, Places::members_max> brought_;
  std::array<Atomic<std::uint32_t>, Places::members_max> words_;
  std::array<unsigned, Places::members_max> ended_{};
};

constexpr std::uint64_t executions_max = 200'000'000;

auto rounds(unsigned members, unsigned rounds_of_each, Bug bug = Bug::none) {
  return [=] { return std::make_unique<Rounds>(members, rounds_of_each, bug); };
}

TEST(MeetingInterleavings, two_meet_round_after_round) {
  expect_no_violation("meeting: 2 members, 1 round", {}, rounds(2, 1));
  expect_no_violation("meeting: 2 members, 2 rounds", {}, rounds(2, 2));
}

TEST(MeetingInterleavingsLong, three_meet) {
  expect_no_violation("meeting: 3 members, 1 round", {.executions_max = executions_max}, rounds(3, 1));
}

TEST(MeetingInterleavingsLong, two_meet_in_three_rounds) {
  expect_no_violation("meeting: 2 members, 3 rounds", {.executions_max = executions_max}, rounds(2, 3));
}

// --- planted bugs

TEST(PlantedInMeeting, who_waits_looks_before_it_asks) {
  expect_found("meeting: looks before it asks", "nobody will wake them", {}, rounds(2, 1, Bug::looks_before_it_asks));
}

TEST(PlantedInMeeting, the_last_tells_nobody) {
  expect_found("meeting: tells nobody", "nobody will wake them", {}, rounds(2, 1, Bug::tells_nobody));
}

TEST(PlantedInMeeting, one_slot_for_all_rounds) {
  expect_found("meeting: one slot", "while it may be", {}, rounds(2, 2, Bug::one_slot));
}

TEST(PlantedInMeeting, who_comes_says_so_relaxed) {
  expect_found("meeting: comes relaxed", "while it may be", {}, rounds(2, 1, Bug::comes_relaxed));
}

}  // namespace
}  // namespace headway::collective
