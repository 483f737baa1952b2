/// Where the members of one call meet in memory that they share: who may write, who comes last, when it is over. No
/// lock, and nobody waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headway::collective {

/// Which of its laps a cell is in, and how many members have come. Calls take the cells in turn; lap l of a cell is for
/// the l-th call that it takes, and every member comes to each.
///
///     laps == l: free for those who come in lap l
///         --come() of each: its contribution is written--> the last has all of them, and reads them
///         --end() of the last--> laps == l + 1
///
///     laps * members <= arrived <= (laps + 1) * members
///
/// A template over the words, so that tests explore this very code with some of their own.
template <class Word>
class BasicFoldCell {
 public:
  /// Both 0 at first.
  BasicFoldCell(Word& arrived, Word& laps, std::uint64_t members)
      : arrived_(&arrived), laps_(&laps), members_(members) {}

  /// Whether a member may write its contribution to that lap, which it has not come to. Once true, true until it comes.
  bool is_free(std::uint64_t lap) const {
    return laps_->load(std::memory_order_acquire) == lap;  // acquire: what was there has been read
  }

  /// The contribution is written. Whether all others are as well: the caller reads them, and then calls end().
  bool come(std::uint64_t lap) {
    // release: what this member wrote; acquire, for the last one: what the others did
    return arrived_->fetch_add(1, std::memory_order_acq_rel) + 1 == (lap + 1) * members_;
  }

  void end(std::uint64_t lap) { laps_->store(lap + 1, std::memory_order_release); }

 private:
  Word* arrived_;
  Word* laps_;
  std::uint64_t members_;
};

/// Members that differ find each other, though they meet nowhere: some come to the cell, and others make a call that
/// goes another way, where their next one for a cell would come here. Each leaves its mark and then looks at the
/// others': one of the two sees the other.
///
///     mark: (lap + 1) << 32 | number of the call; 0: nobody
template <class Word>
class BasicCrossing {
 public:
  static constexpr std::uint64_t mark(std::uint64_t lap, std::uint32_t number) { return (lap + 1) << 32 | number; }

  BasicCrossing(Word& came, Word& passed) : came_(&came), passed_(&passed) {}

  /// A member is about to come. Whether one has passed instead. `tell` writes what those that find it are to say.
  template <class Tell>
  bool come(std::uint64_t own, Tell tell) {
    if (lap_of(came_->load(std::memory_order_relaxed)) != lap_of(own)) {
      tell();
      came_->store(own, std::memory_order_seq_cst);
    }
    const std::uint64_t passed = passed_->load(std::memory_order_seq_cst);
    return lap_of(passed) == lap_of(own) && passed >= own;
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
    const std::uint64_t came = came_->load(std::memory_order_seq_cst);
    return lap_of(came) == lap_of(own) && came <= own;
  }

 private:
  static constexpr std::uint64_t lap_of(std::uint64_t mark) { return mark >> 32; }

  Word* came_;
  Word* passed_;
};

/// Which parts of a call are there on one of several hosts, in a lap of its cell: what its own members have given,
/// folded by who came last, bit 0, and the folds of hosts below it in the tree, each a bit.
///
///     0 --claim(): who sends it is alone--> the part is written --come()--> who completes them has all, and reads them
///       --end(), before the cell's lap ends--> 0
///
///     bit 48         32                16        0
///        | claimed   | belong to it    | there   |
///
/// Which belong to a lap says who comes with the host's own part.
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

  /// Whether nobody has claimed that part in this lap.
  bool claim(unsigned part) {
    const std::uint64_t bit = std::uint64_t(1) << (2 * parts_max + part);
    return (parts_->fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }
  /// A part is written; with the own one, which belong to the lap, that one included. If they are complete the caller,
  /// and nobody else, reads them, until it says that it has.
  Parts come(unsigned part, std::uint32_t belong = 0) {
    const std::uint64_t bits = std::uint64_t(belong) << parts_max | std::uint64_t(1) << part;
    // release: this part; acquire, for the last one: the others
    return parts(parts_->fetch_or(bits, std::memory_order_acq_rel) | bits);
  }
  Parts now() const { return parts(parts_->load(std::memory_order_acquire)); }
  /// Whoever comes in the next lap has seen the end of this one.
  void end() { parts_->store(0, std::memory_order_relaxed); }

 private:
  static Parts parts(std::uint64_t word) {
    constexpr std::uint32_t mask = (1u << parts_max) - 1;
    return {std::uint32_t(word) & mask, std::uint32_t(word >> parts_max) & mask};
  }

  Word* parts_;
};

using FoldWord = std::atomic<std::uint64_t>;
using FoldCell = BasicFoldCell<FoldWord>;
using FoldCrossing = BasicCrossing<FoldWord>;
using HostParts = BasicHostParts<FoldWord>;
static_assert(FoldWord::is_always_lock_free && sizeof(FoldWord) == 8);

inline constexpr std::size_t fold_cells = 64;
inline constexpr std::size_t fold_bytes_max = 8192;
/// Two lines each: processors fetch lines in pairs.
inline constexpr std::size_t fold_line_bytes = 128;

/// What the members of a call share, in the pool of one of them.
struct alignas(fold_line_bytes) FoldHead {
  FoldWord arrived, laps;                                  // BasicFoldCell
  FoldWord came, passed;                                   // BasicCrossing
  FoldWord came_pe;                                        // whose slot says what it has called
  FoldWord passed_pe, passed_what_and_root, passed_count;  // who has passed, and what it has called
  FoldWord parts[2];                                       // BasicHostParts of even laps, and of odd ones
};
static_assert(sizeof(FoldHead) == fold_line_bytes);

/// What one member has called, and its contribution as far as it fits; a longer one lies in its FoldArea::contents.
struct alignas(fold_line_bytes) FoldSlot {
  static constexpr std::size_t bytes_max = 96;

  std::uint64_t count;   // Call: of elements
  std::uint32_t number;  // likewise
  std::uint32_t what;
  std::uint32_t root;
  std::uint32_t pe;  // of a host's part: who came last
  std::uint32_t unused[2];
  std::byte content[bytes_max];
};
static_assert(offsetof(FoldSlot, content) == 32 && sizeof(FoldSlot) == fold_line_bytes);

/// One PE's part of the cells, in its pool, zero at first; `ends`, for all of its host, is of the host's first PE:
///
///     | folds | ends | heads: those of cell c are in PE c mod PEs | slots: its own of each cell | contents: likewise |
struct FoldArea {
  struct alignas(fold_line_bytes) Begun {
    FoldWord folds;  // how many calls this PE has made that go by cells
    FoldWord ends;   // where there are several hosts: how many calls are over here
  } begun;
  FoldHead heads[fold_cells];
  FoldSlot slots[fold_cells];
  std::byte contents[fold_cells][fold_bytes_max];
};
static_assert(sizeof(FoldArea) == (1 + 2 * fold_cells) * fold_line_bytes + fold_cells * fold_bytes_max);

}  // namespace headway::collective
