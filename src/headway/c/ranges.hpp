// SPDX-License-Identifier: BSD-3-Clause
/// Global ids of which each PE has a contiguous range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/pe.hpp>
#include <headway/halo/plan.hpp>
#include <span>
#include <vector>

namespace headway::c {

/// The owners of the ids that this PE needs. Few PEs gather all ranges. Many PEs make a directory: the ids from the
/// lowest to the highest owned one are cut into one block of equal length for each PE, its home. Owners register their
/// range at the homes of its ids, and each PE asks the homes of the ids that it needs:
///
///     owner -- (first, owned) --> home <-- ids -- PE that needs them
///                                 home -- (first, owned, owner) ... --> PE
///
/// Disjoint ranges have at most 2 x PEs entries in the directory. So a home has about two, but more if ranges differ in
/// length: one for each range that begins in its block.
class Ranges {
 public:
  /// More PEs use the directory. The ranges of so many PEs take 24 bytes each.
  static constexpr std::size_t gathered_pes_max = 64;

  /// Collective. This PE owns the ids first to first + owned - 1, and needs `ids`. UsageError, on all PEs, if two
  /// ranges overlap.
  Ranges(Pe& pe, std::uint64_t first, std::uint64_t owned, std::span<const std::uint64_t> ids,
         std::size_t pes_max = gathered_pes_max);

  /// The owner of one of `ids`. UsageError if no PE owns it.
  halo::Place find(std::uint64_t id) const;

  /// The number of ranges that this PE has learned, with its own.
  std::size_t size() const { return ranges_.size(); }

 private:
  struct Range {
    std::uint64_t first = 0, owned = 0;
    std::size_t pe = 0;

    std::uint64_t last() const { return first + (owned - 1); }
  };
  /// Two ranges with common ids. None: high.owned is 0.
  struct Overlap {
    Range low, high;
  };

  void gather(Pe& pe, const Range& own);
  void ask_homes(Pe& pe, const Range& own, std::span<const std::uint64_t> ids);
  static Overlap overlap_in(std::vector<Range>& ranges);
  static void require_none(const Overlap& overlap);

  std::vector<Range> ranges_;                        // ascending, without empty ones
  std::uint64_t lowest_ = UINT64_MAX, highest_ = 0;  // of all PEs; lowest_ > highest_: no PE owns an id
};

}  // namespace headway::c
