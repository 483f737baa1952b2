/// One value that is to come: set once, waited for by the main program, a callback or a coroutine.
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

/// The promise of a future was destroyed before it was set.
struct BrokenPromise : std::runtime_error {
  BrokenPromise() : std::runtime_error("what a future waits for will never come: its promise was destroyed unset") {}
};

namespace am {
[[noreturn]] void throw_promise_used(const char* what);

/// Whether this compiler destroys a temporary twice that is initialised member by member (braces for an aggregate, a
/// closure with captures) in an expression with co_await: GCC before 13, bug 99576 (with 100611, 101367 and
/// 101976). GCC 13 and later and Clang destroy it once: docs/decisions/0024-one-completion-type.md.
#if defined(__GNUC__) && !defined(__clang__)
inline constexpr bool destroys_temporaries_twice = __GNUC__ < 13;
#else
inline constexpr bool destroys_temporaries_twice = false;
#endif

/// With such a compiler, one line of compile error for temporaries with destructors: a type does not say how its object
/// was made.
template <class... Args>
constexpr void require_named_arguments() {
  constexpr bool named = ((std::is_lvalue_reference_v<Args> ||
                           std::is_trivially_destructible_v<std::remove_reference_t<Args>>)&&...);
  static_assert(named || !destroys_temporaries_twice,
                "headway: GCC 12 destroys such a temporary twice where it is in an expression with co_await (GCC bug "
                "99576): give the argument a name first, `const std::string text = ...;`, and pass that");
}
}  // namespace am

/// The side that sets. It is movable, belongs to the thread of its PE, and to its run.
///
///     made -- future(), once --> ...    made -- set() or fail(), once --> done
///
/// Who waits is continued: inside a handler at once, or, if set() was called in what is being continued, after that;
/// in the main program at its next progress, as a handler. In the epoch that is the current one then: what only waits
/// for a future holds no epoch open.
///
/// One that is destroyed before it is set fails its future with BrokenPromise.
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

  /// UsageError the second time.
  Future<T> future() {
    if (!future_) am::throw_promise_used("future() was called before: a promise has one future");
    return Future<T>(std::move(future_));
  }

  void set()
    requires std::is_void_v<T>
  {
    settable().emplace();
    completion_->owner->complete(*completion_);
  }
  /// set() that continues nobody before the next progress, inside a handler either.
  void set_later()
    requires std::is_void_v<T>
  {
    settable().emplace();
    completion_->owner->complete_later(*completion_);
  }
  template <class U>
    requires(!std::is_void_v<T> && std::is_constructible_v<T, U &&>)
  void set(U&& value) {
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

/// The side that waits, for one taker. It is movable, belongs to the thread of its PE, and to its run. Destroying it is
/// always allowed: nobody learns what comes then; messages on whose way it is count for quiesce() all the same.
template <class T = void>
class [[nodiscard]] Future {
 public:
  explicit Future(am::Hold<am::CompletionOf<T>> completion) : completion_(std::move(completion)) {}
  Future(Future&&) noexcept = default;
  Future& operator=(Future&&) noexcept = default;

  /// Whether get() would not wait. False for one that was moved from.
  bool ready() const { return completion_ && completion_->ready(); }

  /// The value, once; what it was failed with is thrown. Runs handlers until it comes. UsageError inside a handler.
  T get() {
    am::CompletionOf<T>& completion = untaken();
    completion.owner->wait("get() of a future", [&completion] { return completion.ready(); });
    return completion.take();
  }

  /// Calls f(value), or f() for void, when it comes, as what waits is continued (Promise); at once if it is there. If
  /// it fails instead the run ends, as it does when a handler throws; so it does if f throws. If the run ends before it
  /// comes, f is destroyed, and the run's status is 123. The future is empty afterwards.
  template <class F>
  void then(F f, std::source_location place = std::source_location::current()) {
    am::Completions& owner = *untaken().owner;
    follow(owner, {"what follows a future", place}, std::move(*this), std::move(f)).start();
  }
  /// The same, but if it fails calls on_error(std::exception_ptr).
  template <class F, class OnError>
    requires std::is_invocable_v<OnError&, std::exception_ptr>
  void then(F f, OnError on_error, std::source_location place = std::source_location::current()) {
    am::Completions& owner = *untaken().owner;
    follow_or(owner, {"what follows a future", place}, std::move(*this), std::move(f), std::move(on_error)).start();
  }

  /// co_await gives the value, or throws what it was failed with. A coroutine that is destroyed meanwhile is not
  /// resumed.
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

  /// Waits until it is there, and takes nothing.
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
