// SPDX-License-Identifier: BSD-3-Clause
/// Detects that nothing moves in a run although work is pending.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// A run is stalled when at least one PE waits, no PE works (a process that a signal has stopped does not), and no
/// PE's activity has changed for the given time. The time is the sum of the intervals of calls, so a supervisor that
/// was stopped does not take the run for stalled.
class StallWatch {
 public:
  /// The pid of a process, or -1 once it has ended.
  using PidOf = std::function<pid_t(std::size_t process)>;

  StallWatch(const local::Segment& segment, std::chrono::nanoseconds limit) : segment_(&segment), limit_(limit) {}

  /// Compares the boards with those of the last call, `interval_ns` ago.
  void check(const PidOf& pid_of, std::int64_t interval_ns);

  /// The result of the last check().
  bool stalled() const { return limit_.count() != 0 && still_ns_ >= limit_.count(); }
  /// Time for which nothing has moved.
  std::int64_t still_ns() const { return still_ns_; }

 private:
  bool moves(const PidOf& pid_of);

  const local::Segment* segment_;
  std::chrono::nanoseconds limit_;
  std::uint64_t activity_ = 0;
  std::int64_t still_ns_ = 0;
};

}  // namespace headway::report
