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
  struct Both {
    std::uint64_t ticks = 0;
    std::int64_t ns = 0;
  };
  static constexpr double apart_ns = 1e6;
  static constexpr std::int64_t rate_ns_min = 1'000'000;  // the rate is known after that time
  static constexpr int tries = 8;

  /// Of several reads the quickest one, so that little happens between the two clocks.
  Both read_both() const {
    Both best;
    std::uint64_t least = UINT64_MAX;
    for (int i = 0; i < tries; ++i) {
      const std::uint64_t before = base::cycles();
      const std::int64_t ns = endpoint_->now();
      const std::uint64_t after = base::cycles();
      if (after - before >= least) continue;
      least = after - before;
      best = {before + (after - before) / 2, ns};
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
  Both first_, last_;
  double ns_per_tick_ = 0;
  std::int64_t given_ = INT64_MIN;
};

}  // namespace headway::trace
