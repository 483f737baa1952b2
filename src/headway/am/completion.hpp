// SPDX-License-Identifier: BSD-3-Clause
/// A pending value and its waiter: the type behind futures, callbacks and tasks. For the layers above; programs use
/// Future and Task.
#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <headway/am/engine.hpp>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace headway::am {

class Completions;

/// The value type of futures and tasks of void.
struct Nothing {};
template <class T>
using ValueOf = std::conditional_t<std::is_void_v<T>, Nothing, T>;

/// One pending value or failure, shared by its setter and its taker. Only the PE's thread uses it.
///
///     pending -- set ---> value ----- take ---> taken
///            `-- fail --> failed --'
struct Completion {
  enum class State : std::uint8_t { pending, value, failed, taken };

  explicit Completion(Completions& o) : owner(&o) {}
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  virtual ~Completion() = default;

  bool ready() const { return state != State::pending; }

  Completions* owner;
  Completion* next = nullptr;      // next completion to resume
  std::coroutine_handle<> waiter;  // empty: no coroutine waits
  std::exception_ptr error;        // in state failed
  std::uint32_t holders = 0;
  State state = State::pending;
};

template <class T>
struct CompletionOf final : Completion {
  using Value = ValueOf<T>;

  explicit CompletionOf(Completions& o) : Completion(o) {}
  ~CompletionOf() override {
    if (holds_value) value.~Value();
  }

  template <class... Args>
  void emplace(Args&&... args) {
    new (std::addressof(value)) Value(std::forward<Args>(args)...);
    holds_value = true;
    state = State::value;
  }
  /// Returns the value or throws the error. UsageError unless it is ready and not taken.
  T take();

  union {
    Value value;
  };
  bool holds_value = false;
};

void destroy(Completion& completion) noexcept;

/// A counted reference to a Completion. The last one destroys it.
template <class C>
class Hold {
 public:
  Hold() = default;
  explicit Hold(C* completion) : completion_(completion) {
    if (completion_ != nullptr) ++completion_->holders;
  }
  Hold(Hold&& other) noexcept : completion_(std::exchange(other.completion_, nullptr)) {}
  Hold& operator=(Hold&& other) noexcept {
    std::swap(completion_, other.completion_);
    return *this;
  }
  ~Hold() {
    if (completion_ != nullptr && --completion_->holders == 0) destroy(*completion_);
  }

  C* get() const { return completion_; }
  C* operator->() const { return completion_; }
  C& operator*() const { return *completion_; }
  explicit operator bool() const { return completion_ != nullptr; }

 private:
  C* completion_ = nullptr;
};

/// Where a detached coroutine was started, for reports.
struct Origin {
  const char* what;  // "the task spawned"
  std::source_location place;
};

/// A coroutine without a waiter. Its PE owns it, and destroys it when it is done or the run ends. An exception ends
/// the run. The coroutine's first parameters are Completions& and Origin.
class Detached {
 public:
  class promise_type {
   public:
    template <class... Args>
    promise_type(Completions& owner, const Origin& origin, Args&...);
    promise_type(const promise_type&) = delete;
    promise_type& operator=(const promise_type&) = delete;
    ~promise_type();

    Detached get_return_object() { return Detached(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception();

   private:
    friend class headway::am::Completions;
    Completions* owner_;
    Origin origin_;
    promise_type *before_ = nullptr, *after_ = nullptr;  // in its owner's list
  };

  /// Runs it until it waits or is done. Called once.
  void start() { handle_.resume(); }

 private:
  explicit Detached(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

/// Resumes the waiters of one PE's completions, and owns its detached coroutines.
class Completions final : public Extension {
 public:
  explicit Completions(Engine& engine) : engine_(&engine) {}
  ~Completions() override { end(); }
  static Completions& of(Pe& pe);

  Engine& engine() { return *engine_; }

  /// Resumes the waiter of a completion that has become ready. Inside a handler: at once, or after the coroutine that
  /// is being resumed. Else: at the next progress, as a handler.
  void complete(Completion& completion);
  /// The same, always at the next progress. For destructors, which must not throw.
  void complete_later(Completion& completion);

  /// UsageError inside a handler and while handlers are deferred; the text names `call`.
  void require_may_wait(const char* call) const;

  /// Runs handlers until done() is true. UsageError as above.
  template <class Done>
  void wait(const char* call, Done done) {
    require_may_wait(call);
    if (!done()) engine_->wait_until(std::move(done), report::Phase::future);
  }

  /// Called in a catch block: ends the run with the current exception.
  [[noreturn]] void fail(const Origin& origin);

  std::string unfinished() const override;
  void end() noexcept override;

 private:
  friend class Detached::promise_type;

  struct List {
    Completion *first = nullptr, *last = nullptr;
    void push(Completion& completion);
    Hold<Completion> pop();
  };
  static void resume(Completion& completion);

  Engine* engine_;
  bool ended_ = false;
  bool continuing_ = false;
  List next_;      // resumed after the running coroutine waits or ends
  List deferred_;  // resumed at the next progress; the engine has a task for each
  Detached::promise_type* detached_ = nullptr;
};

template <class... Args>
Detached::promise_type::promise_type(Completions& owner, const Origin& origin, Args&...)
    : owner_(&owner), origin_(origin), after_(owner.detached_) {
  if (after_ != nullptr) after_->before_ = this;
  owner.detached_ = this;
}

[[noreturn]] void throw_taken();

template <class T>
T CompletionOf<T>::take() {
  if (state == State::failed) {
    state = State::taken;
    std::rethrow_exception(std::exchange(error, nullptr));
  }
  if (state != State::value) throw_taken();
  state = State::taken;
  if constexpr (!std::is_void_v<T>) return std::move(value);
}

}  // namespace headway::am
