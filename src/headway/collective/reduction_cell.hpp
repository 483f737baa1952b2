// SPDX-License-Identifier: BSD-3-Clause
/// The memory in which the members of one call meet: which member may write, which member is the last, when the call
/// is over. No lock; no member waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::collective {

/// The generation of a cell, and the number of members that have arrived. Calls use the cells in turn. Generation g of
/// a cell is for the g-th call that uses it, and every member arrives in each.
///
///     generation == g: free for members that arrive in generation g
///         --arrive() of each: its contribution is written--> the last member reads all contributions
///         --end() of the last--> generation == g + 1
///
///     generation * members <= arrived <= (generation + 1) * members
///
/// A template over the atomic word, so that tests explore this very code.
template <class Word>
class BasicReductionCell {
 public:
  /// Both 0 at first.
  BasicReductionCell(Word& arrived, Word& generation, std::uint64_t members)
      : arrived_(&arrived), generation_(&generation), members_(members) {}

  /// Whether a member that has not arrived in that generation may write its contribution. Once true, it stays true
  /// until the member arrives.
  bool is_free(std::uint64_t generation) const {
    return generation_->load(std::memory_order_acquire) ==
           generation;  // acquire: the last member has read the old contributions
  }

  /// The contribution is written. Returns whether those of all others are as well: the caller then reads them, and
  /// calls end().
  bool arrive(std::uint64_t generation) {
    // release: the writes of this member; acquire, for the last member: the writes of the others
    return arrived_->fetch_add(1, std::memory_order_acq_rel) + 1 == (generation + 1) * members_;
  }

  void end(std::uint64_t generation) { generation_->store(generation + 1, std::memory_order_release); }

 private:
  Word* arrived_;
  Word* generation_;
  std::uint64_t members_;
};

/// Detects members that differ although they do not meet: some arrive at the cell, while others make a call by another
/// path, and their next call by a cell would arrive here. Each leaves a mark and then looks for the mark of the
/// others, so at least one sees the other.
///
///     mark: (generation + 1) << 32 | number of the call; 0: none
template <class Word>
class BasicCrossing {
 public:
  static constexpr std::uint64_t mark(std::uint64_t generation, std::uint32_t number) {
    return (generation + 1) << 32 | number;
  }

  BasicCrossing(Word& arrived_call, Word& passed) : arrived_call_(&arrived_call), passed_(&passed) {}

  /// A member is about to arrive. Returns whether another has passed instead. `tell` writes the text that a member
  /// reports when it finds the mark.
  template <class Tell>
  bool arrive(std::uint64_t own, Tell tell) {
    if (generation_of(arrived_call_->load(std::memory_order_relaxed)) != generation_of(own)) {
      tell();
      arrived_call_->store(own, std::memory_order_seq_cst);
    }
    const std::uint64_t passed = passed_->load(std::memory_order_seq_cst);
    return generation_of(passed) == generation_of(own) && passed >= own;
  }

  /// A member passes. Returns whether another has arrived instead.
  template <class Tell>
  bool pass(std::uint64_t own, Tell tell) {
    std::uint64_t passed = passed_->load(std::memory_order_relaxed);
    if (passed < own) tell();
    while (passed < own && !passed_->compare_exchange_weak(passed, own, std::memory_order_seq_cst)) {
    }
    return look(own);
  }

  /// pass() without a mark: a member that arrives later does not find this one.
  bool look(std::uint64_t own) const {
    const std::uint64_t arrived_call = arrived_call_->load(std::memory_order_seq_cst);
    return generation_of(arrived_call) == generation_of(own) && arrived_call <= own;
  }

 private:
  static constexpr std::uint64_t generation_of(std::uint64_t mark) { return mark >> 32; }

  Word* arrived_call_;
  Word* passed_;
};

/// The parts of a call that have arrived on one of several hosts, in a generation of its cell: bit 0 is the reduction
/// of its own members, by the last of them; one bit each for the reductions of the hosts below it in the tree.
///
///     0 --claim(): one sender--> the part is written --arrive()--> the last to arrive reads all parts
///       --end(), before the generation of the cell ends--> 0
///
///     bit 48         32                16        0
///        | claimed   | belong to it    | there   |
///
/// The own part brings the set that belongs to the generation.
template <class Word>
class BasicHostParts {
 public:
  static constexpr unsigned parts_max = 16;
  struct Parts {
    std::uint32_t there, belong;  // bit by part; `belong` is 0 until the own part has arrived

    bool complete() const { return there == belong; }
    /// Parts that have arrived and do not belong to the generation.
    std::uint32_t strays() const { return belong == 0 ? 0 : there & ~belong; }
  };

  /// 0 at first.
  explicit BasicHostParts(Word& parts) : parts_(&parts) {}

  /// Returns whether this is the first claim of that part in this generation.
  bool claim(unsigned part) {
    const std::uint64_t bit = std::uint64_t(1) << (2 * parts_max + part);
    return (parts_->fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  /// A part is written. `belong`, with the own part: the parts of the generation, the own one included. If they are
  /// complete, only this caller reads them, until it calls end().
  Parts arrive(unsigned part, std::uint32_t belong = 0) {
    const std::uint64_t bits = std::uint64_t(belong) << parts_max | std::uint64_t(1) << part;
    // release: this part; acquire, for the last one: the others
    return parts(parts_->fetch_or(bits, std::memory_order_acq_rel) | bits);
  }
  Parts now() const { return parts(parts_->load(std::memory_order_acquire)); }
  /// A member that arrives in the next generation has seen the end of this one.
  void end() { parts_->store(0, std::memory_order_relaxed); }

 private:
  static Parts parts(std::uint64_t word) {
    constexpr std::uint32_t mask = (1u << parts_max) - 1;
    return {std::uint32_t(word) & mask, std::uint32_t(word >> parts_max) & mask};
  }

  Word* parts_;
};

using CellWord = std::atomic<std::uint64_t>;
using ReductionCell = BasicReductionCell<CellWord>;
using CellCrossing = BasicCrossing<CellWord>;
using HostParts = BasicHostParts<CellWord>;
static_assert(CellWord::is_always_lock_free && sizeof(CellWord) == 8);

inline constexpr std::size_t cells_count = 64;
inline constexpr std::size_t cell_bytes_max = 8192;
/// Two cache lines, because processors fetch lines in pairs.
inline constexpr std::size_t cell_line_bytes = 128;

/// The state that all members of a call share, in the pool of one of them.
struct alignas(cell_line_bytes) CellHead {
  CellWord arrived, generation;                            // BasicReductionCell
  CellWord arrived_call, passed_call;                      // BasicCrossing
  CellWord arrived_pe;                                     // the slot of this PE has its call
  CellWord passed_pe, passed_what_and_root, passed_count;  // the PE that has passed, and its call
  CellWord parts[2];                                       // BasicHostParts of even generation, and of odd ones
};
static_assert(sizeof(CellHead) == cell_line_bytes);

/// The call of one member, and its contribution if it fits; a longer one lies in CellArea::contents.
struct alignas(cell_line_bytes) CellSlot {
  static constexpr std::size_t bytes_max = 96;

  std::uint64_t count;   // Call: of elements
  std::uint32_t number;  // likewise
  std::uint32_t what;
  std::uint32_t root;
  std::uint32_t pe;  // of a host's part: the last member to arrive
  std::uint32_t unused[2];
  std::byte content[bytes_max];
};
static_assert(offsetof(CellSlot, content) == 32 && sizeof(CellSlot) == cell_line_bytes);

/// The cells' memory in the pool of one PE, zero at first. The head of cell c is used in the area of PE c mod PEs.
/// Slots and contents of all cells are this PE's own. `ends` counts for the whole host, in the area of its first PE.
///
///     | reductions, ends | heads by cell | slots by cell | contents by cell |
struct CellArea {
  struct alignas(cell_line_bytes) Begun {
    CellWord reductions;  // calls of this PE by cells
    CellWord ends;        // on several hosts: calls that are over here
  } begun;
  CellHead heads[cells_count];
  CellSlot slots[cells_count];
  std::byte contents[cells_count][cell_bytes_max];
};
static_assert(sizeof(CellArea) == (1 + 2 * cells_count) * cell_line_bytes + cells_count * cell_bytes_max);

}  // namespace headway::collective
