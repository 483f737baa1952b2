// SPDX-License-Identifier: BSD-3-Clause
/// Open frames: one for each next hop, in a set for each scope that sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/buffer_size.hpp>
#include <headway/aggregate/gathering.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/am/engine.hpp>
#include <memory>
#include <vector>

namespace headway::aggregate {

inline constexpr std::uint32_t none = 0xffffffff;

/// The place of the next message for one hop. The two fields that `send` tests and changes come first.
///
///     frame: | header | payload ... cursor -> ...   <- tail ... entries | end
///
/// A slot of fixed-size messages has room while cursor != limit. A slot of variable-size messages has room while cursor
/// + bytes + kept_free < limit, where limit is the tail. A closed slot has null pointers, and so no room.
struct Slot {
  std::byte* cursor = nullptr;
  std::byte* limit = nullptr;  // of variable size: begin of the lowest entry
  union {
    std::byte* tail = nullptr;  // of fixed size: begin of the lowest entry
    std::size_t kept_free;      // of variable size: bytes for an entry, and beyond the threshold
  };
  std::byte* begin = nullptr;  // of the first message
};
static_assert(sizeof(Slot) == 32);

/// The state of a slot that is used once for each frame.
struct ColdSlot {
  am::OpenFrame frame;
  std::uint32_t target = 0;
  std::uint8_t level = 0;
  std::uint32_t previous = none, next = none;  // in the list of open slots, oldest first
  std::int64_t due = am::never;
  std::int64_t opened_ns = 0;  // in a run that is traced
  BufferSize size;
  bool in_row = false;  // a Row writes into its frame
};

/// Holds a slot's cursor while messages are written one after the other. The slot is full for other code meanwhile, and
/// posting its frame is an error.
class Row {
 public:
  Row(Slot& slot, ColdSlot& cold) : at(slot.cursor), slot_(slot), cold_(cold) {
    slot.cursor = slot.limit;
    cold.in_row = true;
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;
  ~Row() {
    slot_.cursor = at;
    cold_.in_row = false;
  }

  std::byte* at;

 private:
  Slot& slot_;
  ColdSlot& cold_;
};

/// Holds the cursors of all slots of a route of one hop to few PEs, while messages of fixed size are written to any of
/// them without a test for room: each slot has room for all messages.
class Batch {
 public:
  static constexpr std::size_t slots_max = 64;

  Batch(Slot* slots, std::size_t count) : size(count), slots_(slots) {
    for (std::size_t slot = 0; slot != size; ++slot) cursors[slot] = slots[slot].cursor;
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    for (std::size_t slot = 0; slot != size; ++slot) slots_[slot].cursor = cursors[slot];
  }

  std::byte* cursors[slots_max];
  const std::size_t size;

 private:
  Slot* slots_;
};

/// The slots of a route for the messages of one scope.
struct SlotSet {
  am::ScopeId scope = am::root_scope;
  std::vector<Slot> slots;
  std::vector<ColdSlot> cold;
  std::vector<Gathering> gatherings;  // by slot; read for every message that is sent alone
  std::uint32_t first_open = none, last_open = none;

  explicit SlotSet(const Route& route);
  bool empty() const { return first_open == none; }
  void link(std::uint32_t slot);
  void unlink(std::uint32_t slot);
};

/// One set for each scope with open frames, and one more. An empty set is reused for the next scope.
class SlotSets {
 public:
  /// The scope's set. It does not move.
  SlotSet& of(am::ScopeId scope, const Route& route);
  /// nullptr if the scope has no set, and so no open frames.
  SlotSet* find(am::ScopeId scope);

  auto begin() const { return sets_.begin(); }
  auto end() const { return sets_.end(); }

 private:
  std::vector<std::unique_ptr<SlotSet>> sets_;  // of different scopes
};

}  // namespace headway::aggregate
