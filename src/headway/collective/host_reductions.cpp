// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <headway/collective/host_reductions.hpp>
#include <headway/collective/operation.hpp>
#include <utility>

namespace headway::collective {
namespace {

// Of one part: its slot with a short content, and space for a longer content.
constexpr std::size_t part_bytes = sizeof(CellSlot) + cell_bytes_max;

unsigned children_max(std::size_t hosts) { return unsigned(std::bit_width(hosts - 1)); }

bool same_call(const HostReductions::Said& a, const HostReductions::Said& b) {
  return a.number == b.number && a.what == b.what && a.root == b.root && a.count == b.count;
}

}  // namespace

std::size_t Hosts::host_of(std::size_t pe) const {
  return std::size_t(std::ranges::upper_bound(firsts, pe) - firsts.begin()) - 1;
}

// --- memory

/// Contents lie apart from slots, so that short calls touch few pages:
///
///     | slots: of each cell, its parts of even generations, of odd generations, result | contents: likewise |
std::size_t HostReductions::area_bytes(std::size_t hosts) {
  return cells_count * (2 * (children_max(hosts) + 1) + 1) * part_bytes;
}

HostReductions::HostReductions(Hosts hosts, transport::Services& services, std::vector<CellArea*> areas,
                               std::vector<std::byte*> parts)
    : hosts_(std::move(hosts)),
      services_(&services),
      areas_(std::move(areas)),
      parts_(std::move(parts)),
      parts_per_generation_(children_max(hosts_.size()) + 1) {
  services_->set_take([this](std::size_t process, std::span<const std::byte> bytes) { take(process, bytes); });
}

HostReductions::~HostReductions() { services_->set_take({}); }

std::size_t HostReductions::place(std::uint64_t reduction, unsigned part) const {
  const std::size_t results = 2 * std::size_t(parts_per_generation_);
  const std::size_t in_cell =
      part == result_part ? results : generation_of(reduction) % 2 * parts_per_generation_ + part;
  return reduction % cells_count * (results + 1) + in_cell;
}

CellSlot& HostReductions::slot(std::uint64_t reduction, unsigned part) const {
  return reinterpret_cast<CellSlot*>(area(reduction))[place(reduction, part)];
}

Bytes HostReductions::content(std::uint64_t reduction, unsigned part, std::size_t bytes) const {
  if (bytes <= CellSlot::bytes_max) return {slot(reduction, part).content, bytes};
  const std::size_t slots_bytes = cells_count * (2 * parts_per_generation_ + 1) * sizeof(CellSlot);
  return {area(reduction) + slots_bytes + place(reduction, part) * cell_bytes_max, bytes};
}

void HostReductions::write(unsigned part, const Said& said, Bytes bytes) {
  CellSlot& to = slot(said.reduction, part);
  to.count = said.count;
  to.number = said.number;
  to.what = said.what;
  to.root = said.root;
  to.pe = said.pe;
  if (!bytes.empty()) {
    std::memcpy(const_cast<std::byte*>(content(said.reduction, part, bytes.size()).data()), bytes.data(), bytes.size());
  }
}

HostReductions::Said HostReductions::said_in(std::uint64_t reduction, unsigned part) const {
  const CellSlot& from = slot(reduction, part);
  return {reduction, from.count, from.number, from.what, from.root, from.pe};
}

// --- the tree

std::size_t HostReductions::from_root(std::size_t host, std::uint32_t root) const {
  return (host + hosts_.size() - hosts_.host_of(root)) % hosts_.size();
}

std::size_t HostReductions::host_at(std::size_t from_root, std::uint32_t root) const {
  return (from_root + hosts_.host_of(root)) % hosts_.size();
}

std::uint32_t HostReductions::children(std::uint32_t root) const {
  const std::size_t own = from_root(hosts_.own, root);
  std::uint32_t parts = 0;
  for (unsigned i = 0; (own >> i & 1) == 0 && own + (std::size_t(1) << i) < hosts_.size(); ++i) parts |= 2u << i;
  return parts;
}

// --- up

void HostReductions::arrive(const Said& said, Bytes bytes) {
  const std::uint32_t below = children(said.root);
  write(own_part, said, below == 0 ? Bytes() : bytes);
  const HostParts::Parts now = parts(said.reduction).arrive(own_part, below | 1u << own_part);
  find_stray(said.reduction, now);
  if (now.complete()) go_on(said, below, below == 0 ? bytes : content(said.reduction, own_part, bytes.size()));
}

/// If a part does not belong to the call of this host, the later of the two to arrive sees the other.
void HostReductions::find_stray(std::uint64_t reduction, HostParts::Parts now) const {
  if (now.strays() == 0) return;
  differ(said_in(reduction, own_part), said_in(reduction, unsigned(std::countr_zero(now.strays()))));
}

/// All parts have arrived.
void HostReductions::go_on(const Said& said, std::uint32_t below, Bytes own) {
  for (std::uint32_t left = below; left != 0; left &= left - 1) {
    const Said other = said_in(said.reduction, unsigned(std::countr_zero(left)));
    if (!same_call(said, other)) differ(said, other);
  }
  std::byte memory[cell_bytes_max];
  Bytes result = own;
  if (below != 0 && !own.empty()) {
    std::memcpy(memory, own.data(), own.size());
    const ReduceBytes reduce = Operation::find(said.what)->reduce();
    try {
      for (std::uint32_t left = below; left != 0; left &= left - 1) {
        reduce(memory, content(said.reduction, unsigned(std::countr_zero(left)), own.size()).data(), own.size());
      }
    } catch (const std::exception& error) {
      throw transport::InvalidFrame(fmt::format(
          "{} on PE {} threw: {}", Operation::describe(said.what, said.count, said.root), said.pe, error.what()));
    }
    result = {memory, own.size()};
  }
  const std::size_t place = from_root(hosts_.own, said.root);
  if (place == 0) return end(said, result);
  send(host_at(place & (place - 1), said.root), said, Direction::up, result);
}

void HostReductions::take_up(std::size_t host, const Said& said, Bytes bytes) {
  const std::size_t place = from_root(host, said.root);
  if (place == 0 || host_at(place & (place - 1), said.root) != hosts_.own) {
    throw transport::InvalidFrame(
        fmt::format("a contribution of host {} arrived at host {}, which is not above it in the tree of root {}", host,
                    hosts_.own, said.root));
  }
  const unsigned part = 1 + unsigned(std::countr_zero(place));
  HostParts here = parts(said.reduction);
  if (!here.claim(part)) differ(said_in(said.reduction, part), said);
  write(part, said, bytes);
  const HostParts::Parts now = here.arrive(part);
  find_stray(said.reduction, now);
  if (!now.complete()) return;
  const Said own = said_in(said.reduction, own_part);
  go_on(own, now.belong & ~(1u << own_part), content(said.reduction, own_part, bytes.size()));
}

// --- down

/// From then on PEs may arrive in the next generation of the cell, and the hosts below as soon as they learn the end.
void HostReductions::end(const Said& said, Bytes result) {
  const bool is_for_all = Operation::find(said.what)->kind() != Kind::reduce;
  if (is_for_all || hosts_.own == hosts_.host_of(said.root)) write(result_part, said, result);
  CellHead& here = head(said.reduction);
  parts(said.reduction).end();
  const std::uint32_t below = children(said.root);
  ReductionCell(here.arrived, here.generation, areas_.size()).end(generation_of(said.reduction));
  areas_[0]->begun.ends.fetch_add(1, std::memory_order_seq_cst);
  const std::size_t own = from_root(hosts_.own, said.root);
  for (std::uint32_t left = below; left != 0;) {  // the largest subtree first
    const auto part = unsigned(std::bit_width(left) - 1);
    left &= ~(1u << part);
    send(host_at(own + (std::size_t(1) << (part - 1)), said.root), said, Direction::down,
         is_for_all ? result : Bytes());
  }
  services_->wake_host();
}

// --- messages

/// The processes of a host receive them in turn.
void HostReductions::send(std::size_t host, const Said& said, Direction direction, Bytes bytes) {
  const std::size_t first = hosts_.firsts[host] / hosts_.pes_per_process;
  const std::size_t last = (hosts_.pes_end(host) - 1) / hosts_.pes_per_process;
  std::byte memory[sizeof(Message) + cell_bytes_max];
  const Message message{said, direction, std::uint32_t(hosts_.own)};
  std::memcpy(memory, &message, sizeof message);
  if (!bytes.empty()) std::memcpy(memory + sizeof message, bytes.data(), bytes.size());
  services_->send(first + said.reduction % (last - first + 1), {memory, sizeof message + bytes.size()});
}

void HostReductions::take(std::size_t process, std::span<const std::byte> bytes) {
  Message message;
  const auto require = [&](bool holds) {
    if (!holds)
      throw transport::InvalidFrame(fmt::format(
          "a message of a collective from process {} with {} bytes is damaged: check that all hosts run the same build",
          process, bytes.size()));
  };
  require(bytes.size() >= sizeof message);
  std::memcpy(&message, bytes.data(), sizeof message);
  const Said& said = message.said;
  const Bytes content = bytes.subspan(sizeof message);
  require(said.root < hosts_.pes && said.pe < hosts_.pes && message.host < hosts_.size() &&
          hosts_.host_of(process * hosts_.pes_per_process) == message.host && content.size() <= cell_bytes_max);
  const Operation* const operation = Operation::find(said.what);
  require(operation != nullptr && operation->reduce() != nullptr);
  const std::uint64_t generation = head(said.reduction).generation.load(std::memory_order_acquire);
  if (generation > generation_of(said.reduction)) differ_late(said);
  // A host above this one in another call may learn of its end before this host.
  require(generation + std::uint64_t(message.direction == Direction::up) >= generation_of(said.reduction));
  if (message.direction == Direction::up) return take_up(message.host, said, content);
  require(message.direction == Direction::down && generation == generation_of(said.reduction) &&
          parts(said.reduction).now().complete() && same_call(said, said_in(said.reduction, own_part)));
  end(said, content);
}

// --- mismatches, and missing members

void HostReductions::differ(const Said& here, const Said& there) const {
  const std::uint32_t number = std::min(here.number, there.number);
  const auto text = [&](const Said& said) {
    return said.number == number ? Operation::describe(said.what, said.count, said.root) : "another one";
  };
  throw transport::InvalidFrame(
      fmt::format("as collective number {} of all PEs, PE {} has called {}, and PE {} {}: the members of a team call "
                  "the same ones in the same order",
                  number, here.pe, text(here), there.pe, text(there)));
}

void HostReductions::differ_late(const Said& there) const {
  throw transport::InvalidFrame(fmt::format(
      "as collective number {} of all PEs, PE {} has called another one, and PE {} {}: the members of a team "
      "call the same ones in the same order",
      there.number, hosts_.firsts[hosts_.own], there.pe, Operation::describe(there.what, there.count, there.root)));
}

void HostReductions::add_missing(std::uint64_t reduction, std::uint32_t root, std::vector<std::uint32_t>& pes) const {
  const std::size_t own = from_root(hosts_.own, root);
  const std::uint32_t missing = children(root) & ~parts(reduction).now().there;
  for (std::uint32_t left = missing; left != 0; left &= left - 1) {
    const std::size_t child = own + (std::size_t(1) << (std::countr_zero(left) - 1));
    pes.push_back(std::uint32_t(hosts_.firsts[host_at(child, root)]));
  }
  if (missing == 0 && own != 0) pes.push_back(std::uint32_t(hosts_.firsts[host_at(own & (own - 1), root)]));
}

bool HostReductions::first_early(std::uint64_t reduction, Said& said) const {
  if (head(reduction).generation.load(std::memory_order_acquire) > generation_of(reduction)) return false;
  const std::uint32_t there = parts(reduction).now().there;
  if (there == 0) return false;
  said = said_in(reduction, unsigned(std::countr_zero(there)));
  return true;
}

}  // namespace headway::collective
