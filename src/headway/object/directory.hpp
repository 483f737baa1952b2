/// What a PE knows of where elements are.
///
/// Each element has a home, which always learns where it went. A PE asks nobody: it sends to where the element was last
/// known to be, its home if nothing is known. Who gets a message for an element that has left passes it on, and tells the
/// sender. How often an element has moved, its version, tells newer news from older, and whether it is gone or still to come:
///
///     the element is at PE b since its move number v   -->  (b, v), known at b, at home, where it was before, and to
///                                                           those whose messages were passed on
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/object/index.hpp>
#include <headway/object/placement.hpp>
#include <headway/transport/frame.hpp>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace headway::object {

/// Of one element.
template <class T>
struct Whereabouts {
  T* element = nullptr;       // if it is here
  std::uint32_t pe = 0;       // where it is, as of that version
  std::uint32_t version = 0;  // how often it had moved then
};

/// By address. Entries stay where they are. Elements are a T : Base.
template <class T, class Base, class Address, class Homes>
class Directory {
 public:
  using Entry = Whereabouts<T>;
  static constexpr bool has_rows = std::is_same_v<Homes, DenseHomes>;

  /// Of `count` elements, from number `first` on, the home is here, with block(). `absent` is none of them, and matches no
  /// address. `seen`: here() may find any.
  Directory(Homes homes, std::size_t pe, std::uint32_t first, std::uint32_t count, bool seen, Base& absent)
      : homes_(std::move(homes)), absent_(&absent), first_(first), row_(new Entry[count]), rows_(count) {
    for (std::uint32_t row = 0; row < count; ++row) row_[row].pe = std::uint32_t(pe);
    if constexpr (has_rows) {
      const std::size_t here_most = homes_.size() == 0 || !seen ? 1 : homes_.size() / homes_.pes() + 1;
      seen_mask_ = std::uint32_t(std::bit_ceil(std::min<std::size_t>(2 * here_most, std::size_t(1) << 31)) - 1);
      seen_.reset(new Base*[std::size_t(seen_mask_) + 1]);
      std::fill_n(seen_.get(), std::size_t(seen_mask_) + 1, absent_);
      sees_ = seen;
    }
    if constexpr (has_rows) {
      factor_ = homes_.factor();
      if (factor_ != 0) at_home_ = homes_.size();
    }
  }

  PeId home(const Address& address) const { return homes_(address); }

  /// Whether its home is found by arithmetic, and it is there for all that is known; and that home.
  inline __attribute__((always_inline)) bool is_at_home(const Address& address) const {
    if constexpr (has_rows)
      return address < at_home_;
    else
      return false;
  }
  inline __attribute__((always_inline)) PeId home_by_arithmetic(const Address& address) const {
    return Homes::block_of(address, factor_);
  }
  /// Where to send a message for it.
  PeId where(const Address& address) {
    const Entry* const entry = any_moved_ ? find(address) : nullptr;
    return entry != nullptr ? PeId(entry->pe) : homes_(address);
  }

  /// The element of that address, or another one, or none: then find() may know. One place is looked at; of elements that
  /// share it the one that came last is found.
  inline __attribute__((always_inline)) Base& here(const Address& address) const {
    if constexpr (has_rows)
      return *seen_[address & seen_mask_];
    else
      return *absent_;
  }
  /// It is here now, or (nullptr) no longer.
  void set(const Address& address, Entry& entry, T* element) {
    Base* const before = std::exchange(entry.element, element);
    if constexpr (has_rows) {
      Base*& place = seen_[address & seen_mask_];
      if (element != nullptr && sees_)
        place = element;
      else if (place == before)
        place = absent_;
    }
  }

  /// nullptr: nothing is known but its home.
  Entry* find(const Address& address) {
    if constexpr (has_rows) {
      const std::uint32_t row = address - first_;
      if (row < rows_) return &row_[row];
    }
    const auto found = others_.find(address);
    return found == others_.end() ? nullptr : &found->second;
  }
  Entry& at(const Address& address) {
    if (Entry* const found = find(address)) return *found;
    return others_.try_emplace(address, Entry{nullptr, std::uint32_t(homes_(address)), 0}).first->second;
  }

  /// News of an element. Returns whether it is newer than what was known.
  bool learn(const Address& address, std::size_t pe, std::uint32_t version) {
    Entry& entry = at(address);
    if (version <= entry.version) return false;
    entry.pe = std::uint32_t(pe);
    entry.version = version;
    moved();
    return true;
  }
  /// An element that it knows of is not at home any more.
  void moved() {
    any_moved_ = true;
    at_home_ = 0;
  }

 private:
  Homes homes_;
  std::uint32_t at_home_ = 0;  // with block(): all numbers, as long as nothing is known to have moved; then none
  std::uint64_t factor_ = 0;   // by which homes are found then
  Base* absent_;
  std::uint32_t seen_mask_ = 0;
  std::unique_ptr<Base*[]> seen_;  // elements that are here, by the last bits of their numbers
  bool sees_ = false;
  std::uint32_t first_;
  std::unique_ptr<Entry[]> row_;  // with block(): of the elements whose home is here
  std::uint32_t rows_;
  bool any_moved_ = false;
  std::unordered_map<Address, Entry> others_;
};

/// UsageError: the program's placement names no PE.
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
