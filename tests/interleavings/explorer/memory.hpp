// SPDX-License-Identifier: BSD-3-Clause
/// The C++20 memory model, for executions that are made one step at a time.
///
/// Each atomic location keeps all its stores, in modification order, which here is the order of the steps. A thread's
/// view says for each location before which store it can no longer look, and, for data races, which steps of the others
/// happen before. Stores carry views, acquiring loads take them over; fences as in Kang, Hur, Lahav, Vafeiadis, Dreyer,
/// "A promising semantics for relaxed-memory concurrency" (2017), without promises: no load sees a store of the future.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "search.hpp"

namespace headway::explore {

inline constexpr std::size_t locations_max = 32;

struct View {
  std::array<std::uint16_t, threads_max + 1> clock{};   // [t]: up to where t's steps happen before
  std::array<std::uint16_t, locations_max> earliest{};  // [l]: the first store of l that may still be seen

  void join(const View& other);
  void join_earliest(const View& other);
};

/// A store that an operation may read, by its place in the modification order.
using StoreIndex = std::uint16_t;

class Memory {
 public:
  /// After the threads comes the test itself, which checks the final state.
  static constexpr unsigned test_itself = threads_max;

  void clear();

  std::size_t add_atomic(std::uint64_t value);
  std::size_t add_plain();

  // --- atomic locations. The store that the caller chose to read must be in [earliest(), newest()].
  StoreIndex newest(std::size_t location) const { return StoreIndex(atomics_[location].size() - 1); }
  StoreIndex earliest(unsigned thread, std::size_t location, std::memory_order order) const;
  std::uint64_t value(std::size_t location, StoreIndex store) const { return atomics_[location][store].value; }
  /// The step that made it, as of set_step().
  int step_of(std::size_t location, StoreIndex store) const { return atomics_[location][store].step; }
  void set_step(int step) { step_ = step; }
  std::uint64_t load(unsigned thread, std::size_t location, StoreIndex store, std::memory_order order);
  void store(unsigned thread, std::size_t location, std::uint64_t value, std::memory_order order);
  /// Reads the newest store, and stores behind it.
  void read_modify_write(unsigned thread, std::size_t location, std::uint64_t value, std::memory_order order);
  void fence(unsigned thread, std::memory_order order);
  /// From now on `thread` sees at least this store: a store does not stay unseen for ever.
  void hurry(unsigned thread, std::size_t location, StoreIndex store);
  /// It sees all that is there now.
  void hurry(unsigned thread);

  // --- a lock in the kernel, one per location: it orders the operations under it but nothing else
  void kernel_release(unsigned thread, std::size_t location);
  StoreIndex kernel_earliest(unsigned thread, std::size_t location) const;

  // --- plain locations. False: a data race.
  [[nodiscard]] bool read_plain(unsigned thread, std::size_t location);
  [[nodiscard]] bool write_plain(unsigned thread, std::size_t location);

  /// `thread` sees all that the test itself did before.
  void started(unsigned thread) { threads_[thread].now.join(threads_[test_itself].now); }
  /// The test itself sees all that `thread` saw and did.
  void joined(unsigned thread) { threads_[test_itself].now.join(threads_[thread].now); }

 private:
  struct Store {
    std::uint64_t value;
    int step;
    View view;  // the view that an acquiring thread takes over
  };
  struct Plain {
    unsigned writer = test_itself;
    std::uint16_t written = 0;  // at which time of its writer
    std::array<std::uint16_t, threads_max + 1> read{};
  };
  struct Thread {
    View now;
    View acquired;  // what an acquire fence would add: of all that was read without acquiring
    View released;  // as of the last release fence: what stores that do not release carry
    std::array<StoreIndex, locations_max> hurried{};
  };

  void append(unsigned thread, std::size_t location, std::uint64_t value, std::memory_order order,
              const View* continued);
  void take_over(unsigned thread, std::size_t location, StoreIndex store, std::memory_order order);
  void tick(unsigned thread) { ++threads_[thread].now.clock[thread]; }

  int step_ = 0;
  std::size_t atomics_count_ = 0;
  std::vector<std::vector<Store>> atomics_;  // those beyond the count keep their memory for the next execution
  std::vector<Plain> plains_;
  std::array<Thread, threads_max + 1> threads_;
  View sequential_;  // what fences of sequential consistency have seen: only `earliest`
  std::array<View, locations_max> kernel_{};
};

}  // namespace headway::explore
