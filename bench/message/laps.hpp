// SPDX-License-Identifier: BSD-3-Clause
/// The time of round trips, part by part, so that a run says its median.
#pragma once

#include <algorithm>
#include <cstdint>
#include <record/record.hpp>
#include <utility>
#include <vector>

namespace headway::bench {

class Laps {
 public:
  Laps() = default;
  /// Begins a run of so many round trips.
  Laps(std::uint64_t trips, std::int64_t now_ns)
      : trips_a_part_(std::max<std::uint64_t>(1, trips / parts_max)), next_(trips_a_part_), marks_ns_{now_ns} {}

  /// After `trips` of them: whether a part has ended, so that mark() is due.
  bool due(std::uint64_t trips) const { return trips == next_; }
  void mark(std::int64_t now_ns) {
    marks_ns_.push_back(now_ns);
    next_ += trips_a_part_;
  }

  /// Half of a round trip: the median over the parts.
  double one_way_us() const {
    std::vector<double> parts;
    for (std::size_t i = 1; i < marks_ns_.size(); ++i) {
      parts.push_back(double(marks_ns_[i] - marks_ns_[i - 1]) * 1e-3 / 2 / double(trips_a_part_));
    }
    return spread_of(std::move(parts)).median;
  }

 private:
  static constexpr std::uint64_t parts_max = 20;
  std::uint64_t trips_a_part_ = 1, next_ = 0;
  std::vector<std::int64_t> marks_ns_;
};

}  // namespace headway::bench
