// SPDX-License-Identifier: BSD-3-Clause
/// Where the elements of a collection are, as far as one PE knows.
///
/// Each element has a home PE, which learns of each of its moves. A sender does not ask: it sends to the last known PE
/// of the element, or else to its home. If the element has left that PE, the receiver forwards the message and tells
/// the sender. The version of an element is the number of its moves. It tells newer news from older, and an element
/// that has left from one that has not arrived:
///
///     version v of the element is at PE b   -->  (b, v) is known at b, at the home, at the PE before b, and to senders
///                                                that have had a message forwarded
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/object/element_state.hpp>
#include <headway/object/placement.hpp>
#include <headway/transport/frame.hpp>
#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace headway::object {

/// Of one element.
struct Location {
  ElementBase* element = nullptr;  // if it is on this PE
  std::uint32_t pe = 0;            // its PE at the time of `version`
  std::uint32_t version = 0;
};

/// Locations by address. A Location keeps its place in memory.
template <class Address, class Homes>
class Directory {
 public:
  static constexpr bool is_dense = std::is_same_v<Homes, DenseHomes>;

  /// `use_cache`: cached() may find elements.
  Directory(Homes homes, std::size_t pe, bool use_cache) : homes_(std::move(homes)) {
    if constexpr (is_dense) {
      if (homes_.is_block() && homes_.size() != 0) {
        first_ = homes_.first(pe);
        rows_ = homes_.first(pe + 1) - first_;
      }
    }
    row_ = std::make_unique_for_overwrite<Location[]>(rows_);
    for (std::uint32_t row = 0; row < rows_; ++row) row_[row].pe = std::uint32_t(pe);
    if constexpr (is_dense) {
      const std::size_t here_max = homes_.size() == 0 || !use_cache ? 1 : homes_.size() / homes_.pes() + 1;
      cache_mask_ = std::uint32_t(std::bit_ceil(std::min<std::size_t>(2 * here_max, std::size_t(1) << 31)) - 1);
      cache_ = std::make_unique_for_overwrite<ElementBase*[]>(std::size_t(cache_mask_) + 1);
      std::fill_n(cache_.get(), std::size_t(cache_mask_) + 1, &none_);
      use_cache_ = use_cache;
      factor_ = homes_.factor();
      if (factor_ != 0) at_home_ = homes_.size();
    }
  }

  PeId home(const Address& address) const { return homes_(address); }

  /// Whether the home can be computed by home_by_arithmetic() and no element is known to have moved.
  inline __attribute__((always_inline)) bool is_at_home(const Address& address) const {
    if constexpr (is_dense)
      return address < at_home_;
    else
      return false;
  }
  inline __attribute__((always_inline)) PeId home_by_arithmetic(const Address& address) const {
    return Homes::block_of(address, factor_);
  }
  /// The PE to which a message for the element goes.
  PeId where(const Address& address) {
    const Location* const location = any_moved_ ? find(address) : nullptr;
    return location != nullptr ? PeId(location->pe) : homes_(address);
  }

  /// The element of this address, or another one, or one that matches no address. If it is another one, find() may know
  /// more. Of elements that share a place of the cache, the last that arrived has it.
  inline __attribute__((always_inline)) ElementBase& cached(const Address& address) {
    if constexpr (is_dense)
      return *cache_[address & cache_mask_];
    else
      return none_;
  }
  /// The element has arrived, or (nullptr) has left.
  void set(const Address& address, Location& location, ElementBase* element) {
    ElementBase* const before = std::exchange(location.element, element);
    if constexpr (is_dense) {
      ElementBase*& place = cache_[address & cache_mask_];
      if (element != nullptr && use_cache_)
        place = element;
      else if (place == before)
        place = &none_;
    }
  }

  /// nullptr: this PE knows only the home.
  Location* find(const Address& address) {
    if constexpr (is_dense) {
      const std::uint32_t row = address - first_;
      if (row < rows_) return &row_[row];
    }
    const auto found = others_.find(address);
    return found == others_.end() ? nullptr : &found->second;
  }
  Location& at(const Address& address) {
    if (Location* const found = find(address)) return *found;
    return others_.try_emplace(address, Location{nullptr, std::uint32_t(homes_(address)), 0}).first->second;
  }

  /// Handles news of an element. Older news than the known ones change nothing.
  void learn(const Address& address, std::size_t pe, std::uint32_t version) {
    Location& location = at(address);
    if (version <= location.version) return;
    location.pe = std::uint32_t(pe);
    location.version = version;
    set_any_moved();
  }
  /// An element is known to have left its home.
  void set_any_moved() {
    any_moved_ = true;
    at_home_ = 0;
  }

 protected:
  const Homes& homes() const { return homes_; }

 private:
  Homes homes_;
  std::uint32_t at_home_ = 0;  // with block(): all numbers while no element is known to have moved; then 0
  std::uint64_t factor_ = 0;   // for home_by_arithmetic()
  std::uint32_t cache_mask_ = 0;
  std::unique_ptr<ElementBase*[]> cache_;  // elements of this PE, by the last bits of their numbers
  bool use_cache_ = false;
  std::uint32_t first_ = 0;
  std::unique_ptr<Location[]> row_;  // with block(): of the elements that have their home here
  std::uint32_t rows_ = 0;
  bool any_moved_ = false;
  std::unordered_map<Address, Location> others_;
  ElementBase none_;  // matches no address
};

/// UsageError: the program's placement gave a PE that does not exist.
[[noreturn]] void throw_place(std::size_t pe, std::size_t pes);

/// Homes of a sparse collection's elements.
template <class Key>
class SparseHomes {
 public:
  SparseHomes(std::size_t pes, std::function<PeId(const Key&)> own) : pes_(pes), own_(std::move(own)) {}
  PeId operator()(const Key& key) const {
    if (own_) return checked(own_(key));
    return mixed(std::hash<Key>()(key)) % pes_;
  }

 private:
  PeId checked(PeId pe) const;
  std::size_t pes_;
  std::function<PeId(const Key&)> own_;
};

template <class Key>
PeId SparseHomes<Key>::checked(PeId pe) const {
  if (pe >= pes_) throw_place(pe, pes_);
  return pe;
}

}  // namespace headway::object
