// SPDX-License-Identifier: BSD-3-Clause
/// Coroutines that return a value, and waiting for several.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <headway/am/future.hpp>
#include <headway/base/error.hpp>
#include <source_location>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace headway {

template <class T>
class Task;

namespace am {

template <class T>
inline constexpr bool is_task = false;
template <class T>
inline constexpr bool is_task<Task<T>> = true;

/// Counts down the tasks that were started together, and resumes the waiter when the last one is done.
class Join {
 public:
  explicit Join(std::size_t tasks) : left_(tasks) {}

  bool await_ready() const { return left_ == 0; }
  void await_suspend(std::coroutine_handle<> coroutine) { waiter_ = coroutine; }
  void await_resume() const {}

  /// Called when a task is done. Returns the coroutine to resume.
  std::coroutine_handle<> one_done() {
    if (--left_ == 0 && waiter_) return waiter_;
    return std::noop_coroutine();
  }

 private:
  std::size_t left_;
  std::coroutine_handle<> waiter_;
};

/// Base of the promises of all tasks.
class TaskPromise {
  /// Resumes the waiter, unless the waiter is still inside start of this task and checks done() itself.
  struct Final {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) noexcept {
      TaskPromise& promise = done.promise();
      if (promise.join != nullptr) return promise.join->one_done();
      if (promise.waiter && !promise.starting) return promise.waiter;
      return std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };

 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return Final(); }

  bool started = false;
  bool starting = false;  // inside the first resume()
  Join* join = nullptr;
  std::coroutine_handle<> waiter;  // may be empty
};

}  // namespace am

/// A coroutine that returns a T by co_return. It starts when another coroutine calls `co_await task`, which returns its
/// value or rethrows its exception, or by spawn(), when_all() or run_task().
///
///     headway::Task<int> sum(headway::Pe& pe) {
///       const int one = co_await headway::rpc(pe, 1, [](int n) { return n + 1; }, 0);
///       co_return one + co_await headway::rpc(pe, 2, [](int n) { return n * 2; }, one);
///     }
///
/// The Task owns the coroutine: destroying the Task destroys the coroutine, which is then not resumed. Its code runs on
/// its PE's thread: until it first waits inside the call that started it, later in handlers. So it must not call get()
/// or quiesce(). It takes arguments by value, except Pe& and objects that outlive it.
template <class T = void>
class [[nodiscard]] Task {
 public:
  class promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  /// Whether the coroutine has ended.
  bool done() const { return handle_ && handle_.done(); }

  /// Starts the task and waits for its value. UsageError if it was started before.
  class Awaiter;
  Awaiter operator co_await() { return Awaiter(startable()); }

  /// For run_task() and when_all(), which own the started task. `join` counts its end.
  void start(am::Join* join = nullptr) {
    const Handle handle = startable();
    handle.promise().started = true;
    handle.promise().join = join;
    handle.resume();
  }
  /// Returns the value of a task that is done, once, or rethrows its exception.
  T take() { return handle_.promise().take(); }

 private:
  explicit Task(Handle handle) : handle_(handle) {}
  Handle startable() const {
    if (!handle_ || handle_.promise().started) {
      throw UsageError("a task is started once: it was started before, or moved from");
    }
    return handle_;
  }

  Handle handle_;
};

namespace am {

/// Stores a task's value or exception.
template <class T>
class TaskResult : public TaskPromise {
 public:
  template <class U = T>
  requires std::is_constructible_v<T, U&&>
  void return_value(U&& value) { result_.template emplace<1>(std::forward<U>(value)); }
  void unhandled_exception() { result_.template emplace<2>(std::current_exception()); }
  T take() {
    if (result_.index() == 2) std::rethrow_exception(std::get<2>(result_));
    return std::move(std::get<1>(result_));
  }

 private:
  std::variant<std::monostate, T, std::exception_ptr> result_;
};
template <>
class TaskResult<void> : public TaskPromise {
 public:
  void return_void() {}
  void unhandled_exception() { error_ = std::current_exception(); }
  void take() {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

}  // namespace am

template <class T>
class Task<T>::promise_type : public am::TaskResult<T> {
 public:
  Task get_return_object() { return Task(Handle::from_promise(*this)); }
};

template <class T>
class Task<T>::Awaiter {
 public:
  explicit Awaiter(Handle task) : task_(task) {}
  Awaiter(const Awaiter&) = delete;
  Awaiter& operator=(const Awaiter&) = delete;
  ~Awaiter() {
    if (waits_) task_.promise().waiter = nullptr;  // the waiting coroutine is being destroyed
  }

  bool await_ready() const { return false; }
  /// Runs the task on the stack of the waiting coroutine, which continues at once if the task did not wait. Symmetric
  /// transfer instead would use more stack for each task, if GCC does not optimise or with sanitizers.
  bool await_suspend(std::coroutine_handle<> coroutine) {
    am::TaskPromise& promise = task_.promise();
    promise.started = promise.starting = true;
    promise.waiter = coroutine;
    task_.resume();
    promise.starting = false;
    waits_ = !task_.done();
    return waits_;
  }
  T await_resume() {
    waits_ = false;
    return task_.promise().take();
  }

 private:
  Handle task_;
  bool waits_ = false;
};

namespace am {

template <class T>
Detached drive(Completions&, Origin, Task<T> task) {
  co_await task;
}

}  // namespace am

/// Starts a task without a waiter. Its PE owns it, and destroys it when it is done. Its value is dropped; an
/// exception ends the run, like one of a handler. `place` names the task in error texts.
///
/// quiesce() waits for messages, so also for tasks that wait for messages, such as answers to calls. Tasks that still
/// wait after the last quiesce() of the run are destroyed, and the status of the run is 123.
template <class T>
void spawn(Pe& pe, Task<T> task, std::source_location place = std::source_location::current()) {
  am::drive(am::Completions::of(pe), {"a task that was spawned", place}, std::move(task)).start();
}

/// Starts a task, runs handlers until it is done, and returns its value or rethrows its exception. UsageError in a
/// handler.
template <class T>
T run_task(Pe& pe, Task<T> task) {
  constexpr const char* call = "run_task()";
  am::Completions& completions = am::Completions::of(pe);
  completions.require_may_wait(call);
  task.start();
  completions.wait(call, [&task] { return task.done(); });
  return task.take();
}

// --- waiting for many

/// Waits for all futures and returns their values in order. If some fail, waits for all, then throws the error of the
/// first of them.
template <class T>
requires(!std::is_void_v<T>) Task<std::vector<T>> when_all(Pe&, std::vector<Future<T>> futures) {
  std::vector<T> values;
  values.reserve(futures.size());
  std::exception_ptr first_error;
  for (Future<T>& future : futures) {
    try {
      values.push_back(co_await future);
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (first_error) std::rethrow_exception(first_error);
  co_return values;
}
inline Task<> when_all(Pe&, std::vector<Future<>> futures) {
  std::exception_ptr first_error;
  for (Future<>& future : futures) {
    try {
      co_await future;
    } catch (...) {
      if (!first_error) first_error = std::current_exception();
    }
  }
  if (first_error) std::rethrow_exception(first_error);
}

/// Starts all tasks, waits for all, and returns their values in order. If some throw, waits for all, then throws the
/// exception of the first of them.
template <class T>
requires(!std::is_void_v<T>) Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  am::Join join(tasks.size());
  for (Task<T>& task : tasks) task.start(&join);
  co_await join;
  std::vector<T> values;
  values.reserve(tasks.size());
  for (Task<T>& task : tasks) values.push_back(task.take());
  co_return values;
}
inline Task<> when_all(std::vector<Task<>> tasks) {
  am::Join join(tasks.size());
  for (Task<>& task : tasks) task.start(&join);
  co_await join;
  for (Task<>& task : tasks) task.take();
}

namespace am {
template <class T>
ValueOf<T> take_value(Task<T>& task) {
  if constexpr (std::is_void_v<T>)
    return task.take(), Nothing();
  else
    return task.take();
}
}  // namespace am

/// The same for tasks of different types. Returns a tuple, with am::Nothing for tasks of void.
template <class... T>
requires(sizeof...(T) > 0) Task<std::tuple<am::ValueOf<T>...>> when_all(Task<T>... tasks) {
  am::Join join(sizeof...(T));
  (tasks.start(&join), ...);
  co_await join;
  co_return std::tuple<am::ValueOf<T>...>{am::take_value(tasks)...};
}

}  // namespace headway
