// SPDX-License-Identifier: BSD-3-Clause
/// A bounded cache of other PEs' objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "object.hpp"

namespace headway::p_ray {

/// Sets of four entries. An object has a place in one set, where it replaces the entry that was used longest ago and is
/// not pinned. While its object is on its way an entry is not ready, and must be pinned.
class Cache {
 public:
  static constexpr std::size_t ways = 4;
  static constexpr std::uint32_t none = ~std::uint32_t(0);

  /// Rounded up to whole sets.
  explicit Cache(std::size_t entries)
      : sets_((entries + ways - 1) / ways), entries_(sets_ * ways), objects_(entries_.size()) {}

  std::size_t entries() const { return entries_.size(); }
  std::size_t bytes() const { return entries() * (sizeof(Entry) + sizeof(Object)); }

  /// The entry with the object, or none.
  std::uint32_t find(std::uint32_t object) {
    const std::uint32_t first = first_of(object);
    for (std::uint32_t i = first; i < first + ways; ++i) {
      if (entries_[i].object == object) {
        entries_[i].used = ++clock_;
        return i;
      }
    }
    return none;
  }
  /// An entry for an object that find() did not find, not ready; none where all of its set are pinned.
  std::uint32_t claim(std::uint32_t object) {
    const std::uint32_t first = first_of(object);
    std::uint32_t oldest = none;
    for (std::uint32_t i = first; i < first + ways; ++i) {
      if (entries_[i].pins == 0 && (oldest == none || entries_[i].used < entries_[oldest].used)) oldest = i;
    }
    if (oldest != none) entries_[oldest] = {++clock_, object, 0, false};
    return oldest;
  }
  void pin(std::uint32_t entry) { ++entries_[entry].pins; }
  void unpin(std::uint32_t entry) { --entries_[entry].pins; }
  bool is_ready(std::uint32_t entry) const { return entries_[entry].ready; }
  void set_ready(std::uint32_t entry) { entries_[entry].ready = true; }
  Object& object(std::uint32_t entry) { return objects_[entry]; }

 private:
  struct Entry {
    std::uint64_t used = 0;  // when, by clock_
    std::uint32_t object = none;
    std::uint32_t pins : 31 = 0;
    bool ready : 1 = false;
  };

  std::uint32_t first_of(std::uint32_t object) const {
    const std::uint64_t mixed = std::uint32_t(object * 0x9e3779b1u);
    return std::uint32_t(mixed * sets_ >> 32) * std::uint32_t(ways);
  }

  std::size_t sets_;
  std::uint64_t clock_ = 0;
  std::vector<Entry> entries_;
  std::vector<Object> objects_;
};

}  // namespace headway::p_ray
