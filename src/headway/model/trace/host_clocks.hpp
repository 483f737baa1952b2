// SPDX-License-Identifier: BSD-3-Clause
/// Offsets between the clocks of hosts, from the frames between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace headway::model::trace {

/// Hosts are numbers from 0 on. With least(a, b) = the least `taken - posted` of a frame from a to b, each time by its
/// own host's clock:
///   offset of b's clock from a's = (least(a, b) - least(b, a)) / 2, known up to (least(a, b) + least(b, a)) / 2
class HostClocks {
 public:
  explicit HostClocks(std::size_t hosts);

  void add_frame(std::size_t from, std::size_t to, std::int64_t taken_minus_posted_ns);

  struct Clock {
    std::int64_t offset_ns = 0;               // its time minus that of host 0
    std::optional<std::int64_t> residual_ns;  // of the pair that determines it; none: no frames in both directions
  };
  /// Each host by the pair with the least residual that connects it to host 0, directly or over other hosts.
  /// Hosts without any are determined from `assumed_ns`: for each host, its time minus that of host 0.
  std::vector<Clock> align(const std::vector<std::int64_t>& assumed_ns) const;

 private:
  // Of offsets, some 36 years: sums of times and offsets do not overflow.
  static constexpr std::int64_t offset_most = std::int64_t(1) << 60;
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::int64_t least(std::size_t from, std::size_t to) const { return least_[from * hosts_ + to]; }

  std::size_t hosts_;
  std::vector<std::int64_t> least_;  // from, to
};

}  // namespace headway::model::trace
