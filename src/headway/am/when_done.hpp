/// Who learns that a transfer has ended.
#pragma once

#include <concepts>
#include <headway/am/future.hpp>
#include <headway/base/once.hpp>
#include <utility>

namespace headway::am {

/// A callable, which is called then without the memory that a completion and a coroutine which waits for it would take;
/// or a promise. Destroyed before, it calls nothing, and its promise is broken.
class WhenDone : public Once {
 public:
  /// Nobody learns it.
  WhenDone() = default;
  template <class Done>
    requires(std::invocable<Done&> && !std::derived_from<Done, Once>)
  WhenDone(Done done) : Once(std::move(done)) {}
  WhenDone(Promise<> promise) : Once([promise = std::move(promise)]() mutable { promise.set(); }) {}
};

}  // namespace headway::am
