// SPDX-License-Identifier: BSD-3-Clause
/// Global memory as the tree uses it, with counts of accesses to other PEs.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <span>

#include "cell.hpp"

namespace headway::ebarnes {

/// Of one PE, or sums over all.
struct Counts {
  // Accesses to the memory of other PEs; each is a request and an answer.
  std::uint64_t reads = 0, gets = 0, puts = 0, atomics = 0;  // words; content; content; words
  // Making the tree, own cells included.
  std::uint64_t locks = 0, lock_retries = 0, divisions = 0, links = 0, link_retries = 0, cells = 0;
  // Walks: cells of other PEs that were opened, and those of them that were not in the cache.
  std::uint64_t opened = 0, misses = 0, interactions = 0;
  std::uint64_t bodies_moved = 0;  // to other PEs

  std::uint64_t accesses() const { return reads + gets + puts + atomics; }
  std::uint64_t bulk() const { return gets + puts; }
  friend Counts operator+(const Counts& a, const Counts& b) { return combine(a, b, 1); }
  friend Counts operator-(const Counts& a, const Counts& b) { return combine(a, b, std::uint64_t(-1)); }

 private:
  static Counts combine(const Counts& a, const Counts& b, std::uint64_t factor) {
    using Words = std::array<std::uint64_t, sizeof(Counts) / sizeof(std::uint64_t)>;
    auto sum = std::bit_cast<Words>(a);
    const auto more = std::bit_cast<Words>(b);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * more[i];
    return std::bit_cast<Counts>(sum);
  }
};

/// A reference to a cell: (PE + 1) << 44 | offset in the pool of that PE.
inline std::uint64_t reference(PeId pe, std::uint64_t offset) {
  return std::uint64_t(pe.value + 1) << GlobalPtr<Cell>::offset_bits | offset;
}
/// Of a T `bytes` after the begin of the cell.
template <class T = Cell>
GlobalPtr<T> place(std::uint64_t cell, std::size_t bytes = 0) {
  constexpr unsigned bits = GlobalPtr<Cell>::offset_bits;
  return {PeId(std::size_t((cell >> bits) - 1)), (cell & ((std::uint64_t(1) << bits) - 1)) + bytes};
}

class Access {
 public:
  Access(Pe& pe, GlobalMemory& memory) : pe_(&pe), memory_(&memory) {}

  bool is_own(std::uint64_t cell) const { return place(cell).pe() == pe_->id(); }
  /// Of an own cell.
  Cell& own(std::uint64_t cell) const { return *memory_->local(place(cell)); }

  std::uint64_t read(GlobalPtr<std::uint64_t> p) {
    counts.reads += is_remote(p);
    return memory_->read(p);
  }
  std::uint64_t compare_exchange(GlobalPtr<std::uint64_t> p, std::uint64_t expected, std::uint64_t desired) {
    counts.atomics += is_remote(p);
    return memory_->compare_exchange(p, expected, desired);
  }
  /// Writes after all earlier writes of this PE, also in mapped memory.
  void release(GlobalPtr<std::uint64_t> p, std::uint64_t value) {
    counts.atomics += is_remote(p);
    (void)memory_->exchange(p, value);
  }
  /// sync() waits until values of gets have arrived and those of puts are in place.
  template <class T>
  void get(GlobalPtr<T> p, std::span<T> to) {
    counts.gets += is_remote(p);
    memory_->get(p, to);
  }
  template <class T>
  void put(GlobalPtr<T> p, std::span<const T> values) {
    counts.puts += is_remote(p);
    memory_->put(p, values);
  }
  void sync() { memory_->sync(); }

  Counts counts;

 private:
  template <class T>
  bool is_remote(GlobalPtr<T> p) const {
    return p.pe() != pe_->id();
  }

  Pe* pe_;
  GlobalMemory* memory_;
};

/// The cells of one PE, in its pool, where others reach them. Blocks stay until the end and are used again.
class Cells {
 public:
  explicit Cells(Pe& pe) : pe_(&pe) {}
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  ~Cells() {
    for (const std::uint64_t block : blocks_) rma::Pool::of(*pe_).free(block);
  }

  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }
  void drop_last() { --size_; }
  /// An empty leaf. Returns its reference.
  std::uint64_t make(std::uint64_t parent, std::uint64_t key, unsigned level) {
    if (size_ == blocks_.size() * per_block) blocks_.push_back(rma::Pool::of(*pe_).allocate(block_bytes));
    const std::uint64_t offset = offset_of(size_++);
    Cell& cell = *reinterpret_cast<Cell*>(rma::Pool::of(*pe_).memory().data() + offset);
    cell.state = 0;
    cell.parent = parent;
    cell.key = Cube::first_key(key, level);
    cell.level = level;
    cell.child = {};
    return reference(pe_->id(), offset);
  }
  std::uint64_t operator[](std::size_t i) const { return reference(pe_->id(), offset_of(i)); }

 private:
  static constexpr std::size_t block_bytes = 1_MiB, per_block = block_bytes / sizeof(Cell);

  std::uint64_t offset_of(std::size_t i) const { return blocks_[i / per_block] + i % per_block * sizeof(Cell); }

  Pe* pe_;
  std::vector<std::uint64_t> blocks_;  // offsets in the pool
  std::size_t size_ = 0;
};

}  // namespace headway::ebarnes
