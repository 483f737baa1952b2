// SPDX-License-Identifier: BSD-3-Clause
/// One call of a collective on one PE: its contributions, the missing ones, and the messages that it sends when one
/// arrives.
///
/// The receiver of a contribution calls take(); a descriptor does not know how contributions arrive. It never waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/scope.hpp>
#include <headway/base/short_vector.hpp>
#include <headway/collective/operation.hpp>
#include <headway/collective/team.hpp>
#include <headway/collective/tree.hpp>
#include <headway/collective/values.hpp>
#include <memory>
#include <optional>
#include <vector>

namespace headway::collective {

/// The purpose of a message: a segment up or down the tree, or an acknowledgement that segments were consumed.
enum class Opcode : std::uint32_t { up, up_consumed, down, down_consumed };

/// Travels with each segment; acknowledgements have no segment.
struct ContributionHeader {
  TeamNumber team;
  std::uint64_t count;  // elements of the whole vector or block
  std::uint32_t call;   // number of earlier calls of the team
  std::uint32_t what;   // Operation::number()
  std::uint32_t root;   // a rank
  std::uint32_t rank;   // of the sender
  std::uint32_t segment;
  Opcode opcode;
};
static_assert(sizeof(ContributionHeader) == 48);

/// A serialized value is one segment, whatever its length.
inline constexpr std::size_t unsegmented = ~std::size_t(0);

/// A call on this PE.
struct Call {
  std::shared_ptr<TeamState> team;
  std::uint64_t count;      // elements of this PE
  std::size_t per_segment;  // likewise
  std::uint32_t number;     // number of earlier calls of this team
  std::uint32_t what;       // Operation::number()
  std::uint32_t root;       // a rank
  bool same_count;          // whether all members have the same count
};

/// Only a tree from rank 0 reduces in the order of ranks. Its result then goes on to the root.
inline std::uint32_t top_of_tree(const Call& call, bool ordered) { return ordered ? 0 : call.root; }

inline ContributionHeader header_of(const Call& call, Opcode opcode, std::uint32_t segment) {
  const TeamState& team = *call.team;
  return {team.number, call.count, call.number, call.what, call.root, team.rank, segment, opcode};
}

/// Sends the segments of descriptors.
class Carrier {
 public:
  virtual ~Carrier() = default;
  /// Never waits, and runs no handler. `bytes` have been copied or sent when it returns.
  virtual void carry(std::size_t pe, const ContributionHeader& header, Bytes bytes) = 0;
  /// Posts all carried messages now.
  virtual void post() = 0;
  /// Ends the run, because a PE has called another collective.
  [[noreturn]] virtual void differ(const Call& here, std::size_t pe, const ContributionHeader& there) = 0;
};

inline constexpr std::uint64_t no_reduction = ~std::uint64_t(0);

/// Segments to one PE that are in flight and not consumed, at most.
inline constexpr std::uint32_t window = 8;

class Descriptor {
 public:
  explicit Descriptor(Call call) : call_(std::move(call)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  virtual ~Descriptor() = default;

  const Call& call() const { return call_; }
  /// Whether it holds little memory: at most a segment, or one per member, of elements that are not serialized.
  bool is_small() const { return call_.count <= call_.per_segment && call_.per_segment != unsegmented; }

  /// Sends the contribution of this PE, as far as its turn has come.
  virtual void start(Carrier& carrier) = 0;
  /// Its cell is free, or its result is in the cell.
  virtual void resume(Carrier&) {}
  /// FormatError for a message that no member sends.
  virtual void take(Carrier& carrier, const ContributionHeader& header, Bytes content) = 0;
  /// Whether there is nothing left to receive or to send.
  virtual bool is_done() const = 0;
  /// Completes the future; is_done() holds.
  virtual void complete() = 0;
  /// Adds the ranks that have not contributed yet.
  virtual void add_missing(std::vector<std::uint32_t>& ranks) const = 0;
  /// Whether the call uses a cell.
  virtual bool meets() const { return false; }
  /// The number of its reduction between hosts if it was called in that epoch, or for the root scope; else
  /// no_reduction.
  virtual std::uint64_t reduction_in(am::ScopeId) const { return no_reduction; }
  /// Whether an unfinished call of that epoch continues without a message of the epoch.
  virtual bool holds_back(am::ScopeId) const { return false; }

 protected:
  /// Segments to one member.
  struct Outlet {
    std::uint32_t rank;
    std::uint32_t sent = 0;
    std::uint32_t limit = window;  // sent <= limit; sent - consumed by the receiver <= window
  };
  /// Segments from one member.
  struct Inlet {
    std::uint32_t rank;
    std::uint32_t consumed = 0;
  };

  // Without an allocation for a small call of few members.
  using Outlets = base::ShortVector<Outlet, 3>;
  using Inlets = base::ShortVector<Inlet, 3>;
  using States = base::ShortVector<std::uint32_t, 1>;

  static constexpr std::size_t segments_max = std::size_t(1) << 31;  // of 32 KiB: 64 TiB
  static std::uint32_t segments_of(std::size_t count, std::size_t per_segment) {
    if (count <= per_segment) return 1;
    const std::size_t segments = (count - 1) / per_segment + 1;
    require(segments <= segments_max, "a collective has more elements than can be");
    return std::uint32_t(segments);
  }
  static Part part(std::uint32_t segment, std::size_t count, std::size_t per_segment) {
    const std::size_t first = segment * per_segment;
    return {first, std::min(per_segment, count - first)};
  }
  Part part(std::uint32_t segment) const { return part(segment, call_.count, call_.per_segment); }

  void send(Carrier& carrier, std::uint32_t to, Opcode opcode, std::uint32_t segment, Bytes bytes) const {
    send(carrier, to, opcode, segment, bytes, call_.count);
  }
  void send(Carrier& carrier, std::uint32_t to, Opcode opcode, std::uint32_t segment, Bytes bytes,
            std::uint64_t count) const;
  /// Sends ready(segment) segments as bytes(segment), in ascending order, as far as the window of `outlet` allows.
  template <class Ready, class GetBytes>
  void pump(Carrier& carrier, Outlet& outlet, Opcode opcode, std::uint32_t segments, Ready ready,
            GetBytes bytes) const {
    pump(carrier, outlet, opcode, segments, ready, bytes, call_.count);
  }
  /// The same for a block of `count` elements.
  template <class Ready, class GetBytes>
  void pump(Carrier& carrier, Outlet& outlet, Opcode opcode, std::uint32_t segments, Ready ready, GetBytes bytes,
            std::uint64_t count) const {
    while (outlet.sent < segments && outlet.sent < outlet.limit && ready(outlet.sent)) {
      const std::uint32_t segment = outlet.sent++;
      send(carrier, outlet.rank, opcode, segment, bytes(segment), count);
    }
  }
  /// Counts a consumed segment, and acknowledges each half window if the sender has more to send than its window
  /// allows.
  void count_consumed(Carrier& carrier, Inlet& inlet, Opcode opcode, std::uint32_t segments) const {
    constexpr std::uint32_t step = window / 2;
    if (++inlet.consumed % step == 0 && inlet.consumed - step + window < segments)
      send(carrier, inlet.rank, opcode, 0, {});
  }
  static void make_room(Outlet& outlet) { outlet.limit += window / 2; }

  /// FormatError if `rank` is none of them.
  template <class Ends>
  static auto& of_rank(Ends& ends, std::uint32_t rank) {
    for (auto& end : ends) {
      if (end.rank == rank) return end;
    }
    throw FormatError("a message of a collective arrived from a member that sends this PE none");
  }
  static void require(bool holds, const char* what) {
    if (!holds) throw FormatError(what);
  }

  Call call_;
};

/// Contributions that are reduced up a tree, a result that goes down a tree, or both.
///
///     up:    segment: own value -- reduced with each child's --> complete --> to the parent | final, at the root
///     down:  segment: final, at the source or on arrival --> to the children
class TreeDescriptor final : public Descriptor {
 public:
  /// `ordered`: children are reduced in their order.
  TreeDescriptor(Call call, Kind kind, std::unique_ptr<Values> values, bool ordered);

  void start(Carrier& carrier) override;
  void take(Carrier& carrier, const ContributionHeader& header, Bytes content) override;
  bool is_done() const override;
  void complete() override;
  void add_missing(std::vector<std::uint32_t>& ranks) const override;

 private:
  /// A contribution that arrived before its turn.
  struct Held {
    std::uint32_t segment = 0, child = nobody;  // the default marks a free entry
    std::vector<std::byte> bytes;
  };
  static constexpr std::uint32_t final = ~std::uint32_t(0);

  void take_up(Carrier& carrier, const ContributionHeader& header, Bytes content);
  void take_down(Carrier& carrier, const ContributionHeader& header, Bytes content);
  void reduce(Carrier& carrier, std::uint32_t segment, std::uint32_t child, Bytes content);
  void hold(std::uint32_t segment, std::uint32_t child, Bytes content);
  void reduce_held(Carrier& carrier, std::uint32_t segment);
  void pump_up(Carrier& carrier);
  void pump_down(Carrier& carrier, Outlet& outlet);
  void know_segments();

  std::unique_ptr<Values> values_;
  bool ordered_, climbs_, has_result_, knows_count_;
  std::uint32_t segments_ = 0;
  Outlets up_to_, down_to_;     // up_to_: the parent, if any
  Inlets up_from_, down_from_;  // down_from_: one at most
  States state_;                // by segment: number of reduced children, or `final`
  std::uint32_t finals_ = 0;
  std::vector<Held> held_;
  std::size_t holds_ = 0;  // in use
};

/// A scan over the ranks along one tree. Up: each member keeps the sum of the ranks of its subtree that lie before
/// each child. Down: it learns the prefix of the ranks before its own, and so that of each child.
///
///     sums_[0] = own, sums_[i] = op(sums_[i - 1], child i - 1)      up: the last of them to the parent
///     down: sums_[i] = op(prefix, sums_[i]), to child i; sums_[0] is the inclusive scan, `prefix` the exclusive one
class ScanDescriptor final : public Descriptor {
 public:
  /// Number of sums of a member.
  static std::size_t sums(const TeamState& team);
  /// All `sums` have the call's count; the first has this PE's elements. `prefix`: the initial value of an exclusive
  /// scan, or nullptr.
  ScanDescriptor(Call call, std::vector<std::unique_ptr<Values>> sums, std::unique_ptr<Values> prefix);

  void start(Carrier& carrier) override;
  void take(Carrier& carrier, const ContributionHeader& header, Bytes content) override;
  bool is_done() const override;
  void complete() override;
  void add_missing(std::vector<std::uint32_t>& ranks) const override;

 private:
  static constexpr std::uint32_t final = ~std::uint32_t(0);

  void end_up(std::uint32_t segment);
  void take_prefix(std::uint32_t segment, Bytes prefix);
  void pump(Carrier& carrier);

  std::vector<std::unique_ptr<Values>> sums_;
  std::unique_ptr<Values> prefix_;
  std::uint32_t segments_;
  Outlets up_to_, down_to_;
  Inlets up_from_, down_from_;
  States state_;  // as in TreeDescriptor
  std::uint32_t finals_ = 0;
};

/// The blocks of one call on one PE, by rank, for any type.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  virtual ~Blocks() = default;

  /// Elements of the block for `rank`.
  virtual std::uint64_t count(std::uint32_t rank) const = 0;
  /// Elements that each block for this PE must have; nullopt where blocks may differ in length.
  virtual std::optional<std::uint64_t> expected() const { return std::nullopt; }
  /// Part of the block for `rank`. Valid until the next call.
  virtual Bytes encoded(std::uint32_t rank, Part part) = 0;
  /// Part of the block of `count` elements from `rank`.
  virtual void take(std::uint32_t rank, std::uint64_t count, Part part, Bytes bytes) = 0;
  virtual void complete() = 0;
};

/// Blocks that travel straight from member to member, unchanged.
class BlocksDescriptor final : public Descriptor {
 public:
  /// `call.count` is for the texts of errors, and of one block where all have one length.
  BlocksDescriptor(Call call, Kind kind, std::unique_ptr<Blocks> blocks);

  void start(Carrier& carrier) override;
  void take(Carrier& carrier, const ContributionHeader& header, Bytes content) override;
  bool is_done() const override { return unsent_ == 0 && missing_ == 0; }
  void complete() override { blocks_->complete(); }
  void add_missing(std::vector<std::uint32_t>& ranks) const override;

 private:
  std::uint32_t segments_to(const Outlet& outlet) const {
    return segments_of(blocks_->count(outlet.rank), call_.per_segment);
  }
  void pump_to(Carrier& carrier, Outlet& outlet);
  Outlet& outlet_to(std::uint32_t rank);
  Inlet& inlet_from(std::uint32_t rank);
  void require_expected(const ContributionHeader& header) const;

  std::unique_ptr<Blocks> blocks_;
  std::vector<Outlet> to_;   // the root, or all others in the order of ranks, from the next rank on
  std::vector<Inlet> from_;  // the root, or all members by rank
  std::uint32_t unsent_ = 0, missing_ = 0;
};

}  // namespace headway::collective
