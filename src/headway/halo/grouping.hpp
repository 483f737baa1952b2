// SPDX-License-Identifier: BSD-3-Clause
/// The elements that a PE needs, in one list for each owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/am/pe.hpp>
#include <headway/halo/index_list.hpp>
#include <span>
#include <vector>

namespace headway::halo {

/// An element of another PE: its index in the arrays of that PE.
struct Place {
  PeId pe;
  std::uint64_t index = 0;
};

/// Its memory may be used for one plan after the other, and does not depend on the number of PEs.
class Grouping {
 public:
  struct Group {
    std::size_t owner = 0;
    ListBuilder wanted;  // of the owner, by index there
    ListBuilder kept;    // where this PE keeps them
  };

  void clear() {
    count_ = 0;
    last_ = none;
    std::ranges::fill(table_, none);
  }
  /// Elements, which this PE keeps from index `kept` on.
  void add(std::span<const Place> places, std::uint64_t kept) {
    for (std::size_t begin = 0; begin != places.size();) {
      const std::size_t owner = places[begin].pe;
      std::size_t end = begin + 1;
      while (end != places.size() && places[end].pe == owner) ++end;
      if (last_ == none || groups_[last_].owner != owner) last_ = find(owner);
      groups_[last_].wanted.add_each(end - begin, [&](std::size_t i) { return places[begin + i].index; });
      groups_[last_].kept.add(kept + begin, end - begin);
      begin = end;
    }
  }
  /// By rising owner. No element is added after this call.
  std::span<const Group> sorted() {
    const std::span<Group> all(groups_.data(), count_);
    std::ranges::sort(all, {}, &Group::owner);
    return all;
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t(0);

  /// The place of an owner in the table, or the empty one for it.
  std::uint32_t& slot(std::size_t owner) {
    std::size_t at = owner * 0x9e3779b97f4a7c15 >> 32;
    for (;; ++at) {
      std::uint32_t& group = table_[at & (table_.size() - 1)];
      if (group == none || groups_[group].owner == owner) return group;
    }
  }
  std::uint32_t find(std::size_t owner) {
    if (2 * count_ >= table_.size()) {
      table_.assign(std::max<std::size_t>(16, 2 * table_.size()), none);
      for (std::uint32_t group = 0; group != count_; ++group) slot(groups_[group].owner) = group;
    }
    std::uint32_t& group = slot(owner);
    if (group != none) return group;
    group = count_++;
    if (groups_.size() < count_) groups_.emplace_back();
    groups_[group].owner = owner;
    groups_[group].wanted.clear();
    groups_[group].kept.clear();
    return group;
  }

  std::vector<Group> groups_;  // the first count_ are in use
  std::uint32_t count_ = 0, last_ = none;
  std::vector<std::uint32_t> table_;  // groups by owner; its size is a power of two
};

}  // namespace headway::halo
