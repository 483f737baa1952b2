/// The transport between PEs of one host, threads or processes: frames are handed over in place in shared memory.
#pragma once

#include <cstring>
#include <functional>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/local/arena.hpp>
#include <headway/transport/local/doorbell.hpp>
#include <headway/transport/local/far_lines.hpp>
#include <headway/transport/local/inbox.hpp>
#include <headway/transport/local/returns.hpp>
#include <headway/transport/local/segment.hpp>
#include <memory>
#include <vector>

namespace headway::local {

/// docs/performance.md: a frame takes about 320 instructions; messages of 1000 bytes, 39 million a second and PE; the
/// way of a cache line from core to core, as the hand-written loops have it.
inline constexpr TransportCosts costs = {.overhead_ns = 80, .gap_per_byte_ns = 0.025, .latency_ns = 58};

/// The endpoint of PE `pe` of the segment. The segment outlives it. Collective only in that every PE makes one.
/// PEs of one process are given the same `shared`, which outlives them.
std::unique_ptr<Endpoint> make_endpoint(Segment& segment, std::size_t pe, SharedByProcess* shared = nullptr);

/// Whether the block of a frame that has come back rests before it is used again: if it was written in small pieces, or held
/// so much that who reads it gains more than who writes it loses.
inline bool rests(const FrameHeader& header) {
  constexpr std::uint32_t alone_bytes_min = 4096;
  return header.count != 1 || header.payload_bytes >= alone_bytes_min;
}

/// Of a frame that comes back and that no other processor has read: its block need not rest.
inline void spare_rest(FrameHeader& header) {
  header.count = 1;
  header.payload_bytes = 0;
}

/// Brings a PE's part of the segment back to its first state. Only while nobody sends.
void reset(Segment& segment, std::size_t pe);

/// Calls visit(header) for each frame that has been posted to the PE and not been polled, as seen from outside: one
/// that is polled meanwhile may be left out, or not.
template <class Visit>
void for_each_unread(const Segment& segment, std::size_t pe, Visit visit) {
  for (std::size_t i = 0; i < inbox_cells; ++i) {
    Cell& cell = segment.inbox(pe)[i];
    const std::uint64_t sequence = cell.sequence.load(std::memory_order_acquire);
    if (sequence % 2 == 0) continue;
    FrameHeader header;
    std::memcpy(&header, &cell.header, sizeof header);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (cell.sequence.load(std::memory_order_relaxed) != sequence) continue;
    header.kind &= std::uint8_t(~(kind_by_reference | kind_in_room));
    visit(header);
  }
}

class LocalEndpoint final : public Endpoint {
 public:
  /// Numbers of PEs are those within the segment, but for the source in a frame's header, which is the run's.
  LocalEndpoint(Segment& segment, std::size_t pe, SharedByProcess* shared = nullptr);

  std::size_t id() const override { return pe_; }
  std::size_t size() const override { return peers_.size(); }
  std::size_t pes_per_process() const override { return segment_->header().pes_per_process; }
  SharedByProcess* shared_by_process() override { return shared_; }
  Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) override;
  bool is_far(Frame* claimed) override;
  std::size_t block_bytes(std::size_t frame_bytes) const override {
    return std::size_t(1) << Arena::order_for(frame_bytes);
  }
  void drop(Frame* frame) override;
  Posted try_post(std::size_t target, Frame* frame, const std::byte* tail_end, bool claimed) override;
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t target) override;
  void post_in_place(std::size_t target, const FrameHeader& header) override;
  void accept_in_place(bool accepts) override {
    segment_->control(pe_).refuses_in_place.store(accepts ? 0 : 1, std::memory_order_relaxed);
  }
  std::size_t by_value_bytes_max() const override { return sizeof(Cell::bytes); }
  std::size_t reclaim(void (*returned)(void*, std::size_t, std::uint64_t), void* context) override;
  bool poll(Arrival& arrival) override;
  void release(const Arrival& arrival) override;
  void sleep(std::int64_t ns_max) override;
  /// The same for one whose bell is rung for more than that.
  void sleep(std::int64_t ns_max, const std::function<bool()>& others_quiet);
  /// Whether nothing has arrived or come back.
  bool is_quiet() {
    return inbox_.front() == nullptr && loopback_.front() == nullptr && returned_to_self_.empty() && returns_.empty();
  }
  /// Of a frame that leaves in another way: no PE of the segment reads it.
  void note_unread(Frame* frame) {
    if (owner_of(frame->header) == pe_) arena_.reader(reinterpret_cast<std::byte*>(frame)) = nobody;
  }
  TransportCosts costs() const override { return local::costs; }
  std::int64_t now() const override;
  std::span<std::byte> pool(std::size_t pe) override { return segment_->pool(pe); }
  std::span<std::byte> board(std::size_t pe) override { return segment_->board(pe); }
  bool shares_boards() const override { return true; }

 private:
  struct Peer {
    InboxSender inbox;
    Room* rooms;  // nullptr where there are none
    Returns returns;
    Doorbell doorbell;
    FarLines small_blocks, large_blocks;  // from 64 KiB on: much of those some handlers do not read
  };

  /// What a PE sends to itself: the same cells, private, so that it never contends with those who send to it.
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

  /// Where the cell of the last arrival that came by value is held until the next poll.
  enum class Holds { nothing, inbox, loopback };

  // Of a block: who has read it, by number from 1 on; `asked` from is_far() on until it is posted.
  static constexpr std::uint32_t nobody = 0, asked = ~std::uint32_t(0);

  /// Within the segment, of the frame's owner; beyond its PEs for a source that is none of them.
  std::size_t owner_of(const FrameHeader& header) const { return header.source - first_pe_; }
  static void fill_by_value(Cell& cell, Frame& frame, const std::byte* tail_end);
  void fill_by_reference(Cell& cell, Frame& frame, const std::byte* tail_end);
  template <class Fill>
  bool push(std::size_t target, Fill fill);
  Cell* next_cell();
  void check_by_value(const FrameHeader& header, std::size_t bytes_max) const;
  void take_from_room(Arrival& arrival);
  void check_reference(const FrameHeader& header, const Cell::Reference& reference) const;
  void let_go();

  Segment* segment_;
  SharedByProcess* shared_;
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
  std::uint32_t last_claim_reader_ = nobody;  // who had read the block of the last claim
  InboxSender::Begun begun_;  // by try_begin_in_place()
  Holds holds_ = Holds::nothing;
  bool loopback_next_ = false;  // the two queues take turns
};

}  // namespace headway::local
