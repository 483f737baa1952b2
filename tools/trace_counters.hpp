// SPDX-License-Identifier: BSD-3-Clause
/// Counters over the time of a traced run, from its frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace_folder.hpp"

namespace headway::tools {

struct CounterPoint {
  std::int64_t at_ns;
  double value;  // from there to the next point
};

/// Points of one counter at most. With more frames the time is divided into so many intervals.
inline constexpr std::size_t counter_points_max = 2000;

/// Bytes of frames that PEs of the process posted and receivers have not taken. An interval has its largest value.
std::vector<CounterPoint> bytes_in_flight(const TraceFolder& folder, const TraceProcess& process);

/// Messages per frame of the frames of messages that PEs of the process posted: the mean of each interval. An interval
/// without frames has 0.
std::vector<CounterPoint> messages_per_frame(const TraceFolder& folder, const TraceProcess& process);

}  // namespace headway::tools
