// SPDX-License-Identifier: BSD-3-Clause
/// The list-based queuing lock of Mellor-Crummey and Scott (1991), with compare-and-swap, and without it.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "model.hpp"

namespace headway::murphi {

template <std::size_t processes, bool has_compare_and_swap>
class Mcs {
 public:
  enum Step : std::uint32_t {
    idle,             // next := none
    enqueue,          // predecessor := swap(tail, self)
    look_back,        // first in the queue?
    lock_self,        // locked := true
    link,             // predecessor.next := self
    spin,             // until not locked
    critical,         // is there a next?
    compare,          // with compare-and-swap: if tail = self, tail := none
    take_tail,        // without: old_tail := swap(tail, none)
    compare_tail,     // old_tail = self?
    restore_tail,     // usurper := swap(tail, old_tail)
    wait_next,        // until there is a next
    hand_to_usurper,  // usurper.next := next, or next.locked := false
    unlock_next       // next.locked := false
  };

  /// Processes are 1, 2, ...; 0 is none.
  struct Process {
    std::uint32_t step : 4, locked : 1;
    std::uint32_t next : 3, predecessor : 3;
    std::uint32_t old_tail : 3, usurper : 3;
    std::uint32_t unused : 15;
  };
  struct State {
    std::array<Process, processes> of;
    std::uint32_t tail;
  };
  static_assert(processes >= 2 && processes <= 7);

  /// With the bug, a process does not lock itself before it waits.
  explicit Mcs(bool bug) : bug_(bug) {}

  template <class F>
  void for_each_initial(F f) const {
    f(State{});
  }

  template <class F>
  void for_each_successor(const State& state, F f) const {
    for (std::size_t i = 0; i < processes; ++i) {
      State next = state;
      step(next, next.of[i], std::uint32_t(i + 1) & 7);
      f(Rule(i * steps + state.of[i].step), next);
    }
  }

  const char* violated(const State& state) const {
    std::size_t inside = 0;
    for (const Process& process : state.of) inside += process.step == critical;
    return inside > 1 ? "two processes are in the critical section" : nullptr;
  }

  std::string rule_name(Rule rule) const {
    static constexpr std::array<const char*, steps> names = {"starts",
                                                             "enters the queue",
                                                             "looks at its predecessor",
                                                             "locks itself",
                                                             "links itself",
                                                             "waits",
                                                             "looks for a next",
                                                             "frees the tail",
                                                             "takes the tail",
                                                             "compares the tail",
                                                             "returns the tail",
                                                             "waits for its next",
                                                             "hands to the usurper",
                                                             "unlocks its next"};
    return fmt::format("process {} {}", rule / steps + 1, names[rule % steps]);
  }

  std::string describe(const State& state) const {
    std::string text = "step/locked/next/predecessor";
    for (const Process& process : state.of) {
      text += fmt::format(" {}/{}/{}/{}", unsigned(process.step), unsigned(process.locked), unsigned(process.next),
                          unsigned(process.predecessor));
    }
    return text + fmt::format(", tail {}", state.tail);
  }

 private:
  static constexpr std::size_t steps = unlock_next + 1;

  void step(State& state, Process& self, std::uint32_t me) const {
    switch (self.step) {
      case idle:
        self.next = 0;
        self.step = enqueue;
        break;
      case enqueue:
        self.predecessor = state.tail & 7;
        state.tail = me;
        self.step = look_back;
        break;
      case look_back: self.step = self.predecessor == 0 ? critical : bug_ ? link : lock_self; break;
      case lock_self:
        self.locked = 1;
        self.step = link;
        break;
      case link:
        state.of[self.predecessor - 1u].next = me & 7;
        self.step = spin;
        break;
      case spin:
        if (!self.locked) self.step = critical;
        break;
      case critical: self.step = self.next != 0 ? unlock_next : has_compare_and_swap ? compare : take_tail; break;
      case compare:
        if (state.tail == me) {
          state.tail = 0;
          self.step = idle;
        } else {
          self.step = wait_next;
        }
        break;
      case take_tail:
        self.old_tail = state.tail & 7;
        state.tail = 0;
        self.step = compare_tail;
        break;
      case compare_tail: self.step = self.old_tail == me ? idle : restore_tail; break;
      case restore_tail:
        self.usurper = state.tail & 7;
        state.tail = self.old_tail;
        self.step = wait_next;
        break;
      case wait_next:
        if (self.next != 0) self.step = has_compare_and_swap ? unlock_next : hand_to_usurper;
        break;
      case hand_to_usurper:
        if (self.usurper != 0)
          state.of[self.usurper - 1u].next = self.next;
        else
          state.of[self.next - 1u].locked = 0;
        self.step = idle;
        break;
      case unlock_next:
        state.of[self.next - 1u].locked = 0;
        self.step = idle;
        break;
    }
  }

  bool bug_;
};

}  // namespace headway::murphi
