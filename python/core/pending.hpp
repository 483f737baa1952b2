// SPDX-License-Identifier: BSD-3-Clause
/// A future of the library. Its value becomes a Python object.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "run.hpp"

namespace headway::python {

class Pending : public Resource {
 public:
  virtual bool ready() const = 0;
  /// Waits, once.
  virtual nb::object take() = 0;
};

using PendingHandle = Handle<Pending>;

template <class Value, class Convert>
class PendingValue final : public Pending {
 public:
  PendingValue(Future<Value> future, Convert convert) : future_(std::move(future)), convert_(std::move(convert)) {}
  bool ready() const override { return future_ && future_->ready(); }
  nb::object take() override {
    if (!future_) throw UsageError("the result of this future has been taken before");
    if constexpr (std::is_void_v<Value>) {
      wait();
      return nb::none();
    } else {
      Value value = wait();
      return convert_(std::move(value));
    }
  }

 private:
  Value wait() {
    const Waiting waiting;
    Future<Value> future = std::move(*future_);
    future_.reset();
    return future.get();
  }

  std::optional<Future<Value>> future_;
  Convert convert_;
};

template <class Value, class Convert>
PendingHandle make_pending(Future<Value> future, Convert convert) {
  using Made = PendingValue<Value, Convert>;
  return Run::get().keep(std::unique_ptr<Pending>(std::make_unique<Made>(std::move(future), std::move(convert))));
}
inline PendingHandle make_pending(Future<> future) {
  const auto none = [] { return nb::none(); };
  return make_pending<void>(std::move(future), none);
}

}  // namespace headway::python
