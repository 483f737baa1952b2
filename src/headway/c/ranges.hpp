// SPDX-License-Identifier: BSD-3-Clause
/// Global ids of which each PE owns a contiguous range.
#pragma once

#include <cstdint>
#include <headway/am/pe.hpp>
#include <headway/halo/plan.hpp>
#include <vector>

namespace headway::c {

class Ranges {
 public:
  /// Collective. This PE owns the ids first to first + owned - 1. UsageError, on all PEs, if two ranges overlap.
  Ranges(Pe& pe, std::uint64_t first, std::uint64_t owned);

  /// UsageError if no PE owns the id.
  halo::Place find(std::uint64_t id) const;

 private:
  struct Range {
    std::uint64_t first, owned;
    std::size_t pe;
  };
  std::vector<Range> ranges_;  // ascending, without empty ones
};

}  // namespace headway::c
