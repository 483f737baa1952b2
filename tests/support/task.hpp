// SPDX-License-Identifier: BSD-3-Clause
/// The plainest coroutine, for tests of what can be awaited.
#pragma once

#include <coroutine>
#include <utility>

namespace headway::testing {

/// It starts at once, and ends with its owner.
class Task {
 public:
  struct promise_type {
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_ != nullptr) handle_.destroy();
  }
  bool done() const { return handle_.done(); }

 private:
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace headway::testing
