// SPDX-License-Identifier: BSD-3-Clause
/// Which elements each PE sends to its partners, and where it keeps the elements that it receives.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/aggregate/layout.hpp>
#include <headway/am/pe.hpp>
#include <headway/halo/grouping.hpp>
#include <headway/halo/index_list.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway::halo {

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
  std::size_t pe = 0;
  IndexList list = {};
  IndexList remote = {};    // the partner's list for the same elements; empty: the plan does not know it
  bool knows_list = false;  // the partner has `list` as its `remote`
};

/// The index of a PE among partners, which are sorted by PE. nullopt: it is none of them.
std::optional<std::size_t> index_of(std::span<const Partner> partners, std::size_t pe);

/// The elements of an array on one PE are its own ones, with indices 0 to owned - 1, and its ghosts, which may have any
/// other indices. A plan is immutable. Copies are cheap, share all memory, and are not collective.
///
///     halo::Plan plan = halo::Plan::needed(pe, owned, ids, Block(n, pe.size()));
///     halo::Exchange exchange(pe, plan, {halo::field(heights), halo::field(speeds)});
///     for (;;) { exchange(); ... }
///
/// When the mesh has changed, rebuild() makes another plan in its place, and exchanges go over to it:
///
///     plan.rebuild(pe, owned, ids, layout);
///     exchange.rebuild(plan, {halo::field(heights), halo::field(speeds)});
///
/// Copies of the plan, also those in exchanges, keep the old one. rebuild() uses the memory of the plan before the old
/// one, if no copy of that is left: so a plan that is rebuilt often has memory for two. Partners with the same elements
/// as before exchange no lists.
///
/// Each function that makes or rebuilds a plan is collective: all PEs call it, in the same order of plans. After an
/// error in rebuild() the plan is the old one.
class Plan {
 public:
  /// This PE needs the elements with these global ids, in any order, repeated or its own. Element ids[i] arrives at
  /// index `owned` + i. The PE sends to owners alone. UsageError on the owner for an index of `owned` or more.
  static Plan needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const OwnerRule& rule) {
    return made([&](Plan& plan) { plan.rebuild(pe, owned, ids, rule); });
  }
  template <OwnerLayout Layout>
  static Plan needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const Layout& layout) {
    return made([&](Plan& plan) { plan.rebuild(pe, owned, ids, layout); });
  }
  /// The same for elements that are named by owner and index.
  static Plan receiving(Pe& pe, std::uint64_t owned, std::span<const Place> places) {
    return made([&](Plan& plan) { plan.rebuild(pe, owned, places); });
  }
  /// This PE sends these elements to these partners. A receiver keeps them from index `owned` on, by rising number of
  /// the sender, each in its sender's order.
  static Plan sending(Pe& pe, std::uint64_t owned, std::span<const PartnerIndices> sends) {
    return made([&](Plan& plan) { plan.rebuild(pe, owned, sends); });
  }
  /// Both sides, without communication. A PE appears at most once in each list; the lists of a pair of PEs have the
  /// same length, which an Exchange checks.
  static Plan both(Pe& pe, std::span<const PartnerIndices> sends, std::span<const PartnerIndices> receives) {
    return made([&](Plan& plan) { plan.rebuild(pe, sends, receives); });
  }

  /// needed(), receiving(), sending() and both() in the memory of this plan, which may have been made by another one.
  void rebuild(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const OwnerRule& rule);
  template <OwnerLayout Layout>
  void rebuild(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const Layout& layout) {
    rebuild_needed(pe, owned, ids, [&](std::span<const std::uint64_t> some, Place* places) {
      if constexpr (std::same_as<Layout, Block>) {  // neighbours mostly have one owner: one division for all of them
        std::size_t owner = 0, first = 0, count = 0;
        for (const std::uint64_t id : some) {
          if (id - first >= count) {
            owner = layout.owner(id);
            first = layout.first(owner);
            count = layout.count(owner);
          }
          *places++ = {owner, id - first};
        }
      } else {
        for (const std::uint64_t id : some) *places++ = {layout.owner(id), layout.local(id)};
      }
    });
  }
  void rebuild(Pe& pe, std::uint64_t owned, std::span<const Place> places);
  void rebuild(Pe& pe, std::uint64_t owned, std::span<const PartnerIndices> sends);
  void rebuild(Pe& pe, std::span<const PartnerIndices> sends, std::span<const PartnerIndices> receives);

  Plan(const Plan& other) : sides_(other.sides_), is_reversed_(other.is_reversed_) {}
  Plan(Plan&&) noexcept = default;
  Plan& operator=(const Plan& other) {
    sides_ = other.sides_;
    is_reversed_ = other.is_reversed_;
    return *this;
  }
  Plan& operator=(Plan&&) noexcept = default;
  ~Plan() = default;

  /// The plan from ghosts to owners. It shares all memory with this one.
  Plan reverse() const {
    Plan plan(*this);
    plan.is_reversed_ = !is_reversed_;
    return plan;
  }

  /// By rising number of the PE. A PE may be its own partner. No list is empty.
  std::span<const Partner> sends() const { return is_reversed_ ? sides_->receives : sides_->sends; }
  std::span<const Partner> receives() const { return is_reversed_ ? sides_->sends : sides_->receives; }
  /// The least number of elements of an array: `owned` or more, also on a PE without partners. both() knows no `owned`,
  /// so its extent is one more than the largest index.
  std::uint64_t extent() const { return sides_->extent; }
  /// The number of elements that this PE receives.
  std::uint64_t received() const { return is_reversed_ ? sides_->sent : sides_->received; }
  /// Whether no two elements arrive at one index. True but for reversed plans.
  bool receives_are_distinct() const { return !is_reversed_; }
  /// For people: one line for each partner.
  std::string description() const;

 private:
  struct Sides {
    std::vector<Partner> sends, receives;
    std::uint64_t extent = 0, sent = 0, received = 0;
    std::uint64_t call = 0;  // the number of the set-up call that made it, the same on all PEs; 0: none
  };
  /// Writes the places of some ids.
  using PlacesOf = std::function<void(std::span<const std::uint64_t> ids, Place* places)>;
  template <class Build>
  static Plan made(Build build) {
    Plan plan;
    build(plan);
    return plan;
  }

  Plan() = default;
  void rebuild_needed(Pe& pe, std::uint64_t owned, std::span<const std::uint64_t> ids, const PlacesOf& places_of);
  /// Calls fill(sides), and makes its result the plan.
  template <class Fill>
  void replace(Fill fill);
  /// From the elements in the PE's Grouping.
  void ask_owners(Pe& pe, std::uint64_t owned, Sides& sides) const;
  /// Takes the message of PE `by`, which wants elements of this PE.
  void take_ask(std::size_t me, std::size_t by, std::span<const std::uint64_t> message, Partner& to) const;

  std::shared_ptr<Sides> sides_;
  std::shared_ptr<Sides> spare_;  // the plan before; other copies may use it
  bool is_reversed_ = false;
};

}  // namespace headway::halo
