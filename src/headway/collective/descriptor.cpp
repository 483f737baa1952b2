// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/collective/descriptor.hpp>

namespace headway::collective {

void fail_contribution_length(std::size_t bytes, std::size_t expected) {
  throw FormatError(fmt::format("a contribution of {} arrived, expected {}", base::counted(bytes, "byte"), expected));
}

void Descriptor::send(Carrier& carrier, std::uint32_t to, Opcode opcode, std::uint32_t segment, Bytes bytes,
                      std::uint64_t count) const {
  ContributionHeader header = header_of(call_, opcode, segment);
  header.count = count;
  carrier.carry(call_.team->pe_of(to), header, bytes);
}

// --- trees

TreeDescriptor::TreeDescriptor(Call call, Kind kind, std::unique_ptr<Values> values, bool ordered)
    : Descriptor(std::move(call)), values_(std::move(values)), ordered_(ordered), climbs_(kind != Kind::broadcast) {
  const TeamState& team = *call_.team;
  const std::uint32_t top = top_of_tree(call_, ordered_);
  const TreePlace place(team.rank, team.size, top);
  if (climbs_) {
    if (place.parent != nobody) up_to_.push_back({place.parent});
    for (const std::uint32_t child : place.children) up_from_.push_back({child});
  }
  if (kind != Kind::reduce) {
    if (place.parent != nobody) down_from_.push_back({place.parent});
    for (std::size_t i = place.children.size(); i-- > 0;) down_to_.push_back({place.children[i]});
  } else if (top != call_.root) {
    if (team.rank == top) down_to_.push_back({call_.root});
    if (team.rank == call_.root) down_from_.push_back({top});
  }
  has_result_ = kind != Kind::reduce || team.rank == call_.root;
  knows_count_ = call_.same_count || climbs_ || down_from_.empty();
  if (knows_count_) know_segments();
}

void TreeDescriptor::know_segments() {
  segments_ = segments_of(call_.count, call_.per_segment);
  state_.resize(segments_);
}

void TreeDescriptor::start(Carrier& carrier) {
  if (up_from_.empty() && up_to_.empty() && down_from_.empty()) {  // the root of a broadcast, or the only member
    std::ranges::fill(state_, final);
    finals_ = segments_;
  }
  pump_up(carrier);
  for (Outlet& outlet : down_to_) pump_down(carrier, outlet);
}

void TreeDescriptor::take(Carrier& carrier, const ContributionHeader& header, Bytes content) {
  switch (header.opcode) {
    case Opcode::up: return take_up(carrier, header, content);
    case Opcode::down: return take_down(carrier, header, content);
    case Opcode::up_consumed: make_room(of_rank(up_to_, header.rank)); return pump_up(carrier);
    case Opcode::down_consumed: {
      Outlet& outlet = of_rank(down_to_, header.rank);
      make_room(outlet);
      return pump_down(carrier, outlet);
    }
  }
  throw FormatError(
      fmt::format("a message of a collective with opcode {}, allowed are 0 to 3", unsigned(header.opcode)));
}

void TreeDescriptor::take_up(Carrier& carrier, const ContributionHeader& header, Bytes content) {
  const auto child = std::uint32_t(&of_rank(up_from_, header.rank) - up_from_.data());
  require(
      header.segment < segments_ && state_[header.segment] < up_from_.size() && up_from_[child].consumed < segments_,
      "a segment of a contribution to a reduction arrived that is out of range or a duplicate");
  if (ordered_ && state_[header.segment] != child) return hold(header.segment, child, content);
  reduce(carrier, header.segment, child, content);
  if (ordered_ && holds_ != 0) reduce_held(carrier, header.segment);
  if (state_[header.segment] != up_from_.size()) return;
  if (!up_to_.empty()) return pump_up(carrier);
  state_[header.segment] = final;
  ++finals_;
  for (Outlet& outlet : down_to_) pump_down(carrier, outlet);
}

void TreeDescriptor::reduce(Carrier& carrier, std::uint32_t segment, std::uint32_t child, Bytes content) {
  values_->reduce(part(segment), content);
  ++state_[segment];
  count_consumed(carrier, up_from_[child], Opcode::up_consumed, segments_);
}

void TreeDescriptor::hold(std::uint32_t segment, std::uint32_t child, Bytes content) {
  require(child > state_[segment] && holds_ < up_from_.size() * window,
          "a segment of a contribution to a reduction arrived that is out of range or a duplicate");
  auto place = std::ranges::find(held_, nobody, &Held::child);
  if (place == held_.end()) place = held_.emplace(place);
  place->segment = segment;
  place->child = child;
  place->bytes.assign(content.begin(), content.end());
  ++holds_;
}

void TreeDescriptor::reduce_held(Carrier& carrier, std::uint32_t segment) {
  for (;;) {
    const auto next = std::ranges::find_if(
        held_, [&](const Held& held) { return held.child == state_[segment] && held.segment == segment; });
    if (next == held_.end()) return;
    reduce(carrier, segment, next->child, next->bytes);
    next->child = nobody;
    --holds_;
  }
}

void TreeDescriptor::take_down(Carrier& carrier, const ContributionHeader& header, Bytes content) {
  Inlet& source = of_rank(down_from_, header.rank);
  if (!knows_count_) {
    values_->resize(header.count);
    call_.count = header.count;
    call_.same_count = knows_count_ = true;
    know_segments();
  }
  require(header.segment < segments_ && state_[header.segment] != final &&
              (up_to_.empty() || header.segment < up_to_[0].sent),
          "a segment of a result arrived that is out of range, a duplicate, or early");
  values_->replace(part(header.segment), content);
  state_[header.segment] = final;
  ++finals_;
  count_consumed(carrier, source, Opcode::down_consumed, segments_);
  for (Outlet& outlet : down_to_) pump_down(carrier, outlet);
}

void TreeDescriptor::pump_up(Carrier& carrier) {
  for (Outlet& outlet : up_to_) {
    pump(
        carrier, outlet, Opcode::up, segments_, [&](std::uint32_t s) { return state_[s] == up_from_.size(); },
        [&](std::uint32_t s) { return values_->encoded(part(s)); });
  }
}

void TreeDescriptor::pump_down(Carrier& carrier, Outlet& outlet) {
  pump(
      carrier, outlet, Opcode::down, segments_, [&](std::uint32_t s) { return state_[s] == final; },
      [&](std::uint32_t s) { return values_->encoded(part(s)); });
}

bool TreeDescriptor::is_done() const {
  const auto has_sent = [&](const Outlet& outlet) { return outlet.sent == segments_; };
  if (!knows_count_ || !std::ranges::all_of(up_to_, has_sent)) return false;
  const bool is_end = up_to_.empty() || !down_from_.empty();  // it learns the result
  return (!is_end || finals_ == segments_) && std::ranges::all_of(down_to_, has_sent);
}

void TreeDescriptor::complete() { values_->complete(has_result_); }

void TreeDescriptor::add_missing(std::vector<std::uint32_t>& ranks) const {
  for (const Inlet& child : up_from_) {
    if (child.consumed < segments_) ranks.push_back(child.rank);
  }
  if (!ranks.empty()) return;
  for (const auto* outlets : {&up_to_, &down_to_}) {
    for (const Outlet& outlet : *outlets) {
      if (outlet.sent == outlet.limit && outlet.sent < segments_) ranks.push_back(outlet.rank);
    }
  }
  for (const Inlet& source : down_from_) {
    if (!knows_count_ || source.consumed < segments_) ranks.push_back(source.rank);
  }
}

// --- scans

std::size_t ScanDescriptor::sums(const TeamState& team) {
  return TreePlace(team.rank, team.size, 0).children.size() + 1;
}

ScanDescriptor::ScanDescriptor(Call call, std::vector<std::unique_ptr<Values>> sums, std::unique_ptr<Values> prefix)
    : Descriptor(std::move(call)),
      sums_(std::move(sums)),
      prefix_(std::move(prefix)),
      segments_(segments_of(call_.count, call_.per_segment)) {
  state_.resize(segments_);
  const TreePlace place(call_.team->rank, call_.team->size, 0);
  if (place.parent != nobody) {
    up_to_.push_back({place.parent});
    down_from_.push_back({place.parent});
  }
  for (const std::uint32_t child : place.children) {
    up_from_.push_back({child});
    down_to_.push_back({child});
  }
}

void ScanDescriptor::start(Carrier& carrier) {
  if (up_from_.empty()) {
    for (std::uint32_t segment = 0; segment < segments_; ++segment) end_up(segment);
  }
  pump(carrier);
}

void ScanDescriptor::take(Carrier& carrier, const ContributionHeader& header, Bytes content) {
  switch (header.opcode) {
    case Opcode::up: {
      Inlet& child = of_rank(up_from_, header.rank);
      require(header.segment < segments_ && state_[header.segment] < up_from_.size() && child.consumed < segments_,
              "a segment of a contribution to a scan arrived that is out of range or a duplicate");
      sums_[std::size_t(&child - up_from_.data()) + 1]->replace(part(header.segment), content);
      count_consumed(carrier, child, Opcode::up_consumed, segments_);
      if (++state_[header.segment] == up_from_.size()) end_up(header.segment);
      break;
    }
    case Opcode::down: {
      Inlet& parent = of_rank(down_from_, header.rank);
      require(header.segment < up_to_[0].sent && state_[header.segment] != final,
              "a segment of a prefix of a scan arrived that is out of range, a duplicate, or early");
      take_prefix(header.segment, content);
      count_consumed(carrier, parent, Opcode::down_consumed, segments_);
      break;
    }
    case Opcode::up_consumed: make_room(of_rank(up_to_, header.rank)); break;
    case Opcode::down_consumed: make_room(of_rank(down_to_, header.rank)); break;
    default:
      throw FormatError(
          fmt::format("a message of a collective with opcode {}, allowed are 0 to 3", unsigned(header.opcode)));
  }
  pump(carrier);
}

/// The contributions of all children have arrived.
void ScanDescriptor::end_up(std::uint32_t segment) {
  for (std::size_t i = 1; i < sums_.size(); ++i) {
    sums_[i]->reduce_before(part(segment), sums_[i - 1]->encoded(part(segment)));
  }
  if (!up_to_.empty()) return;
  state_[segment] = final;  // nothing lies before rank 0
  ++finals_;
}

void ScanDescriptor::take_prefix(std::uint32_t segment, Bytes prefix) {
  if (prefix_) prefix_->replace(part(segment), prefix);
  // The last sum was sent to the parent; a member with children no longer needs it.
  for (std::size_t i = 0; i < std::max<std::size_t>(1, down_to_.size()); ++i) {
    sums_[i]->reduce_before(part(segment), prefix);
  }
  state_[segment] = final;
  ++finals_;
}

void ScanDescriptor::pump(Carrier& carrier) {
  for (Outlet& outlet : up_to_) {
    Descriptor::pump(
        carrier, outlet, Opcode::up, segments_, [&](std::uint32_t s) { return state_[s] == up_from_.size(); },
        [&](std::uint32_t s) { return sums_.back()->encoded(part(s)); });
  }
  for (std::size_t i = 0; i < down_to_.size(); ++i) {
    Descriptor::pump(
        carrier, down_to_[i], Opcode::down, segments_, [&](std::uint32_t s) { return state_[s] == final; },
        [&](std::uint32_t s) { return sums_[i]->encoded(part(s)); });
  }
}

bool ScanDescriptor::is_done() const {
  return finals_ == segments_ && std::ranges::all_of(down_to_, [&](const Outlet& o) { return o.sent == segments_; });
}

void ScanDescriptor::complete() { (prefix_ ? *prefix_ : *sums_[0]).complete(true); }

void ScanDescriptor::add_missing(std::vector<std::uint32_t>& ranks) const {
  for (const Inlet& child : up_from_) {
    if (child.consumed < segments_) ranks.push_back(child.rank);
  }
  if (!ranks.empty()) return;
  for (const Inlet& parent : down_from_) {
    if (parent.consumed < segments_) ranks.push_back(parent.rank);
  }
  for (const Outlet& child : down_to_) {
    if (child.sent == child.limit && child.sent < segments_) ranks.push_back(child.rank);
  }
}

// --- blocks

BlocksDescriptor::BlocksDescriptor(Call call, Kind kind, std::unique_ptr<Blocks> blocks)
    : Descriptor(std::move(call)), blocks_(std::move(blocks)) {
  const TeamState& team = *call_.team;
  const bool is_root = team.rank == call_.root;
  const bool to_root = kind == Kind::gather, from_root = kind == Kind::scatter;
  if (to_root) {
    if (!is_root) to_.push_back({call_.root});
  } else if (!from_root || is_root) {
    for (std::uint32_t i = 1; i < team.size; ++i) to_.push_back({(team.rank + i) % team.size});
  }
  if (from_root) {
    if (!is_root) from_.push_back({call_.root});
    missing_ = std::uint32_t(from_.size());
  } else if (!to_root || is_root) {
    for (std::uint32_t rank = 0; rank < team.size; ++rank) from_.push_back({rank});
    missing_ = team.size - 1;
  }
  unsent_ = std::uint32_t(to_.size());
}

void BlocksDescriptor::start(Carrier& carrier) {
  for (Outlet& outlet : to_) pump_to(carrier, outlet);
}

void BlocksDescriptor::pump_to(Carrier& carrier, Outlet& outlet) {
  const std::uint32_t before = outlet.sent, segments = segments_to(outlet);
  const std::uint64_t count = blocks_->count(outlet.rank);
  pump(
      carrier, outlet, Opcode::up, segments, [](std::uint32_t) { return true; },
      [&](std::uint32_t s) { return blocks_->encoded(outlet.rank, part(s, count, call_.per_segment)); }, count);
  if (before < segments && outlet.sent == segments) --unsent_;
}

void BlocksDescriptor::take(Carrier& carrier, const ContributionHeader& header, Bytes content) {
  if (header.opcode == Opcode::up_consumed) {
    Outlet& outlet = outlet_to(header.rank);
    make_room(outlet);
    return pump_to(carrier, outlet);
  }
  require(header.opcode == Opcode::up, "a message of a collective has an opcode that its kind does not use");
  require_expected(header);
  const std::uint32_t segments = segments_of(header.count, call_.per_segment);
  Inlet& source = inlet_from(header.rank);
  require(header.segment < segments && source.consumed < segments,
          "a segment of a block arrived that is out of range or a duplicate");
  blocks_->take(header.rank, header.count, part(header.segment, header.count, call_.per_segment), content);
  count_consumed(carrier, source, Opcode::up_consumed, segments);
  if (source.consumed == segments) --missing_;
}

void BlocksDescriptor::require_expected(const ContributionHeader& header) const {
  const std::optional<std::uint64_t> expected = blocks_->expected();
  if (!expected || *expected == header.count) return;
  const TeamState& team = *call_.team;
  throw UsageError(fmt::format(
      "{}, number {} of {}: PE {} gave {} for PE {}, expected {} as PE {} gave: blocks for one member have one length",
      Operation::describe(call_.what, call_.count, call_.root), call_.number, team.name(), team.pe_of(header.rank),
      base::counted(header.count, "element"), team.pe_of(team.rank), *expected, team.pe_of(team.rank)));
}

Descriptor::Outlet& BlocksDescriptor::outlet_to(std::uint32_t rank) {
  const TeamState& team = *call_.team;
  const std::size_t at = to_.size() == 1 ? 0 : (rank + team.size - team.rank - 1) % team.size;
  require(at < to_.size() && to_[at].rank == rank,
          "a message of a collective arrived from a member that sends this PE none");
  return to_[at];
}

Descriptor::Inlet& BlocksDescriptor::inlet_from(std::uint32_t rank) {
  const std::size_t at = from_.size() == 1 ? 0 : rank;
  require(at < from_.size() && from_[at].rank == rank && rank != call_.team->rank,
          "a message of a collective arrived from a member that sends this PE none");
  return from_[at];
}

void BlocksDescriptor::add_missing(std::vector<std::uint32_t>& ranks) const {
  if (missing_ != 0) {
    for (const Inlet& source : from_) {
      if (source.consumed == 0 && source.rank != call_.team->rank) ranks.push_back(source.rank);
    }
  }
  for (const Outlet& outlet : to_) {
    if (outlet.sent == outlet.limit && outlet.sent < segments_to(outlet)) ranks.push_back(outlet.rank);
  }
}

}  // namespace headway::collective
