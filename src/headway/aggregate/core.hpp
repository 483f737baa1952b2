// SPDX-License-Identifier: BSD-3-Clause
/// The part of an aggregator that does not depend on its message type: slots, routes, flushing, large messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/copy_counts.hpp>
#include <headway/aggregate/keyed_message.hpp>
#include <headway/aggregate/merger.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/aggregate/piece_reader.hpp>
#include <headway/aggregate/reassembly.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/aggregate/slots.hpp>
#include <headway/am/engine.hpp>
#include <headway/base/bytes.hpp>
#include <headway/rma/fastest_path.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace headway::aggregate {

/// Properties of the message type.
struct MessageShape {
  std::size_t fixed_bytes = 0;  // of every message with padding; 0: variable size
  std::size_t alignment = 1;
  bool wants_source = false;  // the handler takes it: on several hops each message carries it
  std::string type;           // the compiler's name of it
};

/// The form of a message's entry in the tail: | length | key | source |, little-endian. A length is a Length; key and
/// source take the fewest bytes. An entry has at most 8 bytes, and is written and read as one word, which may touch up
/// to 7 bytes below it.
struct Entry {
  unsigned length_bytes = 0, key_bytes = 0, source_bytes = 0;

  unsigned bytes() const { return length_bytes + key_bytes + source_bytes; }
  unsigned shift() const { return bytes() == 0 ? 0 : 64 - 8 * bytes(); }
  std::uint64_t length(std::uint64_t entry) const { return entry & mask(length_bytes); }
  std::uint64_t key(std::uint64_t entry) const { return entry >> (8 * length_bytes) & mask(key_bytes); }
  std::uint64_t source(std::uint64_t entry) const {
    return entry >> (8 * (length_bytes + key_bytes)) & mask(source_bytes);
  }
  static constexpr std::uint64_t mask(unsigned bytes) { return bytes == 0 ? 0 : ~std::uint64_t(0) >> (64 - 8 * bytes); }
};

/// The same for one slot, as shifts: an entry is (length | key << key_shift | source << source_shift) << shift.
struct SlotEntry {
  std::uint32_t bytes = 0;
  std::uint8_t shift = 0, key_shift = 0, source_shift = 0;
  bool has_source = false;

  std::uint64_t encode(std::uint64_t length, std::uint64_t key, std::uint64_t source) const {
    return length | key << key_shift | (has_source ? source << source_shift : 0);
  }
};

/// The length in an entry. An entry of a length alone is aligned, so that it never crosses a cache line (1.1 times as
/// fast for messages of 32 bytes). Longer messages are sent alone.
using Length = std::uint16_t;
/// The length in the entry of a part.
inline constexpr std::uint64_t part_mark = Length(-1);
inline constexpr std::uint64_t length_max = part_mark - 1;

/// Bytes below the lowest entry that writing it may touch.
inline constexpr std::size_t entry_slack = 8;

enum FrameFlags : std::uint8_t {
  frame_of_one = 1,   // a single message that fills the frame; its length is the payload's
  frame_of_part = 2,  // a PartHeader and one part of a message
  frame_of_key = 4,   // a KeyHeader and a single message with one empty view: the key names its content
};

class Core : public am::FrameHandler {
 public:
  using Result = am::FrameHandler::Result;

  /// Collective. SettingError for invalid options.
  Core(Pe& pe, const AggregatorOptions& options, MessageShape shape);
  ~Core() override;

  bool flush_open(am::FlushReason reason) override;
  /// The same. Messages of this PE in buffers of its process do not wait for other PEs.
  void flush_now();
  bool flush_idle(am::IdleFlush how) override;
  std::int64_t due() const override;
  bool flush_due(std::int64_t now) override;
  void enter_scope(am::ScopeId scope) override;
  bool flush_scope(am::ScopeId scope, am::FlushReason reason) override;
  std::uint16_t signature() const override { return signature_; }
  std::string description() const override;
  bool ready() const override { return ready_; }
  std::uint64_t waiting_messages(am::ScopeId scope) const override;
  void count_open(std::map<std::uint32_t, std::uint64_t>& by_target) const override;

  /// The options in effect.
  const AggregatorOptions& options() const { return options_; }
  AggregatorStatistics statistics() const;

 protected:
  /// Read for every message by send and deliver. one_hop_size_ is the number of PEs on a route of one hop, else 0: the
  /// range test of `send` then also excludes all other routes from the fast path. The slots belong to the current
  /// scope.
  std::size_t one_hop_size_ = 0;
  Slot* slots_ = nullptr;
  Gathering* gatherings_ = nullptr;  // likewise
  std::size_t buffered_size_ = 0;    // the number of PEs if messages are buffered on a route, else 0
  std::size_t by_value_size_ = 0;    // the number of PEs if each message is sent alone and by value, else 0
  bool in_batch_ = false;            // a Batch writes
  std::size_t alone_from_ = 0;       // messages of at least this length are sent alone

  am::Engine& engine() const { return *engine_; }
  const Route& route() const { return route_; }
  const Entry& entry(unsigned level) const { return entries_[level]; }
  const SlotEntry& slot_entry(std::uint32_t slot) const { return slot_entries_[slot]; }
  bool is_direct() const { return direct_; }
  bool is_ordered() const { return options_.ordered; }

  void mark_ready(bool wants_source);

  /// Throws UsageError unless `destination` is a PE of this run and on() has been called.
  void check_send(std::size_t destination) const;

  enum class Wait { yes, no };
  /// Gives a closed slot a frame with room for a message of `padded` bytes. The main program may wait for memory and
  /// runs handlers meanwhile, after which the slot may be open or closed; a handler spills. False only for Wait::no,
  /// if there was no memory.
  bool open_slot(std::uint32_t slot, std::size_t padded, Wait wait);
  /// For forwarding: false if there is no frame within the budget.
  bool try_open_slot(std::uint32_t slot, std::size_t padded);
  void flush_slot(std::uint32_t slot, am::FlushReason reason) { post_slot(*current_, slot, reason); }
  bool is_open(std::uint32_t slot) const { return slots_[slot].begin != nullptr; }
  /// An open slot without messages. Messages of 0 bytes count.
  bool is_empty(std::uint32_t slot) const { return messages_in(*current_, slot) == 0; }
  /// For an open slot with messages of fixed size without entries.
  Row begin_row(std::uint32_t slot) { return Row(slots_[slot], current_->cold[slot]); }
  /// While it lives, a Batch is written, and the program may neither send nor wait.
  class BatchGuard {
   public:
    explicit BatchGuard(Core& core)
        : core_(core), one_hop_size_(core.one_hop_size_), buffered_size_(core.buffered_size_) {
      core.one_hop_size_ = core.buffered_size_ = 0;  // leads send() to check_send()
      core.in_batch_ = true;
    }
    BatchGuard(const BatchGuard&) = delete;
    BatchGuard& operator=(const BatchGuard&) = delete;
    ~BatchGuard() {
      core_.one_hop_size_ = one_hop_size_;
      core_.buffered_size_ = buffered_size_;
      core_.in_batch_ = false;
    }

   private:
    Core& core_;
    const std::size_t one_hop_size_, buffered_size_;
  };
  /// The number of messages of `bytes` that fit each slot. 0 if no Batch can be written.
  std::size_t room_everywhere(std::size_t bytes) const;
  bool has_open() const { return open_bytes_ != 0 || merger_ != nullptr; }
  /// After the main program has posted a buffer: runs handlers.
  void after_post() { poll_some(); }
  /// Whether a message of `bytes` that finds this slot closed is sent alone. Changes the state: call it once for each
  /// message.
  bool sends_alone(std::uint32_t slot, std::size_t bytes) {
    if (is_open(slot) || bytes > part_bytes_max()) return false;
    return gatherings_[slot].sends_alone(engine_->times_idle());
  }
  /// A shorter test for a message that fits by value. If it returns false, the caller calls sends_alone(). It is on the
  /// latency path of single messages.
  bool starts_alone(const Slot& slot) {
    return slot.begin == nullptr && gatherings_[std::size_t(&slot - slots_)].sends_alone(engine_->times_idle());
  }

  /// Variable-size messages: bytes between cursor and tail.
  static std::size_t room(const Slot& slot) { return std::size_t(slot.limit - slot.cursor); }
  /// Whether a message that ends at `end` reaches the threshold or exceeds the buffer.
  static bool fills(const Slot& slot, const std::byte* end) { return end + slot.kept_free >= slot.limit; }

  /// For entries of a length alone.
  static void write_length(std::byte* tail, std::size_t length) {
    const auto value = Length(length);
    std::memcpy(tail - sizeof value, &value, sizeof value);
  }
  static std::size_t read_length(const std::byte* entry_end) {
    Length value;
    std::memcpy(&value, entry_end - sizeof value, sizeof value);
    return value;
  }
  static void write_entry(std::byte* tail, const SlotEntry& entry, std::uint64_t value) {
    const std::uint64_t word = value << entry.shift;
    std::memcpy(tail - 8, &word, 8);
  }
  /// Fixed-size messages.
  static void push_entry(Slot& slot, const SlotEntry& entry, std::uint64_t value) {
    write_entry(slot.tail, entry, value);
    slot.tail -= entry.bytes;
  }
  static std::uint64_t read_entry(const std::byte* entry_end, const Entry& entry) {
    std::uint64_t word;
    std::memcpy(&word, entry_end - 8, 8);
    return word >> entry.shift();
  }

  /// Appends a message of `bytes` (without padding) to a slot of variable-size messages: fill(at) writes it. Posts the
  /// buffer beyond the threshold. False, without a change, only for Wait::no, if there was no memory.
  template <class Fill>
  bool put(std::uint32_t slot, std::size_t bytes, std::uint64_t entry_value, Fill fill, Wait wait) {
    const SlotEntry& entry = slot_entries_[slot];
    const std::size_t padded = align_up(bytes, shape_.alignment);
    for (;;) {
      Slot& s = slots_[slot];
      if (is_open(slot)) {
        if (padded + entry.bytes + entry_slack <= room(s)) {
          const bool beyond_threshold = fills(s, s.cursor + padded);
          fill(s.cursor);
          s.cursor += padded;
          write_entry(s.limit, entry, entry_value);
          s.limit -= entry.bytes;
          if (beyond_threshold) {
            flush_slot(slot, am::FlushReason::full);
            after_post();
          }
          return true;
        }
        flush_slot(slot, am::FlushReason::full);
        after_post();
      } else if (!open_slot(slot, padded, wait)) {
        return false;
      }
    }
  }

  /// Claims the frame of a message of up to part_bytes_max() that is sent alone. The caller writes the message to
  /// message_of() and calls post_alone(). Empty only for Wait::no.
  am::OpenFrame claim_alone(std::size_t destination, std::size_t bytes, Wait wait,
                            am::Writing writing = am::Writing::any);
  std::byte* message_of(const am::OpenFrame& frame) const { return frame.frame->payload() + padding_; }
  void post_alone(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes,
                  std::uint8_t flags = frame_of_one);
  /// The same for messages of up to alone_bytes_max(). Also empty if parts are better: in a handler without memory, or
  /// if the free memory is fragmented.
  am::OpenFrame claim_large(std::size_t destination, std::size_t bytes, Wait wait, am::Writing writing);
  /// Without the PartHeader.
  std::size_t part_bytes_max() const { return part_frame_bytes_ - frame_overhead - padding_ - sizeof(PartHeader); }
  std::size_t alone_bytes_max(std::size_t destination) const {
    const std::size_t frame = leaves_host(destination) ? alone_frame_bytes_between_hosts_ : alone_frame_bytes_;
    return frame - frame_overhead - padding_;
  }

  /// Posts a message of up to by_value_bytes_max() bytes in `message`, without frame memory. False only for Wait::no.
  std::size_t by_value_bytes_max() const { return by_value_bytes_max_; }
  bool post_by_value(std::size_t destination, SmallFrame& message, std::size_t bytes, Wait wait);
  /// The same for a frame_of_key.
  bool post_key_by_value(std::size_t destination, SmallFrame& message, std::size_t bytes);

  /// The address for a message of up to in_place_bytes_max() bytes in the receiver's inbox. The caller writes it at
  /// once, without another call before post_in_place(). nullptr if the message must be sent in another way.
  std::size_t in_place_bytes_max() const { return in_place_bytes_max_; }
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t destination) {
    am::FrameStore& store = engine_->store();
    return store.spilling() ? nullptr : store.try_begin_in_place(destination);
  }
  void post_in_place(std::size_t destination, std::size_t bytes);

  /// Writes the message of a frame for a remote core, by non-temporal stores.
  void write_past_caches(const am::OpenFrame& frame, Pieces pieces, std::size_t bytes);
  /// Sends a message in parts, straight to its destination. `pieces` have `bytes` together; UsageError otherwise. False
  /// only for Wait::no. For another PE of the host parts are short and written by ordinary stores, or long and written
  /// past the caches, whichever has been faster.
  bool send_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait);
  /// Sends an ordered message above the cutoff, in parts along the route, behind earlier messages.
  bool send_in_order(std::size_t destination, Pieces pieces, std::size_t bytes, Wait wait);

  Reassembly& reassembly() { return reassembly_; }

  std::size_t padding() const { return padding_; }

  /// Adds to the messages of a scope that wait for an object to be made; negative: they no longer wait.
  void count_waiting(am::ScopeId scope, std::int64_t messages) { waiting_messages_[scope] += std::uint64_t(messages); }
  [[noreturn]] void refuse_to_post_row() const;
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_frame(const Arrival& arrival, const char* what) const;
  /// `what` of the frame has the value `actual`; `relation` ("below", "equal to") and `expected` state the allowed
  /// ones.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_frame(const Arrival& arrival, const char* what,
                                                           std::uint64_t actual, const char* relation,
                                                           std::uint64_t expected) const;
  /// FormatError unless the frame of a single message has neither hops nor a tail.
  void check_single(const Arrival& arrival) const {
    const FrameHeader& header = arrival.header;
    if (header.hops_left != 0)
      refuse_frame(arrival, "hops left of a message sent alone", header.hops_left, "equal to", 0);
    if (header.tail_bytes != 0) refuse_frame(arrival, "tail of a message sent alone", header.tail_bytes, "equal to", 0);
  }
  /// FormatError: a message in parts has not the length of its type.
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_whole(std::size_t bytes, std::size_t expected);

  /// Counts copies beyond packing and repacking.
  void count_copies(std::uint64_t messages, std::size_t bytes) { further_copies_.add(messages, bytes); }
  CopyCounts& further_copies() { return further_copies_; }
  /// The message of a frame_of_key. FormatError for an invalid frame.
  KeyedMessage keyed_message(const Arrival& arrival, std::size_t header_bytes) const;

  void count_handled(std::uint64_t messages) {
    engine_->count_handled(messages);
    handled_ += messages;
  }
  /// Counts the messages of one frame.
  void count_delivered(std::uint64_t handled, std::uint64_t forwarded, std::uint64_t forwarded_bytes) {
    count_handled(handled);
    engine_->count_created(0 - forwarded);  // they count as created when their new frame is posted
    created_ -= forwarded;
    payload_bytes_ -= forwarded_bytes;
    forwarded_ += forwarded;
    forwarded_bytes_ += forwarded_bytes;
  }

 private:
  enum PartPath : std::size_t { past_caches, in_caches };
  bool put_in_parts(std::size_t destination, Pieces pieces, std::size_t bytes, std::size_t part_max, PartPath path);
  void lay_out(bool ready);
  SizeLimits limits_of(std::size_t frame_bytes, std::size_t per_message_most) const;
  std::size_t filled(std::size_t frame_bytes) const { return std::size_t(options_.threshold * double(frame_bytes)); }
  std::size_t capacity(unsigned level, std::size_t frame_bytes) const;
  std::size_t next_frame_bytes(std::uint32_t slot, std::size_t padded);
  std::uint8_t hops_left(std::uint32_t slot) const { return std::uint8_t(route_.levels() - 1 - route_.level(slot)); }
  void start_frame(std::uint32_t slot, const am::OpenFrame& frame);
  bool is_last_hop(const ColdSlot& slot) const { return slot.level + 1u == route_.levels(); }
  std::size_t tail_bytes(const SlotSet& set, std::uint32_t slot) const;
  std::size_t messages_in(const SlotSet& set, std::uint32_t slot) const;
  void post_slot(SlotSet& set, std::uint32_t slot, am::FlushReason reason);
  bool flush_set(SlotSet& set, am::FlushReason reason);
  void fill_header(FrameHeader& header, am::ScopeId scope, std::uint8_t hops_left, std::size_t payload_bytes,
                   std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) const;
  void poll_some() {
    if (engine_->may_block()) engine_->poll_some();
  }
  void poll_every_few_posts();
  void count_alone(std::size_t bytes);
  bool post_by_value_later(std::size_t destination, SmallFrame& message, Wait wait);
  bool room_for(std::size_t target, std::uint8_t hops_left, std::size_t frame_bytes, std::size_t frames);
  AggregatorOptions options_possible(AggregatorOptions options) const;
  void update_peaks(std::size_t target);
  std::size_t own_buffer_bytes() const;
  void make_merger();
  bool merge(const SlotSet& set, std::uint32_t slot, std::size_t payload_bytes, std::size_t tail_bytes,
             std::size_t count, am::FlushReason reason);
  void post_merged(std::uint32_t slot, const MergedFrame& merged, am::FlushReason reason);
  void count_frame(std::size_t target, std::size_t bytes) {
    ++frames_;
    frames_between_processes_ += leaves_process(target);
    frames_between_hosts_ += leaves_host(target);
    wire_bytes_ += sizeof(FrameHeader) + bytes;
  }
  void count_buffered(am::FlushReason reason, std::size_t used_bytes, std::size_t frame_bytes);
  bool leaves_process(std::size_t target) const { return target - process_first_ >= process_pes_; }
  bool leaves_host(std::size_t target) const { return !host_.contains(target); }
  void post_frame(std::size_t target, const am::OpenFrame& frame, am::ScopeId scope, std::size_t payload_bytes,
                  std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags);
  am::OpenFrame claim_waiting(std::size_t target, std::size_t bytes, std::uint8_t hops_left, am::Writing writing);

  am::Engine* engine_;
  std::size_t process_first_, process_pes_;  // this PE's process: its first PE, and how many one has
  PeRange host_;                             // the PEs of this host
  MessageShape shape_;
  std::string name_;
  AggregatorOptions options_;  // in effect
  Route route_;
  bool direct_;
  bool idle_flush_;
  bool adapts_sizes_;
  std::size_t capacity_wanted_;  // messages of fixed size that a buffer must hold, else they are sent alone
  std::int64_t timeout_ns_;
  CopyCounts further_copies_;
  Reassembly reassembly_;
  std::unique_ptr<rma::FastestPath<2>> part_paths_;  // for other PEs of the host; made at the first use
  bool ready_ = false;
  std::uint32_t id_ = 0;
  std::uint16_t signature_ = 0;
  std::size_t frame_bytes_ = 0;    // of the largest buffer at any level that this PE fills alone
  std::vector<SizeLimits> sizes_;  // by level
  std::size_t padding_ = 0;        // before the first message, for its alignment
  std::size_t by_value_bytes_max_ = 0, in_place_bytes_max_ = 0;
  std::size_t alone_frame_bytes_ = 0;  // the largest frame of a message sent alone
  std::size_t alone_frame_bytes_between_hosts_ = 0, part_frame_bytes_ = 0;
  std::vector<Entry> entries_;  // by level
  std::vector<SlotEntry> slot_entries_;
  std::byte unread_entry_[8];
  SlotSets sets_;
  SlotSet* current_ = nullptr;      // of the current scope
  std::unique_ptr<Merger> merger_;  // with pp: buffers that the PEs of a process fill together
  std::uint64_t open_bytes_ = 0, open_bytes_peak_ = 0;
  std::uint32_t posts_ = 0;
  std::map<am::ScopeId, std::uint64_t> waiting_messages_;
  std::uint64_t next_message_ = 0;
  using HeaderWords = std::uint64_t[3];  // of a message sent alone, without length and scope
  void complete(HeaderWords& header, const HeaderWords& form, std::size_t bytes) const;
  bool post_small(const HeaderWords& form, std::size_t destination, SmallFrame& message, std::size_t bytes, Wait wait);
  void count_by_value(std::size_t destination, std::size_t bytes);
  HeaderWords alone_header_ = {}, key_header_ = {};

  // statistics
  std::uint64_t by_value_ = 0, by_value_bytes_ = 0;  // not counted below
  std::uint64_t frames_between_processes_ = 0, frames_between_hosts_ = 0;
  std::uint64_t created_ = 0, payload_bytes_ = 0, frames_ = 0, wire_bytes_ = 0, alone_ = 0;
  std::uint64_t flushes_[am::flush_reasons] = {};
  std::uint64_t buffered_frames_ = 0, peak_target_bytes_ = 0;
  double fills_ = 0;  // sum of the fill fractions of buffered frames
  std::uint64_t handled_ = 0, forwarded_ = 0, forwarded_bytes_ = 0;
};

}  // namespace headway::aggregate
