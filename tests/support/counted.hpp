/// Something that says when it is destroyed.
#pragma once

#include <utility>

namespace headway::testing {

/// Adds one to a counter when it, or what it was moved to, is destroyed.
class Counted {
 public:
  explicit Counted(int* destroyed) : destroyed_(destroyed) {}
  Counted(Counted&& other) noexcept : destroyed_(std::exchange(other.destroyed_, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (destroyed_ != nullptr) ++*destroyed_;
  }

 private:
  int* destroyed_;
};

}  // namespace headway::testing
