// SPDX-License-Identifier: BSD-3-Clause
/// Measured costs of a frame, which replace a transport's own estimates.
#pragma once

#include <headway/transport/endpoint.hpp>

namespace headway::transport {

/// Equal on all PEs of a run, in shared memory and in messages of the start. As TransportCosts.
struct FrameCosts {
  double overhead_ns = 0;  // 0: not measured, and the estimates stay
  double gap_per_byte_ns = 0;
  double latency_ns = 0;

  TransportCosts over(TransportCosts estimates) const {
    if (overhead_ns == 0) return estimates;
    estimates.overhead_ns = overhead_ns;
    estimates.gap_per_byte_ns = gap_per_byte_ns;
    estimates.latency_ns = latency_ns;
    return estimates;
  }
};

}  // namespace headway::transport
