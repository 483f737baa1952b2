/// How much a PE may have sent to another over the wire that this has not released yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headway::wire {

/// By hops left, as the budget of the layer above has it.
inline constexpr std::size_t credit_classes = 8;
inline constexpr std::size_t credit_unit_bytes = 64;

/// Units that were taken, or given back, since the run began, modulo 2^32.
using Units = std::array<std::uint32_t, credit_classes>;

constexpr std::size_t credit_class(std::uint8_t hops_left) {
  return hops_left < credit_classes ? hops_left : credit_classes - 1;
}
constexpr std::uint32_t units_of(std::size_t bytes) {
  return std::uint32_t((bytes + credit_unit_bytes - 1) / credit_unit_bytes);
}

/// The sender's side, for one pair of PEs.
///
/// Frames with h or more hops left hold at most limit * 2 / (2 + h), so that frames nearer their end find room whatever
/// those with more hops hold; one is always granted where next to nothing that is as near is on its way. With this,
/// forwarding cannot deadlock, for the same reason as with budgets. What the receiver has released it says only when it
/// has come to `slack`, so less than that may be nothing.
class CreditTaken {
 public:
  struct Terms {
    std::uint32_t limit, slack;  // in units
  };

  /// Whether a frame of `units` may go.
  bool allows(const Terms& terms, std::uint32_t units, std::size_t hops) const {
    std::uint64_t held = 0, as_near = 0;
    for (std::size_t c = 0; c < credit_classes; ++c) {
      held += on_their_way(c);
      if (c <= hops) as_near += on_their_way(c);
    }
    if (as_near < terms.slack) return true;
    for (std::size_t h = 0; h <= hops; ++h) {
      if (held + units > std::uint64_t(terms.limit) * 2 / (2 + h)) return false;
      held -= on_their_way(h);
    }
    return true;
  }
  void take(std::uint32_t units, std::size_t hops) { taken_[hops] += units; }
  /// What the receiver says it has released in all.
  void set_released(const Units& released) { released_ = released; }

  std::uint32_t on_their_way(std::size_t hops) const { return taken_[hops] - released_[hops]; }

 private:
  Units taken_{}, released_{};
};

/// The receiver's side.
class CreditOwed {
 public:
  void release(std::uint32_t units, std::size_t hops) {
    released_[hops] += units;
    unsaid_ += units;
  }
  bool due(const CreditTaken::Terms& terms) const { return unsaid_ >= terms.slack; }
  /// To be sent now.
  const Units& say() {
    unsaid_ = 0;
    return released_;
  }

 private:
  Units released_{};
  std::uint64_t unsaid_ = 0;
};

}  // namespace headway::wire
