// SPDX-License-Identifier: BSD-3-Clause
/// Depth-first search over everything that may happen differently in an execution: which thread moves next, and what
/// a step finds (which store a load reads, whether a thread dies). Nothing is stored but the path: each execution
/// starts anew and repeats the choices of the last one up to where it differs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace headway::explore {

inline constexpr unsigned threads_max = 4;
using ThreadSet = std::uint8_t;  // bit t: thread t

/// The locations that a step touches. Two steps of different threads commute unless both touch a location and one of
/// them changes it.
struct Footprint {
  struct Access {
    std::uint16_t location;
    bool changes;
  };
  std::array<Access, 6> accesses;
  std::size_t count = 0;

  void add(std::size_t location, bool changes);
  bool conflicts_with(const Footprint& other) const;
  /// Whether it changes a location that the other touches.
  bool matters_to(const Footprint& other) const;
};

/// What each thread would do next, and which of them can.
struct Upcoming {
  static constexpr int always = std::numeric_limits<int>::max();

  std::array<Footprint, threads_max> footprints;
  std::array<int, threads_max> news;  // the last step, at most this one, that can have changed the values they may find
  ThreadSet enabled = 0;
};

/// Without a bound on preemptions, executions that differ only in the order of steps that commute are not repeated:
/// source sets and sleep sets (Abdulla, Aronis, Jonsson, Sagonas, "Optimal dynamic partial order reduction", 2014). The
/// values that steps find are part of the steps there: a thread is done at a point when all that its step may find has
/// been explored.
///
/// A read may find a value from before another thread's change. So the search need not try the read before that change
/// as well: the read comes only after the change that it found. A thread that was done at a point need not find again
/// later any value that it could find there: found_before().
///
/// With a bound the search takes every order with at most so many switches away from a thread that could go on.
class Search {
 public:
  static constexpr int unbounded = -1;
  static constexpr int nobody = -1;

  explicit Search(int preemptions_max = unbounded) : preemptions_max_(preemptions_max) {}

  /// Before each execution.
  void restart();
  /// The thread that moves next. -1: all that follows has been explored in another order. `threads` must not be empty.
  int choose_thread(const Upcoming& threads);
  /// One of `count` things that the step of the thread that moves may find, 0 first.
  unsigned choose(unsigned count);
  /// After each execution: the next path. False when there is none.
  bool advance();

  /// The number of the step that is being made; those before the first one are 0.
  int step() const { return step_; }
  /// The step that is being made found what that one did.
  void found(int step);
  /// Whether the step that is being made has been explored elsewhere as to all that had come to pass by `step`.
  bool found_before(int step) const { return step <= known_until_; }

  /// `thread` has waited for a change by the last step of `waker`.
  void woken(unsigned thread, unsigned waker);
  /// `thread` has waited until no other thread could move.
  void woken_by_standstill(unsigned thread);

  /// The choices of this execution, and an execution that repeats them.
  std::vector<unsigned> choices() const;
  void repeat(std::vector<unsigned> choices) { repeated_ = std::move(choices); }

 private:
  using Clock = std::array<std::uint16_t, threads_max>;  // how many steps of each thread come before
  struct Node {
    unsigned taken = 0;
    unsigned count = 0;  // of the values that a step may find; 0: a choice of threads
    ThreadSet enabled = 0;
    ThreadSet wanted = 0;  // to be explored from here, or done
    ThreadSet done = 0;
    ThreadSet asleep = 0;  // explored before, in another order
  };
  struct Step {
    unsigned thread;
    std::uint16_t number;  // of its thread's steps, from 1
    Clock clock;           // its own step included
    std::size_t node;
    Footprint footprint;
  };
  struct History {  // of a location: steps by index
    int last_change = -1;
    std::array<int, threads_max> last_read_since;
  };

  Node& next_node(bool& fresh);
  void moved(unsigned thread, const Upcoming& threads, std::size_t node);
  void explore_before(std::size_t earlier, unsigned thread, const Footprint& footprint);
  History& history(std::size_t location);
  static bool precedes(const Step& a, const Clock& clock) { return clock[a.thread] >= a.number; }

  int preemptions_max_;
  std::vector<Node> path_;
  std::size_t depth_ = 0;
  std::size_t fresh_from_ = 0;  // nodes from here on have not been seen by an earlier execution
  ThreadSet asleep_ = 0;
  ThreadSet disturbed_ = 0;  // those of them that the last step may have woken
  static constexpr int nothing = -1;
  std::array<int, threads_max>
      explored_until_{};       // up to which step all has been explored that each one's next may find
  int known_until_ = nothing;  // the same for the step that is being made
  int step_ = 0;
  int last_thread_ = nobody;
  int preemptions_ = 0;
  std::vector<Step> steps_;
  std::array<Clock, threads_max> clocks_{};  // of each thread's last step, and what woke it
  std::vector<History> histories_;
  std::vector<std::size_t> independent_;  // used by explore_before() alone
  std::vector<unsigned> repeated_;
};

}  // namespace headway::explore
