// SPDX-License-Identifier: BSD-3-Clause
/// A part of a program with its own count of messages.
#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <headway/am/pe.hpp>
#include <memory>
#include <utility>

namespace headway {

namespace am {
struct Scope;
}

/// Counts the messages that this PE's program sends while the epoch is the innermost open one, and those that their
/// handlers send, transitively, on any PE.
///
///     headway::Epoch level(pe);
///     edges.send(owner, vertex);
///     const std::uint64_t handled = level.wait();   // on all PEs; other messages may still be in flight
///
/// Collective: every PE makes the same epochs in the same order, and ends each. An epoch made while another is open is
/// an inner epoch: it ends first, and its messages count towards the outer one. A PE handles messages of an epoch only
/// after it has begun that epoch. Messages of different epochs have no order, even with `ordered`.
///
/// An epoch may also be ended without waiting, and overlap with later work:
///
///     level.close();  ...  if (level.done()) ...
///     level.then([&](std::uint64_t handled) { ... });   // runs as a handler
///     const std::uint64_t handled = co_await level;
///
/// Destroying an epoch ends it, in any order, and never waits. Its messages are still handled, and counted by outer
/// epochs and by quiesce(), which also waits until all closed epochs are done.
class [[nodiscard]] Epoch {
 public:
  /// Begins the epoch. Waits only if 62 other epochs have begun since one that is not done. UsageError in a handler,
  /// except a continuation of an epoch, and for more than 32 nested epochs.
  explicit Epoch(Pe& pe);
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;
  ~Epoch();

  /// Ends the epoch on this PE: later messages belong to the outer epoch. UsageError while an inner epoch is open,
  /// and in a handler. (An epoch made in a continuation is ended in one.)
  void close();

  /// Ends the epoch, waits until all PEs have handled every message of it and of inner epochs, and returns their
  /// number. Runs handlers meanwhile. UsageError in a handler.
  std::uint64_t wait();

  /// Whether all these messages have been handled. progress(), sends and waiting calls make progress.
  bool done() const;

  /// The number of messages of the epoch that all PEs have handled. UsageError before it is done.
  std::uint64_t handled() const;

  /// Ends the epoch, and calls continuation(handled) at a later progress, when it is done. The continuation runs as a
  /// handler, and may make and end epochs. It belongs to the current epoch, which is not done before it has run.
  /// UsageError in handlers of the epoch itself.
  void then(std::function<void(std::uint64_t handled)> continuation);

  /// co_await gives the number of messages handled. Any coroutine may wait. It is resumed as a continuation (see
  /// then()) on this PE's thread. A destroyed coroutine is not resumed.
  class Awaiter;
  Awaiter operator co_await();

 private:
  am::Engine* engine_;
  std::shared_ptr<am::Scope> scope_;
};

class Epoch::Awaiter {
 public:
  explicit Awaiter(Epoch& epoch) : epoch_(&epoch) {}
  Awaiter(const Awaiter&) = delete;
  Awaiter& operator=(const Awaiter&) = delete;
  ~Awaiter() {
    if (waiter_ != nullptr) *waiter_ = nullptr;
  }

  bool await_ready() {
    epoch_->close();
    return epoch_->done();
  }
  void await_suspend(std::coroutine_handle<> coroutine) {
    waiter_ = std::make_shared<std::coroutine_handle<>>(coroutine);
    epoch_->then([waiter = waiter_](std::uint64_t) {
      if (*waiter != nullptr) std::exchange(*waiter, nullptr).resume();
    });
  }
  std::uint64_t await_resume() const { return epoch_->handled(); }

 private:
  Epoch* epoch_;
  std::shared_ptr<std::coroutine_handle<>> waiter_;  // empty once the coroutine is resumed, or destroyed
};

inline Epoch::Awaiter Epoch::operator co_await() { return Awaiter(*this); }

}  // namespace headway
