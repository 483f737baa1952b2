// SPDX-License-Identifier: BSD-3-Clause
/// Where a PE is among the PEs of a run: its process and its host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace headway::transport {

/// PEs [first, first + count).
struct PeRange {
  std::size_t first = 0, count = 0;

  bool contains(std::size_t pe) const { return pe - first < count; }
  std::size_t end() const { return first + count; }
};

/// The same on all PEs of a run, but for `id`.
struct HostMap {
  std::size_t id = 0;    // this PE
  std::size_t size = 1;  // PEs of the run
  std::size_t pes_per_process =
      1;  // process p has PEs p * k to p * k + k - 1, where k is this; the last may have fewer
  /// The first PE of each host, ascending from 0. Empty: all PEs are on one host. PEs of one host reach one another
  /// through shared memory, and others over a wire.
  std::span<const std::size_t> host_firsts = {};

  /// The PEs of this PE's process.
  PeRange own_process() const {
    const std::size_t first = id - id % pes_per_process;
    return {first, std::min(pes_per_process, size - first)};
  }

  /// The PEs of this PE's host.
  PeRange own_host() const {
    if (host_firsts.empty()) return {0, size};
    const auto next = std::ranges::upper_bound(host_firsts, id);
    const std::size_t first = *(next - 1);
    return {first, (next == host_firsts.end() ? size : *next) - first};
  }
};

}  // namespace headway::transport
