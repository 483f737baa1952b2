// SPDX-License-Identifier: BSD-3-Clause
/// Things that say when they are made and destroyed.
#pragma once

#include <utility>

namespace headway::testing {

/// Adds one to a counter when it, or the object it was moved to, is destroyed.
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

/// How many objects of a kind were made, and how many destroyed.
struct Tally {
  int made = 0;
  int destroyed = 0;
};

/// Adds itself to a tally. It may travel in messages; one that has come in a message is in no tally.
class Tallied {
 public:
  Tallied() = default;
  explicit Tallied(Tally& tally) : tally_(&tally) { ++tally.made; }
  Tallied(const Tallied& other) : tally_(other.tally_) {
    if (tally_ != nullptr) ++tally_->made;
  }
  Tallied& operator=(const Tallied&) = delete;
  ~Tallied() {
    if (tally_ != nullptr) ++tally_->destroyed;
  }
  template <class Archive>
  void serialize(Archive&) {}

 private:
  Tally* tally_ = nullptr;
};

}  // namespace headway::testing
