// SPDX-License-Identifier: BSD-3-Clause
/// The optimal number of messages in a frame if delay has a cost.
#pragma once

#include <cmath>

namespace headway::aggregate {

/// The model of "Aggregation (variable-size TRAM, 2020)" with c(t) = kappa t: a frame takes alpha, and each of Q
/// messages a nanosecond costs kappa for each nanosecond that it is delayed. Frames posted every tau cost alpha / tau +
/// kappa Q tau / 2 a nanosecond; least at tau = sqrt(2 alpha / (kappa Q)).
struct DelayCost {
  double frame_ns = 0;  // alpha
  double kappa = 0;     // above 0

  /// Messages in a frame, Q tau, for arrivals every `interval_ns`, 1 / Q. Gathering pays from 2 on: alpha (Q t - 1) > Q
  /// t c(t / 2) holds for some t exactly if the result is above 2.
  double messages(double interval_ns) const { return std::sqrt(2 * frame_ns / (kappa * interval_ns)); }

  /// The longest delay that pays at any message rate.
  double delay_ns_max() const { return 2 * frame_ns / kappa; }
};

}  // namespace headway::aggregate
