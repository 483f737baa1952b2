// SPDX-License-Identifier: BSD-3-Clause
/// A value that is set once; the main program, a callback or a coroutine waits for it.
#pragma once

#include <coroutine>
#include <exception>
#include <headway/am/completion.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/error.hpp>
#include <source_location>
#include <type_traits>
#include <utility>

namespace headway {

template <class T>
class Future;

/// The error of a future after its promise was destroyed unset.
struct BrokenPromise : std::runtime_error {
  BrokenPromise() : std::runtime_error("the future will never be ready: its promise was destroyed before it was set") {}
};

namespace am {
[[noreturn]] void throw_promise_used(const char* what);

/// Whether this compiler destroys a temporary twice in an expression with co_await, if the temporary is initialised
/// member by member (braces for an aggregate, a closure with captures). GCC before 13 does: bug 99576 (with 100611,
/// 101367 and 101976). GCC 13 and later and Clang do not: docs/decisions/0024-one-completion-type.md.
#if defined(__GNUC__) && !defined(__clang__)
inline constexpr bool destroys_temporaries_twice = __GNUC__ < 13;
#else
inline constexpr bool destroys_temporaries_twice = false;
#endif

/// With an affected compiler, rejects temporaries with destructors at compile time: the type does not show how its
/// object was initialised.
template <class... Args>
constexpr void require_named_arguments() {
  constexpr bool named =
      ((std::is_lvalue_reference_v<Args> || std::is_trivially_destructible_v<std::remove_reference_t<Args>>)&&...);
  static_assert(named || !destroys_temporaries_twice,
                "headway: GCC 12 destroys such a temporary twice where it is in an expression with co_await (GCC bug "
                "99576): give the argument a name first, `const std::string text = ...;`, and pass that");
}
}  // namespace am

/// Sets the value. Movable. Only the PE's thread uses it, within the run.
///
///     made -- future(), once --> ...    made -- set() or fail(), once --> done
///
/// set() and fail() resume the waiter. In a handler: at once, or after the waiter that is being resumed. In the main
/// program: at its next progress, as a handler. The waiter continues in the epoch that is current then: a wait for a
/// future keeps no epoch open.
///
/// A promise that is destroyed before it is set fails its future with BrokenPromise.
template <class T = void>
class Promise {
 public:
  explicit Promise(Pe& pe)
      : completion_(new am::CompletionOf<T>(am::Completions::of(pe))), future_(completion_.get()) {}
  Promise(Promise&&) noexcept = default;
  Promise& operator=(Promise&& other) noexcept {
    Promise(std::move(other)).swap(*this);
    return *this;
  }
  ~Promise() {
    if (!completion_ || completion_->ready()) return;
    future_ = {};
    if (completion_->holders == 1) return;
    completion_->error = std::make_exception_ptr(BrokenPromise());
    completion_->state = am::Completion::State::failed;
    completion_->owner->complete_later(*completion_);
  }

  /// The future, once. UsageError for a second call.
  Future<T> future() {
    if (!future_) am::throw_promise_used("future() was called before: a promise has one future");
    return Future<T>(std::move(future_));
  }

  void set() requires std::is_void_v<T> {
    settable().emplace();
    completion_->owner->complete(*completion_);
  }
  /// set() that resumes the waiter at the next progress, also in a handler.
  void set_later() requires std::is_void_v<T> {
    settable().emplace();
    completion_->owner->complete_later(*completion_);
  }
  template <class U>
  requires(!std::is_void_v<T> && std::is_constructible_v<T, U&&>) void set(U&& value) {
    settable().emplace(std::forward<U>(value));
    completion_->owner->complete(*completion_);
  }
  void fail(std::exception_ptr error) {
    settable().error = std::move(error);
    completion_->state = am::Completion::State::failed;
    completion_->owner->complete(*completion_);
  }

 private:
  am::CompletionOf<T>& settable() {
    if (!completion_ || completion_->ready()) am::throw_promise_used("it was set before, or moved from");
    return *completion_;
  }
  void swap(Promise& other) noexcept {
    std::swap(completion_, other.completion_);
    std::swap(future_, other.future_);
  }

  am::Hold<am::CompletionOf<T>> completion_, future_;
};

/// Gives the value once. Movable. Only the PE's thread uses it, within the run. A future may be destroyed at any
/// time; then the value is dropped. quiesce() still counts the messages that set it.
template <class T = void>
class [[nodiscard]] Future {
 public:
  explicit Future(am::Hold<am::CompletionOf<T>> completion) : completion_(std::move(completion)) {}
  Future(Future&&) noexcept = default;
  Future& operator=(Future&&) noexcept = default;

  /// Whether get() returns without waiting. False for a future that was moved from.
  bool ready() const { return completion_ && completion_->ready(); }

  /// Waits, running handlers, and returns the value or throws the error. Once. UsageError in a handler.
  T get() {
    am::CompletionOf<T>& completion = untaken();
    completion.owner->wait("get() of a future", [&completion] { return completion.ready(); });
    return completion.take();
  }

  /// Calls f(value), or f() for void, when the value is set, in the way a Promise resumes a waiter; at once if it is
  /// set already. If the future fails, or f throws, the run ends as for an exception of a handler. If the run ends
  /// first, f is destroyed, and the status of the run is 123. The future is empty afterwards.
  template <class F>
  void then(F f, std::source_location place = std::source_location::current()) {
    am::Completions& owner = *untaken().owner;
    follow(owner, {"a callback of a future", place}, std::move(*this), std::move(f)).start();
  }
  /// The same; if the future fails, calls on_error(std::exception_ptr).
  template <class F, class OnError>
  requires std::is_invocable_v<OnError&, std::exception_ptr>
  void then(F f, OnError on_error, std::source_location place = std::source_location::current()) {
    am::Completions& owner = *untaken().owner;
    follow_or(owner, {"a callback of a future", place}, std::move(*this), std::move(f), std::move(on_error)).start();
  }

  /// co_await gives the value or throws the error. A destroyed coroutine is not resumed.
  class Awaiter;
  Awaiter operator co_await() { return Awaiter(untaken()); }

 private:
  am::CompletionOf<T>& untaken() {
    if (!completion_ || completion_->state == am::Completion::State::taken || completion_->waiter) am::throw_taken();
    return *completion_;
  }

  template <class F>
  static am::Detached follow(am::Completions&, am::Origin, Future future, F f) {
    if constexpr (std::is_void_v<T>) {
      co_await future;
      f();
    } else {
      f(co_await future);
    }
  }
  template <class F, class OnError>
  static am::Detached follow_or(am::Completions&, am::Origin, Future future, F f, OnError on_error) {
    std::exception_ptr error;
    am::CompletionOf<T>& completion = *future.completion_;
    co_await Ready(completion);
    if (completion.state == am::Completion::State::failed) {
      on_error(std::exchange(completion.error, nullptr));
    } else if constexpr (std::is_void_v<T>) {
      f();
    } else {
      f(completion.take());
    }
  }

  /// Waits until the completion is ready, without taking the value.
  class Ready {
   public:
    explicit Ready(am::CompletionOf<T>& completion) : completion_(&completion) {}
    Ready(const Ready&) = delete;
    Ready& operator=(const Ready&) = delete;
    ~Ready() { completion_->waiter = nullptr; }

    bool await_ready() const { return completion_->ready(); }
    void await_suspend(std::coroutine_handle<> coroutine) { completion_->waiter = coroutine; }
    void await_resume() const {}

   protected:
    am::Hold<am::CompletionOf<T>> completion_;
  };

  am::Hold<am::CompletionOf<T>> completion_;
};

template <class T>
class Future<T>::Awaiter : public Future<T>::Ready {
 public:
  using Ready::Ready;
  T await_resume() const { return this->completion_->take(); }
};

}  // namespace headway
