// SPDX-License-Identifier: BSD-3-Clause
/// Copies of other PEs' cells. The cache has a bounded number of them; the oldest one is replaced.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cell.hpp"

namespace headway::ebarnes {

class Cache {
 public:
  struct Entry {
    std::uint64_t cell = 0;     // a reference; 0: unused
    std::uint32_t next = none;  // in the list of its hash
    bool arrived = false;       // the copy is complete
  };

  explicit Cache(std::size_t capacity)
      : entries_(capacity),
        copies_(std::make_unique_for_overwrite<Cell[]>(capacity)),
        lists_(std::bit_ceil(capacity), none) {}

  void clear() {
    entries_.assign(entries_.size(), {});
    lists_.assign(lists_.size(), none);
    next_ = 0;
  }
  /// The number of the entry of a cell, or none.
  std::uint32_t find(std::uint64_t cell) const {
    std::uint32_t i = list(cell);
    while (i != none && entries_[i].cell != cell) i = entries_[i].next;
    return i;
  }
  /// Takes the oldest entry for a cell that has none.
  std::uint32_t replace(std::uint64_t cell) {
    const std::uint32_t i = next_;
    next_ = next_ + 1 == entries_.size() ? 0 : next_ + 1;
    Entry& entry = entries_[i];
    if (entry.cell != 0) {
      std::uint32_t* at = &lists_[hash(entry.cell)];
      while (*at != i) at = &entries_[*at].next;
      *at = entry.next;
    }
    std::uint32_t& first = lists_[hash(cell)];
    entry = {cell, first, false};
    first = i;
    return i;
  }
  Entry& operator[](std::uint32_t i) { return entries_[i]; }
  Cell& copy(std::uint32_t i) { return copies_[i]; }

  static constexpr std::uint32_t none = ~std::uint32_t(0);

 private:
  std::size_t hash(std::uint64_t cell) const { return cell * 0x9e3779b97f4a7c15 >> 32 & (lists_.size() - 1); }
  std::uint32_t list(std::uint64_t cell) const { return lists_[hash(cell)]; }

  std::vector<Entry> entries_;
  std::unique_ptr<Cell[]> copies_;    // by entry; pages take memory when they are used
  std::vector<std::uint32_t> lists_;  // by hash: the first entry
  std::uint32_t next_ = 0;
};

}  // namespace headway::ebarnes
