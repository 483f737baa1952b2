// SPDX-License-Identifier: BSD-3-Clause
/// The open buffers of an aggregator: opens, fills and posts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/frame_layout.hpp>
#include <headway/aggregate/frame_poster.hpp>
#include <headway/aggregate/merger.hpp>
#include <headway/aggregate/slots.hpp>
#include <headway/am/engine.hpp>
#include <headway/base/bytes.hpp>
#include <map>
#include <memory>
#include <utility>

namespace headway::aggregate {

/// The number of PEs to which send() takes a path, or 0 where the path does not apply: also before on(), and while a
/// Batch is written.
struct FastPaths {
  std::size_t one_hop = 0;   // messages are buffered on a route of one hop: PEs and slots have the same numbers
  std::size_t buffered = 0;  // messages are buffered on a route
  std::size_t by_value = 0;  // each message is sent alone and by value
};

/// The slots of all scopes that send. `owner` (which describes itself in errors), `poster` and `route` outlive it.
class SlotTable {
 public:
  SlotTable(const am::FrameHandler& owner, FramePoster& poster, const Route& route, const AggregatorOptions& options,
            FrameLayout layout);

  const FrameLayout& layout() const { return layout_; }
  /// Before the first message.
  void begin(FrameLayout layout, FastPaths paths) {
    layout_ = std::move(layout);
    fast_paths_ = paths;
  }
  /// With pp: the PEs of this process fill further buffers together. Those with the same `number` are one.
  void merge_in_process(std::uint64_t number, std::size_t buffer_bytes);
  void enter_scope(am::ScopeId scope);

  // Read for every message:
  const FastPaths& fast_paths() const { return fast_paths_; }
  /// Of the current scope.
  Slot* slots() const { return slots_; }
  const SlotEntry& entry(std::uint32_t slot) const { return layout_.slot_entries[slot]; }
  bool is_open(std::uint32_t slot) const { return slots_[slot].begin != nullptr; }
  /// An open slot without messages. Messages of 0 bytes count.
  bool is_empty(std::uint32_t slot) const { return messages_in(*current_, slot) == 0; }
  /// Whether a message of `bytes` that finds this slot closed is sent alone. Changes the state: call it once for each
  /// message.
  bool sends_alone(std::uint32_t slot, std::size_t bytes) {
    if (is_open(slot) || bytes > layout_.part_bytes_max) return false;
    return gatherings_[slot].sends_alone(engine_->times_idle());
  }
  /// A shorter test for a message that fits by value. If it returns false, the caller calls sends_alone(). It is on the
  /// latency path of single messages.
  bool starts_alone(const Slot& slot) {
    return slot.begin == nullptr && gatherings_[std::size_t(&slot - slots_)].sends_alone(engine_->times_idle());
  }
  /// For an open slot with messages of fixed size without entries.
  Row begin_row(std::uint32_t slot) { return Row(slots_[slot], current_->cold[slot]); }
  /// The number of messages of `bytes` that fit each slot. 0 if no Batch can be written.
  std::size_t room_everywhere(std::size_t bytes) const;
  /// While it lives, a Batch is written, and the program may neither send nor wait.
  class BatchGuard {
   public:
    explicit BatchGuard(SlotTable& table) : table_(table), paths_(std::exchange(table.fast_paths_, {})) {
      table.in_batch_ = true;
    }
    BatchGuard(const BatchGuard&) = delete;
    BatchGuard& operator=(const BatchGuard&) = delete;
    ~BatchGuard() {
      table_.fast_paths_ = paths_;
      table_.in_batch_ = false;
    }

   private:
    SlotTable& table_;
    const FastPaths paths_;
  };
  bool in_batch() const { return in_batch_; }

  /// Variable-size messages: bytes between cursor and tail.
  static std::size_t room(const Slot& slot) { return std::size_t(slot.limit - slot.cursor); }
  /// Whether a message that ends at `end` reaches the threshold or exceeds the buffer.
  static bool fills(const Slot& slot, const std::byte* end) { return end + slot.kept_free >= slot.limit; }
  /// Fixed-size messages.
  static void push_entry(Slot& slot, const SlotEntry& entry, std::uint64_t value) {
    write_entry(slot.tail, entry, value);
    slot.tail -= entry.bytes;
  }

  /// Gives a closed slot a frame with room for a message of `padded` bytes. The main program may wait for memory and
  /// runs handlers meanwhile, after which the slot may be open or closed; a handler spills. False only for Wait::no,
  /// if there was no memory.
  bool open(std::uint32_t slot, std::size_t padded, Wait wait);
  /// For forwarding: false if there is no frame within the budget.
  bool try_open(std::uint32_t slot, std::size_t padded);
  /// Posts a full buffer. The main program runs handlers then.
  void post_full(std::uint32_t slot) {
    post(*current_, slot, am::FlushReason::full);
    poster_->poll_some();
  }
  /// The same for forwarding, without handlers.
  void post_forwarded(std::uint32_t slot) { post(*current_, slot, am::FlushReason::full); }

  /// Appends a message of `bytes` (without padding) to a slot of variable-size messages: fill(at) writes it. Posts the
  /// buffer beyond the threshold. False, without a change, only for Wait::no, if there was no memory.
  template <class Fill>
  bool put(std::uint32_t slot, std::size_t bytes, std::uint64_t entry_value, Fill fill, Wait wait) {
    const SlotEntry& form = entry(slot);
    const std::size_t padded = base::align_up(bytes, layout_.alignment);
    for (;;) {
      Slot& s = slots_[slot];
      if (is_open(slot)) {
        if (padded + form.bytes + entry_slack <= room(s)) {
          const bool beyond_threshold = fills(s, s.cursor + padded);
          fill(s.cursor);
          s.cursor += padded;
          write_entry(s.limit, form, entry_value);
          s.limit -= form.bytes;
          if (beyond_threshold) post_full(slot);
          return true;
        }
        post_full(slot);
      } else if (!open(slot, padded, wait)) {
        return false;
      }
    }
  }

  // As am::FrameHandler.
  bool flush_open(am::FlushReason reason);
  bool flush_idle(am::IdleFlush how);
  bool flush_scope(am::ScopeId scope, am::FlushReason reason);
  bool flush_due(std::int64_t now);
  std::int64_t due() const;
  void count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const;
  /// As flush_open(). Messages of this PE in buffers of its process do not wait for other PEs.
  void flush_now();
  /// Of this PE's memory, in open buffers.
  std::uint64_t open_bytes() const { return open_bytes_ + (merger_ == nullptr ? 0 : merger_->open_bytes()); }
  bool has_open() const { return open_bytes_ != 0 || merger_ != nullptr; }
  /// Messages in open buffers of this PE alone, and their bytes.
  struct Open {
    std::uint64_t messages = 0, bytes = 0;
  };
  Open in_open_buffers() const;
  std::uint8_t hops_left(std::uint32_t slot) const { return std::uint8_t(route_->levels() - 1 - route_->level(slot)); }

  [[noreturn]] void refuse_to_post() const;

 private:
  std::size_t next_frame_bytes(std::uint32_t slot, std::size_t padded);
  void start_frame(std::uint32_t slot, const am::OpenFrame& frame);
  void count_peaks(std::size_t target);
  bool is_last_hop(const ColdSlot& slot) const { return slot.level + 1u == route_->levels(); }
  std::size_t tail_bytes(const SlotSet& set, std::uint32_t slot) const;
  std::size_t messages_in(const SlotSet& set, std::uint32_t slot) const;
  void post(SlotSet& set, std::uint32_t slot, am::FlushReason reason);
  void post_kept(const ColdSlot& cold, am::FlushReason reason, am::ScopeId scope, std::size_t payload_bytes,
                 std::size_t tail_bytes, std::size_t count);
  bool flush_set(SlotSet& set, am::FlushReason reason);
  bool merge(const SlotSet& set, std::uint32_t slot, std::size_t payload_bytes, std::size_t tail_bytes,
             std::size_t count, am::FlushReason reason);
  void post_merged(std::uint32_t slot, const MergedFrame& merged, am::FlushReason reason);

  FastPaths fast_paths_;
  Slot* slots_ = nullptr;            // of the current scope
  Gathering* gatherings_ = nullptr;  // likewise
  am::Engine* engine_;
  FramePoster* poster_;
  const Route* route_;
  const am::FrameHandler* owner_;
  FrameLayout layout_;
  bool idle_flush_, in_batch_ = false;
  std::int64_t timeout_ns_;
  std::byte unread_entry_[8];
  SlotSets sets_;
  SlotSet* current_ = nullptr;      // of the current scope
  std::unique_ptr<Merger> merger_;  // with pp
  std::uint64_t open_bytes_ = 0;
  transport::Observer *observer_ = nullptr, *keeper_ = nullptr;  // in runs that are counted, or traced
};

}  // namespace headway::aggregate
