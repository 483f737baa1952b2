/// Threads of control that take turns on one thread of the system, where the build found Boost.Context.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace headway {

/// One pointer that every fiber has of its own, nullptr at first; outside of any it is the thread's.
inline constinit thread_local void* fiber_local = nullptr;

/// A stack of its own and a place in it. Runs only inside resume(), until it calls suspend() or its body returns; no
/// two ever run at once. All calls come from one thread of the system.
///
/// One that is destroyed before it is done is abandoned, not unwound: nothing on its stack is destroyed. An exception
/// may be in flight, or caught and not yet left, across suspend(). The body must not let one escape.
class Fiber {
 public:
  static constexpr std::size_t stack_bytes_default = std::size_t(256) << 10;

  /// Nothing runs yet. Throws SystemError if there is no memory for the stack, which is committed as it is touched and
  /// ends in a page that may not be.
  explicit Fiber(std::function<void()> body, std::size_t stack_bytes = stack_bytes_default);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  /// Runs the fiber until it suspends or is done. Not from inside itself, nor when done().
  void resume();
  bool done() const;

  /// Back to who resumed the fiber that runs now; there must be one.
  static void suspend();
  /// The one that runs now, or nullptr.
  static Fiber* current();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace headway
