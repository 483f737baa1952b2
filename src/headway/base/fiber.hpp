// SPDX-License-Identifier: BSD-3-Clause
/// Fibers: threads of control that take turns on one system thread. Only if the build found Boost.Context.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace headway::base {

/// A pointer for each fiber, nullptr at first. Outside of fibers it belongs to the thread.
inline constinit thread_local void* fiber_local = nullptr;

/// A fiber runs on its own stack, only inside resume(), until it calls suspend() or its body returns. All calls come
/// from one system thread.
///
/// A fiber that is destroyed before it is done is not unwound: no object on its stack is destroyed. A fiber may suspend
/// while an exception is in flight or caught. The body must not let an exception escape.
class Fiber {
 public:
  static constexpr std::size_t stack_bytes_default = std::size_t(256) << 10;

  /// Does not run the body yet. Throws SystemError if there is no memory for the stack. Pages of the stack take memory
  /// when they are touched; a guard page ends it.
  explicit Fiber(std::function<void()> body, std::size_t stack_bytes = stack_bytes_default);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Runs the fiber until it suspends or is done. Not from inside the fiber, nor when done().
  void resume();
  bool done() const;

  /// Returns from the resume() of the running fiber. Only inside a fiber.
  static void suspend();
  /// The running fiber, or nullptr.
  static Fiber* current();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace headway::base
