// SPDX-License-Identifier: BSD-3-Clause
/// One execution of a program under exploration: its threads as fibers, each stopped before its next step.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <headway/base/fiber.hpp>
#include <memory>
#include <string>
#include <vector>

#include "explore.hpp"
#include "memory.hpp"
#include "search.hpp"

namespace headway::explore {

class Execution {
 public:
  Execution(const Options& options, Search& search) : options_(options), search_(&search) {}

  enum class End { complete, cut_short };
  End run(const std::function<std::unique_ptr<Program>()>& make, bool traced);

  /// The execution that runs now.
  static Execution& current();

  // --- what shared.hpp is made of. From a thread each is a step; from the program's constructor and check() it is not.
  std::size_t add_atomic(std::uint64_t value);
  std::size_t add_plain();
  void name_atomic(std::size_t location, std::string name) { atomic_names_[location] = std::move(name); }
  void name_plain(std::size_t location, std::string name) { plain_names_[location] = std::move(name); }

  std::uint64_t load(std::size_t location, std::memory_order order);
  void store(std::size_t location, std::uint64_t value, std::memory_order order);
  /// Returns the value before.
  template <class NewValue>
  std::uint64_t read_modify_write(std::size_t location, NewValue new_value, std::memory_order order) {
    step(location, true, order);
    const std::uint64_t before = memory_.value(location, memory_.newest(location));
    finish_read_modify_write(location, before, new_value(before), order);
    return before;
  }
  bool compare_exchange(std::size_t location, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                        std::memory_order failure, bool weak);
  void fence(std::memory_order order);
  /// membarrier(): every thread that runs does a fence of sequential consistency where it is.
  void fence_everywhere();
  void futex_wait(std::size_t location, std::uint64_t value);
  void futex_wake_one(std::size_t location);
  void read_plain(std::size_t location);
  void write_plain(std::size_t location, std::uint64_t value);

  unsigned running() const { return running_; }
  bool wait_for_news();
  void fail(std::string what);
  bool died(unsigned thread) const { return threads_[thread].state == State::dead; }

  /// A step that touches `footprint`: returns when it is this thread's turn.
  /// Other kinds of shared state than memory may be built on it and on choose().
  void step(const Footprint& footprint);
  unsigned choose(unsigned count) { return search_->choose(count); }
  template <class Text>
  void note(Text text) {
    if (traced_) note_text(text());
  }

  std::uint64_t steps() const { return steps_; }
  bool anybody_died() const { return somebody_died_; }
  const std::string& failure() const { return failure_; }
  const std::string& trace() const { return trace_; }

 private:
  enum class State { ready, waiting_for_news, in_futex, ended, dead };
  struct Looked {
    std::uint16_t location;
    StoreIndex newest;
  };
  struct Thread {
    std::unique_ptr<base::Fiber> fiber;
    State state = State::ready;
    Footprint next;
    int touches = -1;  // the one atomic location that its next step touches and no order of sequential consistency
    std::size_t futex = 0;
    bool in_vain = false;  // it waits for an event that will never come
    unsigned spurious_failures = 0;
    std::vector<Looked> looked;
  };
  static constexpr std::size_t order_location = locations_max;  // what fences of sequential consistency touch

  static Footprint touching(std::size_t location, bool changes);
  void step(std::size_t location, bool changes, std::memory_order order);
  int newest_news(const Thread& thread) const;
  void run_thread(Program& program, unsigned id);
  void upcoming(Upcoming& threads) const;
  bool end_vain_waits();
  void may_die();
  [[noreturn]] void stop();
  bool explored(std::size_t location, StoreIndex store, std::memory_order order) const;
  StoreIndex earliest_unexplored(std::size_t location, StoreIndex earliest, std::memory_order order) const;
  void looked_at(std::size_t location, StoreIndex store);
  void finish_read_modify_write(std::size_t location, std::uint64_t before, std::uint64_t after,
                                std::memory_order order);
  bool on_thread() const { return running_ != Memory::test_itself; }
  void note_text(std::string text);

  const Options& options_;
  Search* search_;
  Memory memory_;
  std::array<Thread, threads_max> threads_;
  unsigned count_ = 0;
  unsigned running_ = Memory::test_itself;
  bool somebody_died_ = false;
  bool traced_ = false;
  std::uint64_t steps_ = 0;
  std::string failure_;
  std::string trace_;
  std::vector<std::string> atomic_names_;
  std::vector<std::string> plain_names_;
};

}  // namespace headway::explore
