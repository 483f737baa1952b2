// SPDX-License-Identifier: BSD-3-Clause
/// Peterson's lock for n processes (Myths about the mutual exclusion problem, 1981), in the steps of Murphi's example:
/// each read of all other levels, with the turn, is one step.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model.hpp"

namespace headway::murphi {

template <std::size_t processes>
class Peterson {
 public:
  enum Step : std::uint16_t { idle, announce, give_way, wait, critical };

  struct Process {
    std::uint16_t step : 3;
    std::uint16_t level : 4;  // that others read; 0 only before the first round
    std::uint16_t round : 4;  // its own variable j; 0 only at first
    std::uint16_t turn : 4;  // not of the process: the process that came last to level (index + 1), plus 1; 0: none yet
    std::uint16_t unused : 1;
  };
  struct State {
    std::array<Process, processes> of;
  };
  static_assert(processes >= 2 && processes <= 8);

  /// With the bug, a process becomes the last at a level before it announces the level.
  explicit Peterson(bool bug) : bug_(bug) {}

  template <class F>
  void for_each_initial(F f) const {
    f(State{});
  }

  template <class F>
  void for_each_successor(const State& state, F f) const {
    for (std::size_t i = 0; i < processes; ++i) {
      State next = state;
      Process& self = next.of[i];
      switch (self.step) {
        case idle:
          self.round = 1;
          self.step = announce;
          break;
        case announce:
          bug_ ? set_turn(next, i) : set_level(self);
          self.step = give_way;
          break;
        case give_way:
          bug_ ? set_level(self) : set_turn(next, i);
          self.step = wait;
          break;
        case wait:
          if (may_go_on(state, i)) {
            self.round = (self.round + 1) & 15;
            self.step = self.round < processes ? announce : critical;
          }
          break;
        case critical:
          self.level = 1;
          self.step = idle;
          break;
      }
      f(Rule(i * steps + state.of[i].step), next);
    }
  }

  const char* violated(const State& state) const {
    std::size_t inside = 0;
    for (const Process& process : state.of) inside += process.step == critical;
    return inside > 1 ? "two processes are in the critical section" : nullptr;
  }

  std::string rule_name(Rule rule) const {
    static constexpr std::array<const char*, steps> names = {"starts", "announces its level", "gives way", "waits",
                                                             "leaves"};
    static constexpr std::array<const char*, steps> wrong = {"starts", "gives way", "announces its level", "waits",
                                                             "leaves"};
    return fmt::format("process {} {}", rule / steps, (bug_ ? wrong : names)[rule % steps]);
  }

  std::string describe(const State& state) const {
    std::string text = "step/level/round";
    for (const Process& process : state.of) {
      text += fmt::format(" {}/{}/{}", unsigned(process.step), unsigned(process.level), unsigned(process.round));
    }
    text += ", turn";
    for (std::size_t level = 1; level < processes; ++level) {
      const unsigned turn = state.of[level - 1].turn;
      text += turn == 0 ? std::string(" -") : fmt::format(" {}", turn - 1);
    }
    return text;
  }

 private:
  static constexpr std::size_t steps = 5;

  static void set_level(Process& self) { self.level = self.round; }
  static void set_turn(State& state, std::size_t i) {
    state.of[state.of[i].round - 1u].turn = std::uint16_t(i + 1) & 15;
  }
  static bool may_go_on(const State& state, std::size_t i) {
    const unsigned round = state.of[i].round;
    if (state.of[round - 1].turn != i + 1) return true;
    for (std::size_t other = 0; other < processes; ++other) {
      if (other != i && state.of[other].level >= round) return false;
    }
    return true;
  }

  bool bug_;
};

}  // namespace headway::murphi
