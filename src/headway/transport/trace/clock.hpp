// SPDX-License-Identifier: BSD-3-Clause
/// The run's clock, read from the processor's clock, which takes less than half as long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <headway/base/cycles.hpp>
#include <headway/transport/endpoint.hpp>

namespace headway::trace {

/// Reads the endpoint's clock once in a millisecond, and counts ticks from there. Never goes back.
class TraceClock {
 public:
  /// A simulated endpoint, and a processor without a steady clock, have the endpoint's clock alone.
  TraceClock(const transport::Endpoint& endpoint, bool simulated)
      : endpoint_(&endpoint), counts_ticks_(!simulated && base::has_steady_cycles()) {
    if (counts_ticks_) first_ = last_ = read_both();
  }

  std::int64_t now() {
    if (!counts_ticks_) return endpoint_->now();
    const std::uint64_t ticks = base::cycles();
    // The clocks of two cores may differ by a few ticks.
    const double ns = ticks > last_.ticks ? double(ticks - last_.ticks) * ns_per_tick_ : 0;
    if (ns_per_tick_ == 0 || ns >= apart_ns) [[unlikely]]
      renew();
    else
      given_ = std::max(given_, last_.ns + std::int64_t(ns));
    return given_;
  }

 private:
  static constexpr double apart_ns = 1e6;
  static constexpr std::int64_t rate_ns_min = 1'000'000;  // the rate is known after that time
  static constexpr int tries = 8;

  /// The best of several tries.
  base::ClockPair read_both() const {
    const auto now = [this] { return endpoint_->now(); };
    base::ClockPair best = base::read_both_clocks(now);
    for (int i = 1; i < tries; ++i) {
      const base::ClockPair next = base::read_both_clocks(now);
      if (next.uncertainty < best.uncertainty) best = next;
    }
    return best;
  }
  void renew() {
    if (endpoint_->now() - first_.ns < rate_ns_min) {
      given_ = std::max(given_, endpoint_->now());
      return;
    }
    last_ = read_both();
    ns_per_tick_ = double(last_.ns - first_.ns) / double(last_.ticks - first_.ticks);
    given_ = std::max(given_, last_.ns);
  }

  const transport::Endpoint* endpoint_;
  bool counts_ticks_;
  base::ClockPair first_{}, last_{};
  double ns_per_tick_ = 0;
  std::int64_t given_ = INT64_MIN;
};

}  // namespace headway::trace
