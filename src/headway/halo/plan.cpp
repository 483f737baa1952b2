// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/am/epoch.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/plan.hpp>
#include <map>
#include <utility>

namespace headway::halo {
namespace {

std::vector<Partner> partners_of(Pe& pe, std::span<const PartnerIndices> lists, const char* what) {
  std::vector<Partner> partners;
  for (const PartnerIndices& one : lists) {
    if (one.pe.value >= pe.size()) base::throw_destination_out_of_range(one.pe.value, pe.size());
    if (!one.indices.empty()) partners.push_back({one.pe.value, IndexList(one.indices)});
  }
  std::ranges::sort(partners, {}, &Partner::pe);
  for (std::size_t i = 1; i < partners.size(); ++i) {
    if (partners[i].pe != partners[i - 1].pe) continue;
    throw UsageError(fmt::format("PE {} appears twice among those that PE {} {}; expected once, with all its elements",
                                 partners[i].pe, pe.id().value, what));
  }
  return partners;
}

void require_no_repeats(std::size_t pe, const std::vector<Partner>& receives) {
  std::vector<std::pair<std::uint64_t, std::size_t>> from;  // index and sender
  for (const Partner& one : receives) {
    for (const std::uint64_t index : one.list.indices()) from.emplace_back(index, one.pe);
  }
  std::ranges::sort(from);
  const auto twice = std::ranges::adjacent_find(from, {}, [](const auto& one) { return one.first; });
  if (twice == from.end()) return;
  throw UsageError(
      fmt::format("PE {} would receive elements of PE {} and of PE {} at index {}; expected one element "
                  "for each index",
                  pe, twice->second, twice[1].second, twice->first));
}

/// Lists by PE, each in the order in which its elements were added.
using Lists = std::map<std::size_t, std::vector<std::uint64_t>>;

std::vector<Partner> partners_of(const Lists& lists) {
  std::vector<Partner> partners;
  for (const auto& [pe, indices] : lists) partners.push_back({pe, IndexList(indices)});
  return partners;
}

/// Sends each list to its PE, in an epoch, and returns the lists that other PEs have sent to this one.
Lists swap(Pe& pe, const Lists& lists) {
  Exchanges& exchanges = Exchanges::of(pe);
  Epoch epoch(pe);
  for (const auto& [to, indices] : lists) exchanges.send_setup(to, indices);
  epoch.wait();
  Lists arrived;
  for (auto& [from, setup] : exchanges.take_setup()) arrived[from] = std::move(setup.numbers);
  return arrived;
}

}  // namespace

std::optional<std::size_t> index_of(std::span<const Partner> partners, std::size_t pe) {
  const auto found = std::ranges::lower_bound(partners, pe, {}, &Partner::pe);
  if (found == partners.end() || found->pe != pe) return std::nullopt;
  return std::size_t(found - partners.begin());
}

Plan::Plan(std::vector<Partner> sends, std::vector<Partner> receives)
    : Plan(Sides{.sends = std::move(sends), .receives = std::move(receives)}) {}

Plan::Plan(Sides sides) {
  for (const Partner& one : sides.sends) sides.extent = std::max(sides.extent, one.list.extent());
  for (const Partner& one : sides.receives) {
    sides.extent = std::max(sides.extent, one.list.extent());
    sides.received += one.list.size();
  }
  sides_ = std::make_shared<const Sides>(std::move(sides));
}

Plan Plan::needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const OwnerRule& rule) {
  std::vector<Place> places;
  places.reserve(ids.size());
  for (const std::uint64_t id : ids) {
    places.push_back(rule(id));
    if (places.back().pe.value >= pe.size()) {
      throw UsageError(fmt::format("PE {} needs id {}, whose owner is PE {}; this run has PEs 0 to {}", pe.id().value,
                                   id, places.back().pe.value, pe.size() - 1));
    }
  }
  return receiving(pe, owned, places);
}

Plan Plan::receiving(Pe& pe, std::uint64_t owned, std::span<const Place> places) {
  Lists wanted, kept;  // by owner: its indices, and this PE's
  for (std::size_t i = 0; i != places.size(); ++i) {
    const std::size_t owner = places[i].pe.value;
    if (owner >= pe.size()) base::throw_destination_out_of_range(owner, pe.size());
    wanted[owner].push_back(places[i].index);
    kept[owner].push_back(owned + i);
  }
  const Lists asked = swap(pe, wanted);
  for (const auto& [by, indices] : asked) {
    const auto outside = std::ranges::find_if(indices, [owned](std::uint64_t index) { return index >= owned; });
    if (outside == indices.end()) continue;
    throw UsageError(fmt::format("PE {} needs element {} of PE {}, which owns {}: expected 0 to {}", by, *outside,
                                 pe.id().value, base::counted(owned, "element"), owned - 1));
  }
  return {partners_of(asked), partners_of(kept)};
}

Plan Plan::sending(Pe& pe, std::uint64_t owned, std::span<const PartnerIndices> sends) {
  std::vector<Partner> partners = partners_of(pe, sends, "sends to");
  Lists counts;
  for (const Partner& one : partners) {
    if (one.list.extent() > owned) {
      throw UsageError(fmt::format("PE {} would send element {} to PE {}, and owns {}", pe.id().value,
                                   one.list.extent() - 1, one.pe, base::counted(owned, "element")));
    }
    counts[one.pe] = {one.list.size()};
  }
  Lists kept;
  std::uint64_t at = owned;
  for (const auto& [from, count] : swap(pe, counts)) {
    for (std::uint64_t i = 0; i != count.at(0); ++i) kept[from].push_back(at++);
  }
  return {std::move(partners), partners_of(kept)};
}

Plan Plan::both(Pe& pe, std::span<const PartnerIndices> sends, std::span<const PartnerIndices> receives) {
  std::vector<Partner> into = partners_of(pe, receives, "receives from");
  require_no_repeats(pe.id().value, into);
  return {partners_of(pe, sends, "sends to"), std::move(into)};
}

Plan Plan::reverse() const {
  return Plan(Sides{.sends = sides_->receives,
                    .receives = sides_->sends,
                    .sends_are_distinct = sides_->receives_are_distinct,
                    .receives_are_distinct = sides_->sends_are_distinct});
}

std::string Plan::description() const {
  std::string text;
  for (const Partner& one : sends()) text += fmt::format("to PE {}: {}\n", one.pe, one.list.description());
  for (const Partner& one : receives()) text += fmt::format("from PE {}: {}\n", one.pe, one.list.description());
  return text;
}

}  // namespace headway::halo
