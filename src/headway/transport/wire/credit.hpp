// SPDX-License-Identifier: BSD-3-Clause
/// Credit: the bytes that a PE may have in flight to another PE over the wire.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headway::wire {

/// Classes of hops left, as in the budget of the layer above.
inline constexpr std::size_t credit_classes = 8;
inline constexpr std::size_t credit_unit_bytes = 64;

/// Units taken or returned since the start of the run, by class, modulo 2^32.
using Units = std::array<std::uint32_t, credit_classes>;

constexpr std::size_t credit_class(std::uint8_t hops_left) {
  return hops_left < credit_classes ? hops_left : credit_classes - 1;
}
constexpr std::uint32_t units_of(std::size_t bytes) {
  return std::uint32_t((bytes + credit_unit_bytes - 1) / credit_unit_bytes);
}

/// The sender's side, for one pair of PEs.
///
/// Frames with h or more hops left hold at most limit * 2 / (2 + h), so that frames with fewer hops left always find
/// credit. One frame is always allowed if less than `slack` with as few hops left is in flight: the receiver reports
/// releases only in steps of `slack`, so that all of it may have been released. So forwarding cannot deadlock, for the
/// same reason as with budgets.
class CreditTaken {
 public:
  struct Terms {
    std::uint32_t limit, slack;  // in units
  };

  /// True if a frame of `units` may be sent.
  bool allows(const Terms& terms, std::uint32_t units, std::size_t hops) const {
    std::uint64_t held = 0, as_near = 0;
    for (std::size_t c = 0; c < credit_classes; ++c) {
      held += in_flight(c);
      if (c <= hops) as_near += in_flight(c);
    }
    if (as_near < terms.slack) return true;
    for (std::size_t h = 0; h <= hops; ++h) {
      if (held + units > std::uint64_t(terms.limit) * 2 / (2 + h)) return false;
      held -= in_flight(h);
    }
    return true;
  }
  void take(std::uint32_t units, std::size_t hops) { taken_[hops] += units; }
  /// Sets the total that the receiver has reported as released.
  void set_released(const Units& released) { released_ = released; }

  std::uint32_t in_flight(std::size_t hops) const { return taken_[hops] - released_[hops]; }

 private:
  Units taken_{}, released_{};
};

/// The receiver's side.
class CreditOwed {
 public:
  void release(std::uint32_t units, std::size_t hops) {
    released_[hops] += units;
    unreported_ += units;
  }
  bool due(const CreditTaken::Terms& terms) const { return unreported_ >= terms.slack; }
  /// The total to send to the sender now.
  const Units& report() {
    unreported_ = 0;
    return released_;
  }

 private:
  Units released_{};
  std::uint64_t unreported_ = 0;
};

}  // namespace headway::wire
