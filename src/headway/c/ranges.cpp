// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/c/ranges.hpp>
#include <headway/collective/gather.hpp>

namespace headway::c {

Ranges::Ranges(Pe& pe, std::uint64_t first, std::uint64_t owned) {
  for (const Range& one : all_gather(pe, Range{first, owned, pe.id()})) {
    if (one.owned != 0) ranges_.push_back(one);
  }
  std::ranges::sort(ranges_, {}, &Range::first);
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    const Range &low = ranges_[i - 1], &high = ranges_[i];
    if (high.first - low.first >= low.owned) continue;
    throw UsageError(
        fmt::format("PE {} owns ids {} to {}, and PE {} owns ids from {} on: expected ranges without common "
                    "ids",
                    low.pe, low.first, low.first + (low.owned - 1), high.pe, high.first));
  }
}

halo::Place Ranges::find(std::uint64_t id) const {
  const auto above = std::ranges::upper_bound(ranges_, id, {}, &Range::first);
  if (above != ranges_.begin() && id - above[-1].first < above[-1].owned)
    return {PeId(above[-1].pe), id - above[-1].first};
  throw UsageError(fmt::format("id {} has no owner: the PEs own {} to {}{}", id,
                               ranges_.empty() ? 0 : ranges_.front().first,
                               ranges_.empty() ? 0 : ranges_.back().first + (ranges_.back().owned - 1),
                               ranges_.empty() ? ", which no PE has" : ""));
}

}  // namespace headway::c
