// SPDX-License-Identifier: BSD-3-Clause
/// The table of 2^log2 words, split into one contiguous block per PE, and the check of a finished run. Shared by the
/// application and by its peers on plain MPI, so that all do the same work on the same memory.
#pragma once

#include <sys/mman.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/error.hpp>
#include <span>

#include "sequence.hpp"

namespace headway::randomaccess {

/// Blocks for a power of two of PEs, at most one PE per word: the owner is the index's high bits.
class EvenBlocks {
 public:
  EvenBlocks(unsigned log2, std::size_t pes, std::size_t /*me*/)
      : shift_(log2 - unsigned(std::countr_zero(pes))), owner_mask_(pes - 1), slot_mask_((1ull << shift_) - 1) {}
  std::size_t owner(std::uint64_t a) const { return (a >> shift_) & owner_mask_; }
  /// Where update `a` lands in this PE's block; this PE must own it.
  std::size_t slot(std::uint64_t a) const { return a & slot_mask_; }
  std::size_t begin(std::size_t pe) const { return pe << shift_; }

 private:
  unsigned shift_;
  std::uint64_t owner_mask_, slot_mask_;
};

/// Blocks for any number of PEs; their sizes differ by at most one word. owner = index * pes / words, computed with a
/// multiplication and a shift; PE p's block begins at ceil(p * words / pes).
class AnyBlocks {
 public:
  AnyBlocks(unsigned log2, std::size_t pes, std::size_t me)
      : log2_(log2), mask_((1ull << log2) - 1), pes_(pes), begin_(begin(me)) {}
  std::size_t owner(std::uint64_t a) const { return ((a & mask_) * pes_) >> log2_; }
  std::size_t slot(std::uint64_t a) const { return (a & mask_) - begin_; }
  std::size_t begin(std::size_t pe) const { return ((std::uint64_t(pe) << log2_) + pes_ - 1) / pes_; }

 private:
  unsigned log2_;
  std::uint64_t mask_;
  std::size_t pes_;
  std::size_t begin_;
};

/// The largest table, in log2 words: so that index * pes fits in 64 bits.
inline constexpr unsigned log2_max = 40;

/// Calls body(blocks) with the cheapest kind of blocks that fits; `blocks` is seen from PE `me`.
template <class Body>
decltype(auto) with_blocks(unsigned log2, std::size_t pes, std::size_t me, Body&& body) {
  if (std::has_single_bit(pes) && std::size_t(std::countr_zero(pes)) <= log2) return body(EvenBlocks(log2, pes, me));
  return body(AnyBlocks(log2, pes, me));
}

/// A block of more words misses the cache closest to a core so often that it pays to ask for the words of some updates
/// before any of them is applied: of so many.
inline constexpr std::size_t words_cached = std::size_t(1) << 17, updates_ahead = 256;

/// One PE's block of words, in memory of its own with huge pages where the kernel has them. T[i] = i at first.
class Table {
 public:
  template <class Blocks>
  Table(const Blocks& blocks, std::size_t me) : begin_(blocks.begin(me)), count_(blocks.begin(me + 1) - begin_) {
    if (count_ > 0) {
      constexpr std::size_t huge = std::size_t(2) << 20;
      bytes_ = count_ * sizeof(std::uint64_t);
      if (bytes_ >= huge) bytes_ = (bytes_ + huge - 1) / huge * huge;
      void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) base::throw_errno("mmap of the table");
      ::madvise(memory, bytes_, MADV_HUGEPAGE);  // a wish; slower without, nothing else
      words_ = static_cast<std::uint64_t*>(memory);
    }
    reset();
  }
  ~Table() {
    if (words_ != nullptr) ::munmap(words_, bytes_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  void reset() {
    for (std::size_t i = 0; i < count_; ++i) words_[i] = begin_ + i;
  }
  std::uint64_t* data() { return words_; }
  std::size_t size() const { return count_; }

  /// Applies this block's share of all `updates` once more, alone: every PE walks the whole sequence, nothing is
  /// sent, so the check depends on nothing that carried the messages. Update `a` was by value_of(a). Each is its own
  /// inverse: returns how many words are not i then.
  template <class Blocks, class ValueOf = std::identity>
  std::uint64_t undo_and_count_errors(const Blocks& blocks, std::size_t me, std::uint64_t updates,
                                      ValueOf value_of = {}) {
    std::uint64_t a = starts(0);
    for (std::uint64_t j = 0; j < updates; ++j) {
      a = step(a);
      if (blocks.owner(a) == me) words_[blocks.slot(a)] ^= value_of(a);
    }
    return count_errors();
  }

  std::uint64_t count_errors() const {
    std::uint64_t errors = 0;
    for (std::size_t i = 0; i < count_; ++i) errors += words_[i] != begin_ + i;
    return errors;
  }

 private:
  std::size_t begin_, count_;
  std::size_t bytes_ = 0;
  std::uint64_t* words_ = nullptr;
};

}  // namespace headway::randomaccess
