// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/epoch.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/c/ranges.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/gather.hpp>
#include <headway/halo/exchanges.hpp>
#include <map>
#include <tuple>

namespace headway::c {

Ranges::Ranges(Pe& pe, std::uint64_t first, std::uint64_t owned, std::span<const std::uint64_t> ids,
               std::size_t pes_max) {
  const Range own{first, owned, pe.id()};
  if (owned != 0 && own.last() < first) {
    throw UsageError(fmt::format("PE {} owns {} ids from {} on; expected {} or fewer: the highest id is {}", own.pe,
                                 owned, first, UINT64_MAX - first + 1, UINT64_MAX));
  }
  if (pe.size() <= pes_max)
    gather(pe, own);
  else
    ask_homes(pe, own, ids);
}

/// Sorts the ranges.
Ranges::Overlap Ranges::overlap_in(std::vector<Range>& ranges) {
  std::ranges::sort(ranges, {}, [](const Range& one) { return std::pair(one.first, one.pe); });
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first <= ranges[i - 1].last()) return {ranges[i - 1], ranges[i]};
  }
  return {};
}

void Ranges::require_none(const Overlap& overlap) {
  if (overlap.high.owned == 0) return;
  throw UsageError(
      fmt::format("PE {} owns ids {} to {}, and PE {} owns ids from {} on: expected ranges without common ids",
                  overlap.low.pe, overlap.low.first, overlap.low.last(), overlap.high.pe, overlap.high.first));
}

void Ranges::gather(Pe& pe, const Range& own) {
  ranges_ = all_gather(pe, own);
  std::erase_if(ranges_, [](const Range& one) { return one.owned == 0; });
  require_none(overlap_in(ranges_));
  if (ranges_.empty()) return;
  lowest_ = ranges_.front().first;
  highest_ = ranges_.back().last();
}

void Ranges::ask_homes(Pe& pe, const Range& own, std::span<const std::uint64_t> ids) {
  struct Extent {
    std::uint64_t lowest, highest;
  };
  const Extent mine = own.owned == 0 ? Extent{lowest_, highest_} : Extent{own.first, own.last()};
  const Extent all = allreduce(pe, mine, [](const Extent& a, const Extent& b) {
    return Extent{std::min(a.lowest, b.lowest), std::max(a.highest, b.highest)};
  });
  lowest_ = all.lowest;
  highest_ = all.highest;
  if (lowest_ > highest_) return;
  const std::uint64_t block = (highest_ - lowest_) / pe.size() + 1;  // ids of a home
  const auto home_of = [&](std::uint64_t id) { return std::size_t((id - lowest_) / block); };

  std::vector<std::uint64_t> wanted;  // of other PEs
  for (const std::uint64_t id : ids) {
    if (id - own.first >= own.owned && lowest_ <= id && id <= highest_) wanted.push_back(id);
  }
  std::ranges::sort(wanted);
  wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());

  // One message to each home: this PE's range, or two zeros, and ids.
  halo::Exchanges& exchanges = halo::Exchanges::of(pe);
  std::vector<std::size_t> asked;  // homes that answer
  exchanges.begin_setup(halo::SetupKind::ranges);
  {
    Epoch epoch(pe);  // homes do not know which PEs send to them
    std::size_t registers = own.owned == 0 ? pe.size() : home_of(own.first);
    const std::size_t registers_end = own.owned == 0 ? pe.size() : home_of(own.last()) + 1;
    for (auto next = wanted.begin(); registers != registers_end || next != wanted.end();) {
      const bool is_asked = next != wanted.end() && (registers == registers_end || home_of(*next) <= registers);
      const std::size_t home = is_asked ? home_of(*next) : registers;
      std::vector<std::uint64_t>& message = exchanges.message();
      message.assign({0, 0});
      if (registers != registers_end && registers == home) {
        message.assign({own.first, own.owned});
        ++registers;
      }
      if (is_asked) {
        const auto end =
            std::partition_point(next, wanted.end(), [&](std::uint64_t id) { return home_of(id) == home; });
        message.insert(message.end(), next, end);
        next = end;
        asked.push_back(home);
      }
      exchanges.send_setup(home, message);
    }
    epoch.wait();
  }
  std::map<std::size_t, halo::PartnerSetup> told = exchanges.end_setup();
  std::vector<Range> here;  // that have ids in this PE's block
  for (const auto& [source, setup] : told) {
    if (setup.numbers.size() < 2)
      throw FormatError(fmt::format("PE {} registers a range of ids at PE {} in an invalid message", source, own.pe));
    if (setup.numbers[1] != 0) here.push_back({setup.numbers[0], setup.numbers[1], source});
  }
  require_none(allreduce(pe, overlap_in(here), [](const Overlap& a, const Overlap& b) {
    const auto rank = [](const Overlap& one) {
      return std::tuple(one.high.owned == 0, one.low.first, one.low.pe, one.high.first, one.high.pe);
    };
    return rank(b) < rank(a) ? b : a;
  }));

  // Each home answers with the ranges that have the ids.
  exchanges.begin_setup(halo::SetupKind::owners);
  for (const auto& [source, setup] : told) {
    const std::span<const std::uint64_t> questions = std::span(setup.numbers).subspan(2);
    if (questions.empty()) continue;
    std::vector<std::uint64_t>& message = exchanges.message();
    message.clear();
    auto range = here.begin();
    for (const std::uint64_t id : questions) {
      if (range != here.begin() && id <= range[-1].last()) continue;  // in the answer already
      while (range != here.end() && range->last() < id) ++range;
      if (range == here.end() || id < range->first) continue;  // no PE owns it
      message.insert(message.end(), {range->first, range->owned, range->pe});
      ++range;
    }
    exchanges.send_setup(source, message);
  }
  exchanges.await_setup(asked);
  std::map<std::size_t, halo::PartnerSetup> answers = exchanges.end_setup();
  if (own.owned != 0) ranges_.push_back(own);
  for (const auto& [home, setup] : answers) {
    if (setup.numbers.size() % 3 != 0)
      throw FormatError(fmt::format("PE {} answers PE {} with an invalid list of ranges of ids", home, own.pe));
    for (std::size_t i = 0; i != setup.numbers.size(); i += 3)
      ranges_.push_back({setup.numbers[i], setup.numbers[i + 1], setup.numbers[i + 2]});
  }
  exchanges.recycle(std::move(told));
  exchanges.recycle(std::move(answers));
  std::ranges::sort(ranges_, {}, &Range::first);
  ranges_.erase(std::ranges::unique(ranges_, {}, &Range::first).begin(), ranges_.end());  // of two homes
}

halo::Place Ranges::find(std::uint64_t id) const {
  const auto above = std::ranges::upper_bound(ranges_, id, {}, &Range::first);
  if (above != ranges_.begin() && id <= above[-1].last()) return {PeId(above[-1].pe), id - above[-1].first};
  if (lowest_ > highest_) throw UsageError(fmt::format("id {} has no owner: no PE owns an id", id));
  throw UsageError(fmt::format("id {} has no owner: the PEs own ids from {} to {}", id, lowest_, highest_));
}

}  // namespace headway::c
