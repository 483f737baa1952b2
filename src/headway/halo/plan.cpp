// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <headway/am/epoch.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/halo/exchanges.hpp>
#include <headway/halo/grouping.hpp>
#include <headway/halo/index_set.hpp>
#include <headway/halo/plan.hpp>
#include <map>
#include <utility>

namespace headway::halo {
namespace {

// A message to an owner: the elements that the sender wants, and possibly where it keeps them. Or, on rebuild, the
// number of the set-up call in which it has asked for the same elements.
enum class Ask : std::uint64_t { wanted, wanted_and_kept, same_as_in_call };

// More elements fit into no memory.
constexpr std::uint64_t received_max = std::uint64_t(1) << 48;

/// Makes `partners` of the lists that are not empty. It has its memory from an older plan.
void assign(Pe& pe, std::span<const PartnerIndices> lists, const char* what, std::vector<Partner>& partners) {
  std::vector<const PartnerIndices*> sorted;
  for (const PartnerIndices& one : lists) {
    if (one.pe.value >= pe.size()) base::throw_destination_out_of_range(one.pe.value, pe.size());
    if (!one.indices.empty()) sorted.push_back(&one);
  }
  std::ranges::sort(sorted, {}, [](const PartnerIndices* one) { return one->pe.value; });
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i]->pe.value != sorted[i - 1]->pe.value) continue;
    throw UsageError(fmt::format("PE {} appears twice among those that PE {} {}; expected once, with all its elements",
                                 sorted[i]->pe.value, pe.id().value, what));
  }
  ListBuilder elements;
  partners.resize(sorted.size());
  for (std::size_t i = 0; i != sorted.size(); ++i) {
    elements.clear();
    elements.add_each(sorted[i]->indices.size(), [&](std::size_t at) { return sorted[i]->indices[at]; });
    partners[i].pe = sorted[i]->pe.value;
    partners[i].list.assign(elements);
    partners[i].remote = {};
    partners[i].knows_list = false;
  }
}

void require_no_repeats(std::size_t pe, const std::vector<Partner>& receives) {
  std::uint64_t extent = 0, elements = 0;
  for (const Partner& one : receives) {
    extent = std::max(extent, one.list.extent());
    elements += one.list.size();
  }
  if (IndexSet::is_possible(extent, elements)) {
    IndexSet seen(extent);
    if (std::ranges::all_of(receives, [&](const Partner& one) { return seen.add(one.list); })) return;
  }
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

}  // namespace

std::optional<std::size_t> index_of(std::span<const Partner> partners, std::size_t pe) {
  const auto found = std::ranges::lower_bound(partners, pe, {}, &Partner::pe);
  if (found == partners.end() || found->pe != pe) return std::nullopt;
  return std::size_t(found - partners.begin());
}

template <class Fill>
void Plan::replace(Fill fill) {
  std::shared_ptr<Sides> next;
  if (spare_ != nullptr && spare_.use_count() == 1)
    next = std::move(spare_);
  else
    next = std::make_shared<Sides>();
  next->extent = 0;
  fill(*next);  // sets the number of own elements as the extent, if it knows it
  next->sent = next->received = 0;
  for (const Partner& one : next->sends) {
    next->extent = std::max(next->extent, one.list.extent());
    next->sent += one.list.size();
  }
  for (const Partner& one : next->receives) {
    next->extent = std::max(next->extent, one.list.extent());
    next->received += one.list.size();
  }
  spare_ = std::exchange(sides_, std::move(next));
  is_reversed_ = false;
}

void Plan::rebuild(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const OwnerRule& rule) {
  rebuild_needed(pe, owned, ids, [&](std::span<const std::uint64_t> some, Place* places) {
    for (const std::uint64_t id : some) *places++ = rule(id);
  });
}

void Plan::rebuild_needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const PlacesOf& places_of) {
  Grouping& grouping = Exchanges::of(pe).grouping();
  grouping.clear();
  std::array<Place, 256> places;
  const std::size_t pes = pe.size();
  for (std::size_t begin = 0; begin != ids.size();) {
    const std::span<const std::uint64_t> some = ids.subspan(begin, std::min(places.size(), ids.size() - begin));
    places_of(some, places.data());
    const std::span<const Place> taken(places.data(), some.size());
    const auto wrong = std::ranges::find_if(taken, [pes](const Place& one) { return one.pe.value >= pes; });
    if (wrong != taken.end()) {
      throw UsageError(fmt::format("PE {} needs id {}, whose owner is PE {}; this run has PEs 0 to {}", pe.id().value,
                                   some[std::size_t(wrong - taken.begin())], wrong->pe.value, pes - 1));
    }
    grouping.add(taken, owned + begin);
    begin += some.size();
  }
  replace([&](Sides& sides) { ask_owners(pe, owned, sides); });
}

void Plan::rebuild(Pe& pe, std::uint64_t owned, std::span<const Place> places) {
  Grouping& grouping = Exchanges::of(pe).grouping();
  grouping.clear();
  for (const Place& one : places) {
    if (one.pe.value >= pe.size()) base::throw_destination_out_of_range(one.pe.value, pe.size());
  }
  grouping.add(places, owned);
  replace([&](Sides& sides) { ask_owners(pe, owned, sides); });
}

void Plan::ask_owners(Pe& pe, std::uint64_t owned, Sides& sides) const {
  Exchanges& exchanges = Exchanges::of(pe);
  const std::span<const Grouping::Group> groups = exchanges.grouping().sorted();
  std::span<const Partner> before;
  if (sides_ != nullptr) before = sides_->receives;
  const std::size_t me = pe.id();
  bool asks_itself = false;
  sides.extent = owned;
  sides.call = exchanges.begin_setup(SetupKind::asks);
  sides.receives.resize(groups.size());
  Epoch epoch(pe);  // owners do not know which PEs ask them
  for (std::size_t i = 0; i != groups.size(); ++i) {
    Partner& from = sides.receives[i];
    from.pe = groups[i].owner;
    from.list.assign(groups[i].kept);
    from.remote.assign(groups[i].wanted);
    from.knows_list = shares_pools(pe, from.pe);  // for writes into this PE's arrays
    if (from.pe == me) {
      asks_itself = true;
      continue;
    }
    std::vector<std::uint64_t>& message = exchanges.message();
    const auto old = index_of(before, from.pe);
    if (old && before[*old].list == from.list && before[*old].remote == from.remote) {
      message.assign({std::uint64_t(Ask::same_as_in_call), sides_->call});
    } else {
      message.assign({std::uint64_t(from.knows_list ? Ask::wanted_and_kept : Ask::wanted)});
      from.remote.encode(message);
      if (from.knows_list) from.list.encode(message);
    }
    exchanges.send_setup(from.pe, message);
  }
  epoch.wait();

  std::map<std::size_t, PartnerSetup> asked = exchanges.end_setup();
  if (asks_itself) asked[me];
  sides.sends.resize(asked.size());
  std::size_t at = 0;
  for (const auto& [by, setup] : asked) {
    Partner& to = sides.sends[at++];
    if (by == me) {
      const Partner& own = sides.receives[*index_of(sides.receives, me)];
      to.list = own.remote;
      to.remote = own.list;
    } else {
      take_ask(me, by, setup.numbers, to);
    }
    to.pe = by;
    to.knows_list = true;
    if (to.list.extent() <= owned) continue;
    std::uint64_t outside = 0;
    to.list.each_run(0, to.list.size(), [&](std::uint64_t index, std::size_t length) {
      if (outside == 0 && index + length > owned) outside = std::max(index, owned);
    });
    throw UsageError(fmt::format("PE {} needs element {} of PE {}, which owns {}: expected 0 to {}", by, outside, me,
                                 base::counted(owned, "element"), owned - 1));
  }
  exchanges.recycle(std::move(asked));
}

void Plan::take_ask(std::size_t me, std::size_t by, std::span<const std::uint64_t> message, Partner& to) const {
  if (message.size() < 2 || message[0] > std::uint64_t(Ask::same_as_in_call)) {
    refuse_setup(by, me,
                 fmt::format("it has {}{}; expected 2 or more, of which the first is at most {}",
                             base::counted(message.size(), "number"),
                             message.empty() ? std::string() : fmt::format(", first {}", message[0]),
                             std::uint64_t(Ask::same_as_in_call)));
  }
  const auto ask = Ask(message[0]);
  message = message.subspan(1);
  if (ask == Ask::same_as_in_call) {
    const auto old = sides_ == nullptr ? std::nullopt : index_of(sides_->sends, by);
    if (!old || sides_->call != message[0]) {
      throw UsageError(
          fmt::format("PE {} rebuilds a halo plan while PE {} makes or rebuilds another one: expected "
                      "the same order of plans on all PEs",
                      by, me));
    }
    to = sides_->sends[*old];
    return;
  }
  read_setup(by, me, [&] {
    if (ask == Ask::wanted_and_kept) {
      to.list.decode(message);
      to.remote.decode_whole(message);
    } else {
      to.list.decode_whole(message);
      to.remote = {};
    }
  });
  if (ask == Ask::wanted_and_kept && to.remote.size() != to.list.size()) {
    throw FormatError(fmt::format("PE {} wants {} of PE {}, and keeps {}", by, base::counted(to.list.size(), "element"),
                                  me, to.remote.size()));
  }
}

void Plan::rebuild(Pe& pe, std::uint64_t owned, std::span<const PartnerIndices> sends) {
  replace([&](Sides& sides) {
    assign(pe, sends, "sends to", sides.sends);
    Exchanges& exchanges = Exchanges::of(pe);
    for (const Partner& one : sides.sends) {
      if (one.list.extent() <= owned) continue;
      throw UsageError(fmt::format("PE {} would send element {} to PE {}, and owns {}", pe.id().value,
                                   one.list.extent() - 1, one.pe, base::counted(owned, "element")));
    }
    sides.extent = owned;
    sides.call = exchanges.begin_setup(SetupKind::counts);
    Epoch epoch(pe);  // receivers do not know which PEs send to them
    for (const Partner& one : sides.sends) {
      const std::uint64_t count = one.list.size();
      exchanges.send_setup(one.pe, std::span(&count, 1));
    }
    epoch.wait();
    const std::map<std::size_t, PartnerSetup> counts = exchanges.end_setup();
    sides.receives.resize(counts.size());
    std::uint64_t index = owned;
    std::size_t at = 0;
    ListBuilder elements;
    for (const auto& [from, setup] : counts) {
      Partner& partner = sides.receives[at++];
      if (setup.numbers.size() != 1) {
        refuse_setup(from, pe.id(),
                     fmt::format("it has {}; expected 1", base::counted(setup.numbers.size(), "number")));
      }
      const std::uint64_t count = setup.numbers[0];
      if (count == 0 || count > received_max - (index - owned)) {
        refuse_setup(from, pe.id(),
                     fmt::format("it sends {}; expected 1 to {}", base::counted(count, "element"),
                                 received_max - (index - owned)));
      }
      elements.clear();
      elements.add(index, count);
      index += count;
      partner.pe = from;
      partner.list.assign(elements);
      partner.remote = {};
      partner.knows_list = false;
    }
  });
}

void Plan::rebuild(Pe& pe, std::span<const PartnerIndices> sends, std::span<const PartnerIndices> receives) {
  replace([&](Sides& sides) {
    assign(pe, receives, "receives from", sides.receives);
    require_no_repeats(pe.id().value, sides.receives);
    assign(pe, sends, "sends to", sides.sends);
    sides.call = 0;
  });
}

std::string Plan::description() const {
  std::string text;
  for (const Partner& one : sends()) text += fmt::format("to PE {}: {}\n", one.pe, one.list.description());
  for (const Partner& one : receives()) text += fmt::format("from PE {}: {}\n", one.pe, one.list.description());
  return text;
}

}  // namespace headway::halo
