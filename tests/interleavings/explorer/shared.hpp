// SPDX-License-Identifier: BSD-3-Clause
/// Shared memory as a program under exploration sees it: in place of std::atomic, plain data, fences and futexes.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "execution.hpp"

namespace headway::explore {

inline constexpr ThreadSet everybody = 0xff;

/// In place of std::atomic<T>, with the same operations. Made by a program's constructor.
///
/// plant_...() weakens it, for tests of the tests: operations of that kind, by those threads, use another order than
/// the code says.
template <class T>
class Atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);

 public:
  Atomic(T value = {}) : location_(Execution::current().add_atomic(word(value))) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order) const { return of(Execution::current().load(location_, loads_.value(order))); }
  void store(T value, std::memory_order order) {
    Execution::current().store(location_, word(value), stores_.value(order));
  }
  T exchange(T value, std::memory_order order) {
    return modify([&](T) { return value; }, order);
  }
  T fetch_add(T by, std::memory_order order) {
    return modify([&](T before) { return T(before + by); }, order);
  }
  T fetch_sub(T by, std::memory_order order) {
    return modify([&](T before) { return T(before - by); }, order);
  }
  T fetch_or(T bits, std::memory_order order) {
    return modify([&](T before) { return T(before | bits); }, order);
  }
  T fetch_and(T bits, std::memory_order order) {
    return modify([&](T before) { return T(before & bits); }, order);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    return compare_exchange(expected, desired, success, failure, true);
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order order) {
    return compare_exchange(expected, desired, order, on_failure(order), true);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) {
    return compare_exchange(expected, desired, success, failure, false);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order order) {
    return compare_exchange(expected, desired, order, on_failure(order), false);
  }

  Atomic& named(std::string name) {
    Execution::current().name_atomic(location_, std::move(name));
    return *this;
  }
  void plant_loads(std::memory_order order, ThreadSet threads = everybody) { loads_ = {threads, order}; }
  void plant_stores(std::memory_order order, ThreadSet threads = everybody) { stores_ = {threads, order}; }
  void plant_exchanges(std::memory_order order, ThreadSet threads = everybody) { exchanges_ = {threads, order}; }
  std::size_t location() const { return location_; }

 private:
  struct Planted {
    ThreadSet threads = 0;
    std::memory_order order = std::memory_order_relaxed;
    std::memory_order value(std::memory_order written) const {
      return (threads >> Execution::current().running() & 1) != 0 ? order : written;
    }
  };

  static std::uint64_t word(T value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  static T of(std::uint64_t word) {
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
  static std::memory_order on_failure(std::memory_order order) {
    if (order == std::memory_order_release) return std::memory_order_relaxed;
    return order == std::memory_order_acq_rel ? std::memory_order_acquire : order;
  }
  template <class NewValue>
  T modify(NewValue new_value, std::memory_order order) {
    return of(Execution::current().read_modify_write(
        location_, [&](std::uint64_t before) { return word(new_value(of(before))); }, exchanges_.value(order)));
  }
  bool compare_exchange(T& expected, T desired, std::memory_order success, std::memory_order failure, bool weak) {
    std::uint64_t word_expected = word(expected);
    const bool exchanged = Execution::current().compare_exchange(location_, word_expected, word(desired),
                                                                 exchanges_.value(success), failure, weak);
    expected = of(word_expected);
    return exchanged;
  }

  std::size_t location_;
  Planted loads_, stores_, exchanges_;
};

/// In place of a T that only one thread at a time may touch. The explorer finds every data race on it, independent of
/// the values.
template <class T>
class Plain {
 public:
  Plain(T value = {}) : location_(Execution::current().add_plain()), value_(value) {}
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain& other) { return *this = T(other); }
  Plain& operator=(T value) {
    Execution::current().write_plain(location_, std::uint64_t(value));
    value_ = value;
    return *this;
  }
  operator T() const {
    Execution::current().read_plain(location_);
    return value_;
  }
  Plain& named(std::string name) {
    Execution::current().name_plain(location_, std::move(name));
    return *this;
  }

 private:
  std::size_t location_;
  T value_;
};

/// In place of the system calls of a doorbell. Futexes do not time out, unless no other thread is left to wake them.
struct System {
  using Word = Atomic<std::uint32_t>;

  static void fence() { Execution::current().fence(std::memory_order_seq_cst); }
  static void keep_order_in_code() {}
  static void fence_everywhere() { Execution::current().fence_everywhere(); }
  static void wait(Word& word, std::uint32_t value, std::int64_t) {
    Execution::current().futex_wait(word.location(), value);
  }
  static void wake_one(Word& word) { Execution::current().futex_wake_one(word.location()); }
};

/// A planted bug: a doorbell without its fence.
struct SystemWithoutFence : System {
  static void fence() {}
  static void fence_everywhere() {}
};

}  // namespace headway::explore
