// SPDX-License-Identifier: BSD-3-Clause
/// The transport between PEs of one host, threads or processes: frames are handed over in place in shared memory.
#pragma once

#include <cstring>
#include <functional>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/local/arena.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <headway/transport/local/inbox.hpp>
#include <headway/transport/local/remote_reader.hpp>
#include <headway/transport/local/returns.hpp>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <vector>

namespace headway::local {

/// From docs/performance.md: a frame takes about 320 instructions; a PE moves 39 million messages of 1000 bytes a
/// second; the latency is that of a cache line between two cores in the hand-written loops.
inline constexpr transport::TransportCosts costs = {.overhead_ns = 80, .gap_per_byte_ns = 0.025, .latency_ns = 58};

/// Makes the endpoint of PE `pe` of the segment. Every PE makes one. The segment outlives it, and so does `shared`,
/// which is the same for all PEs of a process.
std::unique_ptr<transport::Endpoint> make_endpoint(Segment& segment, std::size_t pe,
                                                   transport::SharedByProcess* shared = nullptr);

/// True if the reuse of a returned frame's block is delayed: the sender wrote it in small pieces, or it is so long that
/// the next reader gains more than the writer loses.
inline bool delays_reuse(const transport::FrameHeader& header) {
  constexpr std::uint32_t alone_bytes_min = 4096;
  return header.count != 1 || header.payload_bytes >= alone_bytes_min;
}

/// Marks a returned frame that no other core has read: its block is reused without delay.
inline void reuse_at_once(transport::FrameHeader& header) {
  header.count = 1;
  header.payload_bytes = 0;
}

/// Brings a PE's part of the segment back to its first state. Only while no PE sends.
void reset(Segment& segment, std::size_t pe);

/// Calls visit(header) for each frame that has been posted to the PE and not been polled. From any process. It may
/// visit or leave out a frame that is polled meanwhile.
template <class Visit>
void for_each_unread(const Segment& segment, std::size_t pe, Visit visit) {
  for (std::size_t i = 0; i < inbox_cells; ++i) {
    Cell& cell = segment.inbox(pe)[i];
    const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
    if (sequence % 2 == 0) continue;
    transport::FrameHeader header;
    std::memcpy(&header, &cell.header, sizeof header);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (cell.sequence.load(std::memory_order_relaxed) != sequence) continue;
    header.kind &= std::uint8_t(~(kind_by_reference | kind_in_eager_slot));
    visit(header);
  }
}

class LocalEndpoint final : public transport::Endpoint, private transport::SharedMemory {
 public:
  /// PEs are numbered within the segment; only the source in a frame's header is a PE of the run.
  LocalEndpoint(Segment& segment, std::size_t pe, transport::SharedByProcess* shared = nullptr);

  transport::Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override;
  bool should_write_past_caches(transport::Frame* claimed) override;
  std::size_t block_bytes(std::size_t frame_bytes) const override {
    return std::size_t(1) << Arena::order_for(frame_bytes);
  }
  void drop(transport::Frame* frame) override;
  Posted try_post(std::size_t target, transport::Frame* frame, const std::byte* tail_end, bool claimed) override;
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t target) override;
  void post_in_place(std::size_t target, const transport::FrameHeader& header) override;
  void accept_in_place(bool accepts) override {
    segment_->control(pe_).refuses_in_place.store(accepts ? 0 : 1, std::memory_order_relaxed);
  }
  std::size_t by_value_bytes_max() const override { return sizeof(Cell::bytes); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override;
  bool poll(transport::Arrival& arrival) override;
  void release(const transport::Arrival& arrival) override;
  void sleep(std::int64_t ns_max) override;
  /// The same, but returns also if `others_quiet()` is false: for an owner that is woken for other events too.
  void sleep(std::int64_t ns_max, const std::function<bool()>& others_quiet);
  /// True if no frame has arrived or returned.
  bool is_quiet() {
    return inbox_.front() == nullptr && loopback_.front() == nullptr && returned_to_self_.empty() && returns_.empty();
  }
  /// Marks a claimed frame that leaves over the wire: no PE of the segment reads it.
  void mark_unread(transport::Frame* frame) {
    if (owner_of(frame->header) == pe_) arena_.reader(reinterpret_cast<std::byte*>(frame)) = no_reader;
  }
  transport::TransportCosts costs() const override { return segment_->header().costs_within_host.over(local::costs); }
  std::int64_t now() const override;

 private:
  std::span<std::byte> pool(std::size_t pe) override { return segment_->pool(pe); }
  std::span<std::byte> board(std::size_t pe) override { return segment_->board(pe); }
  bool shares_boards() const override { return true; }
  transport::SharedByProcess* shared_by_process() override { return shared_; }

  struct Peer {
    InboxSender inbox;
    EagerSlot* eager_slots;  // nullptr: the PE has none
    Returns returns;
    Doorbell doorbell;
    RemoteReader small_blocks, large_blocks;  // large: from 64 KiB on, because some handlers do not read all of them
  };

  /// A PE's frames to itself, in private cells, so that it does not contend with its senders.
  class Loopback {
   public:
    Loopback() : cells_(std::make_unique<Cell[]>(inbox_cells)) {}
    Cell* try_back() { return tail_ - head_ == inbox_cells ? nullptr : &cells_[tail_ % inbox_cells]; }
    void push() { ++tail_; }
    Cell* front() { return head_ == tail_ ? nullptr : &cells_[head_ % inbox_cells]; }
    void pop() { ++head_; }

   private:
    std::unique_ptr<Cell[]> cells_;
    std::uint64_t head_ = 0, tail_ = 0;
  };

  /// The queue with the cell of the last frame by value, which the PE reads until the next poll.
  enum class ReadCell { none, inbox, loopback };

  // Reader of a block: its number in the segment + 1; `asked` from should_write_past_caches() until the post.
  static constexpr std::uint32_t no_reader = 0, asked = ~std::uint32_t(0);

  /// The frame's owner, numbered within the segment; size() or more for a source outside it.
  std::size_t owner_of(const transport::FrameHeader& header) const { return header.source - first_pe_; }
  static void fill_by_value(Cell& cell, transport::Frame& frame, const std::byte* tail_end);
  void fill_by_reference(Cell& cell, transport::Frame& frame, const std::byte* tail_end);
  template <class Fill>
  bool push(std::size_t target, Fill fill);
  Cell* next_cell();
  void check_by_value(const transport::FrameHeader& header, std::size_t bytes_max) const;
  // Not inlined, so that the checks of correct frames stay short.
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_length(const transport::FrameHeader& header,
                                                            std::size_t bytes_max) const;
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_reference(const transport::FrameHeader& header,
                                                               const Cell::Reference& reference) const;
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_eager_slot(const transport::FrameHeader& header) const;
  void take_from_eager_slot(transport::Arrival& arrival);
  void check_reference(const transport::FrameHeader& header, const Cell::Reference& reference) const;
  void free_read_cell();

  Segment* segment_;
  transport::SharedByProcess* shared_;
  std::size_t pe_;
  std::size_t first_pe_;
  std::size_t arena_bytes_;  // of one PE
  Arena arena_;
  InboxReceiver inbox_;
  Returns returns_;
  Doorbell doorbell_;
  std::vector<Peer> peers_;
  Loopback loopback_;
  std::vector<std::byte*> returned_to_self_;
  std::uint32_t last_claim_reader_ = no_reader;  // the reader of the last claim's block before that claim
  InboxSender::Reservation reservation_;         // of try_begin_in_place()
  ReadCell read_cell_ = ReadCell::none;
  bool loopback_next_ = false;  // the two queues take turns
};

}  // namespace headway::local
