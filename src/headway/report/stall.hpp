/// Notices that nothing moves in a run though work is pending.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// A run is stalled when at least one PE waits for others, none is at work (a process that is stopped by a signal is
/// not), and no PE's activity has changed for the given time. Time counts only while somebody looks, so that a run
/// whose supervisor was stopped or starved is not taken for stalled.
class StallWatch {
 public:
  /// The process's pid, or -1 once it has ended.
  using PidOf = std::function<pid_t(std::size_t process)>;

  StallWatch(const local::Segment& segment, std::chrono::nanoseconds limit) : segment_(&segment), limit_(limit) {}

  /// Looks; call it regularly, `interval_ns` apart.
  void check(const PidOf& pid_of, std::int64_t interval_ns);

  /// As of the last check.
  bool stalled() const { return limit_.count() != 0 && still_ns_ >= limit_.count(); }
  /// For so long nothing has moved.
  std::int64_t still_ns() const { return still_ns_; }

 private:
  bool moves(const PidOf& pid_of);

  const local::Segment* segment_;
  std::chrono::nanoseconds limit_;
  std::uint64_t activity_ = 0;
  std::int64_t still_ns_ = 0;
};

}  // namespace headway::report
