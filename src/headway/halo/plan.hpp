// SPDX-License-Identifier: BSD-3-Clause
/// Which elements each PE sends to its partners, and where it keeps the elements that it receives.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/am/pe.hpp>
#include <headway/halo/index_list.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace headway::halo {

/// An element of another PE: its index in the arrays of that PE.
struct Place {
  PeId pe;
  std::uint64_t index = 0;
};

/// Elements of one partner, by local index, in the order in which they travel.
struct PartnerIndices {
  PeId pe;
  std::vector<std::uint64_t> indices;
};

/// The owner of a global id, and the id's index in the arrays of the owner. The same function on all PEs.
using OwnerRule = std::function<Place(std::uint64_t id)>;

/// A layout of the library (Block, Cyclic, BlockCyclic), or a class with the same functions.
template <class Layout>
concept OwnerLayout = requires(const Layout& layout, std::uint64_t id) {
  { layout.owner(id) } -> std::convertible_to<PeId>;
  { layout.local(id) } -> std::convertible_to<std::uint64_t>;
};

/// Elements for one partner, or from it.
struct Partner {
  std::size_t pe;
  IndexList list;
};

/// The index of a PE among partners, which are sorted by PE. nullopt: it is none of them.
std::optional<std::size_t> index_of(std::span<const Partner> partners, std::size_t pe);

/// The elements of an array on one PE are its own ones, with indices 0 to owned - 1, and its ghosts, which may have any
/// other indices. A plan is immutable. Copies are cheap, share all memory, and are not collective.
///
///     const halo::Plan plan = halo::Plan::needed(pe, owned, ids, Block(n, pe.size()));
///     halo::Exchange exchange(pe, plan, halo::field(heights), halo::field(speeds));
///     for (;;) { exchange(); ... }
///
/// Each function that makes a plan is collective: all PEs call it, in the same order of plans.
class Plan {
 public:
  /// This PE needs the elements with these global ids, in any order, repeated or its own. Element ids[i] arrives at
  /// index `owned` + i. The PE sends to owners alone. UsageError on the owner for an index of `owned` or more.
  static Plan needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const OwnerRule& rule);
  template <OwnerLayout Layout>
  static Plan needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const Layout& layout) {
    return needed(pe, owned, ids, [&](std::uint64_t id) { return Place{layout.owner(id), layout.local(id)}; });
  }
  /// The same for elements that are named by owner and index.
  static Plan receiving(Pe& pe, std::uint64_t owned, std::span<const Place> places);
  /// This PE sends these elements to these partners. A receiver keeps them from index `owned` on, by rising number of
  /// the sender, each in its sender's order.
  static Plan sending(Pe& pe, std::uint64_t owned, std::span<const PartnerIndices> sends);
  /// Both sides, without communication. A PE appears at most once in each list; the lists of a pair of PEs have the
  /// same length, which an Exchange checks.
  static Plan both(Pe& pe, std::span<const PartnerIndices> sends, std::span<const PartnerIndices> receives);

  /// The plan from ghosts to owners.
  Plan reverse() const;

  /// By rising number of the PE. A PE may be its own partner. No list is empty.
  std::span<const Partner> sends() const { return sides_->sends; }
  std::span<const Partner> receives() const { return sides_->receives; }
  /// The least number of elements of an array.
  std::uint64_t extent() const { return sides_->extent; }
  /// The number of elements that this PE receives.
  std::uint64_t received() const { return sides_->received; }
  /// Whether no two elements arrive at one index. True but for reversed plans.
  bool receives_are_distinct() const { return sides_->receives_are_distinct; }
  /// For people: one line for each partner.
  std::string description() const;

 private:
  struct Sides {
    std::vector<Partner> sends, receives;
    std::uint64_t extent = 0, received = 0;
    bool sends_are_distinct = false, receives_are_distinct = true;
  };
  Plan(std::vector<Partner> sends, std::vector<Partner> receives);
  explicit Plan(Sides sides);

  std::shared_ptr<const Sides> sides_;
};

}  // namespace headway::halo
