// SPDX-License-Identifier: BSD-3-Clause
/// The action at the end of a transfer.
#pragma once

#include <concepts>
#include <headway/am/future.hpp>
#include <headway/base/once.hpp>
#include <utility>

namespace headway::am {

/// A callable or a promise. A callable needs no memory for a completion and a coroutine. If it is destroyed before
/// the end, the callable is not called, and the promise is broken.
class WhenDone : public base::Once {
 public:
  /// No action.
  WhenDone() = default;
  template <class Done>
  requires(std::invocable<Done&> && !std::derived_from<Done, base::Once>) WhenDone(Done done)
      : base::Once(std::move(done)) {}
  WhenDone(Promise<> promise) : base::Once([promise = std::move(promise)]() mutable { promise.set(); }) {}
};

}  // namespace headway::am
