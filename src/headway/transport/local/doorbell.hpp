// SPDX-License-Identifier: BSD-3-Clause
/// A PE sleeps until another PE has stored something: a flag that both sides read, and a futex on it.
#pragma once

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace headway::local {

/// The sides that fence between their own store and their read of the other side's store.
enum class Fences {
  both_sides,
  sleeper,  // only the sleeper, in all threads of all processes: it sleeps seldom, and senders ring for every frame
};

/// `System` has the type of the flag (`Word`, an atomic of 32 bits) and the calls below. It is a parameter, so that
/// tests explore this code with a system of their own.
///
/// Each side writes, then fences, then reads the other side's word. So the sleeper sees the store before it sleeps, or
/// the storing PE sees that the other one sleeps.
template <class System>
class BasicDoorbell {
 public:
  /// `asleep` is 1 while its owner sleeps, or is about to sleep. With Fences::sleeper a ringing PE may also fence.
  explicit BasicDoorbell(typename System::Word& asleep, Fences fences = Fences::both_sides)
      : asleep_(&asleep), fences_(fences) {}

  /// Called by any PE after a store that the sleeper must not miss.
  void ring() {
    if (fences_ == Fences::both_sides) {
      System::fence();
    } else {
      System::keep_order_in_code();
    }
    if (asleep_->load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake();
  }

  /// Called by the owner: sleeps until ring(), at most `ns_max`, unless `nothing_there()` is false.
  template <class NothingThere>
  void sleep(std::int64_t ns_max, NothingThere nothing_there) {
    asleep_->store(1, std::memory_order_relaxed);
    System::fence();
    if (fences_ == Fences::sleeper) System::fence_everywhere();
    if (nothing_there()) System::wait(*asleep_, 1, ns_max);
    asleep_->store(0, std::memory_order_relaxed);
  }

 private:
  // Only the PE that clears the flag makes the system call. Not inlined, because it is seldom needed.
  [[gnu::cold, gnu::noinline]] void wake() {
    if (asleep_->exchange(0, std::memory_order_relaxed) != 0) System::wake_one(*asleep_);
  }

  typename System::Word* asleep_;
  Fences fences_;
};

struct FutexSystem {
  using Word = std::atomic<std::uint32_t>;

  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

  /// A fence for the compiler alone.
  static void keep_order_in_code() { std::atomic_signal_fence(std::memory_order_seq_cst); }

  /// A fence in every running thread of the processes that have called join_fences(). Takes about as long as a wake.
  static void fence_everywhere() { membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }
  /// True if the system has fence_everywhere().
  static bool can_fence_everywhere() {
    const long commands = membarrier(MEMBARRIER_CMD_QUERY);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  }
  /// False, with errno, if the system refuses.
  [[nodiscard]] static bool join_fences() { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0; }

  /// Sleeps while `word` is `value`, at most `ns_max`. May return early.
  static void wait(Word& word, std::uint32_t value, std::int64_t ns_max) {
    const timespec timeout{ns_max / 1'000'000'000, ns_max % 1'000'000'000};
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &timeout, nullptr, 0);
  }

  static void wake_one(Word& word) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

 private:
  static long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }
};

using Doorbell = BasicDoorbell<FutexSystem>;

}  // namespace headway::local
