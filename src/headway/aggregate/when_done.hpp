/// Who learns that a transfer has ended.
#pragma once

#include <concepts>
#include <functional>
#include <headway/am/future.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

/// A promise, or a callable that is called then: without the memory that a completion and a coroutine which waits for it would
/// take. Destroyed before, it calls nothing, and its promise is broken.
class WhenDone {
 public:
  /// Nobody learns it.
  WhenDone() = default;
  WhenDone(Promise<> promise) : promise_(std::move(promise)) {}
  template <class Done>
    requires(std::invocable<Done&> && !std::is_same_v<Done, WhenDone>)
  WhenDone(Done done) : call_(copyable(std::move(done))) {}

  /// Once. A callable is called at once.
  void operator()() {
    if (call_)
      call_();
    else if (promise_)
      promise_->set();
  }

 private:
  template <class Done>
  static auto copyable(Done done) {
    if constexpr (std::is_copy_constructible_v<Done>)
      return done;
    else
      return [done = std::make_shared<Done>(std::move(done))] { (*done)(); };
  }

  std::optional<Promise<>> promise_;
  std::function<void()> call_;
};

}  // namespace headway::aggregate
