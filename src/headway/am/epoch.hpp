/// A part of a program whose messages are counted, and waited for, by themselves.
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

/// Messages that belong together: those that this PE's program sends while the epoch is open and the innermost, and
/// those that their handlers send, transitively, on any PE.
///
///     headway::Epoch level(pe);
///     edges.send(owner, vertex);
///     const std::uint64_t handled = level.wait();   // of these, everywhere; others may still be on their way
///
/// Collective: every PE makes the same epochs in the same order, and ends each. One made while another is open lies
/// within it, ends before it, and counts towards it. Messages of an epoch are handled on a PE only once that PE has
/// begun it. Messages of different epochs have no order among one another, also with `ordered`.
///
/// An epoch may also be ended without waiting, and overlap with what follows:
///
///     level.close();  ...  if (level.done()) ...
///     level.then([&](std::uint64_t handled) { ... });   // runs as a handler
///     const std::uint64_t handled = co_await level;
///
/// Destroying an epoch ends it, in any order, and never waits: its messages are handled and counted as ever, by the
/// epochs around it and by quiesce(), which also waits until all epochs that were ended are done.
class [[nodiscard]] Epoch {
 public:
  /// Begins the epoch. It waits only where 62 others were begun since one that is not done yet. UsageError inside a
  /// handler, other than a continuation of an epoch, and for more than 32 epochs within one another.
  explicit Epoch(Pe& pe);
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;
  ~Epoch();

  /// Ends it on this PE: what is sent from now on belongs to the epoch around it. UsageError while one within it is
  /// open here, and inside a handler. (An epoch made in a continuation is ended in one.)
  void close();

  /// Ends it, and returns once every message of it, and of those within it, has been handled everywhere: their number.
  /// Runs handlers meanwhile. UsageError inside a handler.
  std::uint64_t wait();

  /// Whether that is so. Progress is made by progress(), sends and all that waits.
  bool done() const;

  /// How many messages were handled in it, everywhere. UsageError before it is done.
  std::uint64_t handled() const;

  /// Ends it, and calls continuation(handled) when it is done: at a later progress, as a handler that may also make
  /// epochs and end those. It belongs to the epoch that is the current one now; that will not be done before it has
  /// run. UsageError in handlers of the epoch itself.
  void then(std::function<void(std::uint64_t handled)> continuation);

  /// co_await gives the number of messages handled. Any coroutine may wait; it is resumed as a continuation (see then)
  /// on this PE's thread. One that is destroyed meanwhile is not resumed.
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
