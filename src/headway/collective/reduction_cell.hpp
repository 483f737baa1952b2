/// Where the members of one call meet in memory that they share: who may write, who comes last, when it is over. No
/// lock, and nobody waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::collective {

/// Which of its generation a cell is in, and how many members have come. Calls take the cells in turn; generation l of
/// a cell is for the l-th call that it takes, and every member comes to each.
///
///     generation == l: free for those who come in generation l
///         --arrive() of each: its contribution is written--> the last has all of them, and reads them
///         --end() of the last--> generation == l + 1
///
///     generation * members <= arrived <= (generation + 1) * members
///
/// A template over the words, so that tests explore this very code with some of their own.
template <class Word>
class BasicReductionCell {
 public:
  /// Both 0 at first.
  BasicReductionCell(Word& arrived, Word& generation, std::uint64_t members)
      : arrived_(&arrived), generation_(&generation), members_(members) {}

  /// Whether a member may write its contribution to that generation, which it has not come to. Once true, true until it
  /// comes.
  bool is_free(std::uint64_t generation) const {
    return generation_->load(std::memory_order_acquire) == generation;  // acquire: what was there has been read
  }

  /// The contribution is written. Whether all others are as well: the caller reads them, and then calls end().
  bool arrive(std::uint64_t generation) {
    // release: what this member wrote; acquire, for the last one: what the others did
    return arrived_->fetch_add(1, std::memory_order_acq_rel) + 1 == (generation + 1) * members_;
  }

  void end(std::uint64_t generation) { generation_->store(generation + 1, std::memory_order_release); }

 private:
  Word* arrived_;
  Word* generation_;
  std::uint64_t members_;
};

/// Members that differ find each other, though they meet nowhere: some come to the cell, and others make a call that
/// goes another way, where their next one for a cell would come here. Each leaves its mark and then looks at the
/// others': one of the two sees the other.
///
///     mark: (generation + 1) << 32 | number of the call; 0: nobody
template <class Word>
class BasicCrossing {
 public:
  static constexpr std::uint64_t mark(std::uint64_t generation, std::uint32_t number) {
    return (generation + 1) << 32 | number;
  }

  BasicCrossing(Word& arrived_call, Word& passed) : arrived_call_(&arrived_call), passed_(&passed) {}

  /// A member is about to come. Whether one has passed instead. `tell` writes what those that find it are to say.
  template <class Tell>
  bool arrive(std::uint64_t own, Tell tell) {
    if (generation_of(arrived_call_->load(std::memory_order_relaxed)) != generation_of(own)) {
      tell();
      arrived_call_->store(own, std::memory_order_seq_cst);
    }
    const std::uint64_t passed = passed_->load(std::memory_order_seq_cst);
    return generation_of(passed) == generation_of(own) && passed >= own;
  }

  /// A member passes. Whether one has come instead.
  template <class Tell>
  bool pass(std::uint64_t own, Tell tell) {
    std::uint64_t passed = passed_->load(std::memory_order_relaxed);
    if (passed < own) tell();
    while (passed < own && !passed_->compare_exchange_weak(passed, own, std::memory_order_seq_cst)) {
    }
    return look(own);
  }

  /// pass() without a mark: who comes later does not find this member.
  bool look(std::uint64_t own) const {
    const std::uint64_t arrived_call = arrived_call_->load(std::memory_order_seq_cst);
    return generation_of(arrived_call) == generation_of(own) && arrived_call <= own;
  }

 private:
  static constexpr std::uint64_t generation_of(std::uint64_t mark) { return mark >> 32; }

  Word* arrived_call_;
  Word* passed_;
};

/// Which parts of a call are there on one of several hosts, in a generation of its cell: what its own members have
/// given, reduced by who arrived last, bit 0, and the reductions of hosts below it in the tree, each a bit.
///
///     0 --claim(): who sends it is alone--> the part is written --arrive()--> who completes them has all, and reads
///     them
///       --end(), before the cell's generation ends--> 0
///
///     bit 48         32                16        0
///        | claimed   | belong to it    | there   |
///
/// Which belong to a generation says who comes with the host's own part.
template <class Word>
class BasicHostParts {
 public:
  static constexpr unsigned parts_max = 16;
  struct Parts {
    std::uint32_t there, belong;  // bit by part; none belong while the own one is not there

    bool complete() const { return there == belong; }
    /// That are there and do not belong to it.
    std::uint32_t strays() const { return belong == 0 ? 0 : there & ~belong; }
  };

  /// 0 at first.
  explicit BasicHostParts(Word& parts) : parts_(&parts) {}

  /// Whether nobody has claimed that part in this generation.
  bool claim(unsigned part) {
    const std::uint64_t bit = std::uint64_t(1) << (2 * parts_max + part);
    return (parts_->fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  /// A part is written; with the own one, which belong to the generation, that one included. If they are complete the
  /// caller, and nobody else, reads them, until it says that it has.
  Parts arrive(unsigned part, std::uint32_t belong = 0) {
    const std::uint64_t bits = std::uint64_t(belong) << parts_max | std::uint64_t(1) << part;
    // release: this part; acquire, for the last one: the others
    return parts(parts_->fetch_or(bits, std::memory_order_acq_rel) | bits);
  }
  Parts now() const { return parts(parts_->load(std::memory_order_acquire)); }
  /// Whoever comes in the next generation has seen the end of this one.
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
/// Two lines each: processors fetch lines in pairs.
inline constexpr std::size_t cell_line_bytes = 128;

/// What the members of a call share, in the pool of one of them.
struct alignas(cell_line_bytes) CellHead {
  CellWord arrived, generation;                            // BasicReductionCell
  CellWord arrived_call, passed_call;                      // BasicCrossing
  CellWord arrived_pe;                                     // whose slot says what it has called
  CellWord passed_pe, passed_what_and_root, passed_count;  // who has passed, and what it has called
  CellWord parts[2];                                       // BasicHostParts of even generation, and of odd ones
};
static_assert(sizeof(CellHead) == cell_line_bytes);

/// What one member has called, and its contribution as far as it fits; a longer one lies in its CellArea::contents.
struct alignas(cell_line_bytes) CellSlot {
  static constexpr std::size_t bytes_max = 96;

  std::uint64_t count;   // Call: of elements
  std::uint32_t number;  // likewise
  std::uint32_t what;
  std::uint32_t root;
  std::uint32_t pe;  // of a host's part: who arrived last
  std::uint32_t unused[2];
  std::byte content[bytes_max];
};
static_assert(offsetof(CellSlot, content) == 32 && sizeof(CellSlot) == cell_line_bytes);

/// One PE's part of the cells, in its pool, zero at first; `ends`, for all of its host, is of the host's first PE:
///
///     | reductions | ends | heads: those of cell c are in PE c mod PEs | slots: its own of each cell | contents:
///     likewise |
struct CellArea {
  struct alignas(cell_line_bytes) Begun {
    CellWord reductions;  // how many calls this PE has made that go by cells
    CellWord ends;        // where there are several hosts: how many calls are over here
  } begun;
  CellHead heads[cells_count];
  CellSlot slots[cells_count];
  std::byte contents[cells_count][cell_bytes_max];
};
static_assert(sizeof(CellArea) == (1 + 2 * cells_count) * cell_line_bytes + cells_count * cell_bytes_max);

}  // namespace headway::collective
