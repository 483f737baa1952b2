// SPDX-License-Identifier: BSD-3-Clause
/// Outgoing frames of a PE: the budget, frames that wait for a slow receiver, and the spill.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/am/scope.hpp>
#include <headway/am/spill_memory.hpp>
#include <headway/am/staging_memory.hpp>
#include <headway/transport/endpoint.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace headway::am {

/// A frame that is being filled; its tail ends at end(). 16 bytes, so that it is returned in registers: a return
/// through memory would make a later wide load wait for the store buffer.
struct OpenFrame {
  enum class Memory : std::uint8_t {
    claimed,
    staging,     // the PE's own; its link is the claimed frame, to which post() copies it past the caches
    spilled,     // the PE's own, instead of frame memory
    of_another,  // claimed by another PE of the process, which reclaims it; may only be posted
  };

  transport::Frame* frame = nullptr;
  std::uint32_t bytes = 0;  // size including frame_overhead
  std::uint8_t hops_left = 0;
  Memory memory = Memory::claimed;
  bool past_caches = false;  // claimed to be written at once, past the caches: Endpoint::should_write_past_caches()

  std::byte* begin() const { return reinterpret_cast<std::byte*>(frame); }
  std::byte* end() const { return begin() + bytes; }
  /// The frame that is posted, also of a staging buffer.
  const transport::Frame* claimed() const {
    return memory == Memory::staging ? reinterpret_cast<const transport::Frame*>(frame->link) : frame;
  }
  explicit operator bool() const { return frame != nullptr; }
};
static_assert(sizeof(OpenFrame) == 16);

/// How a frame will be written.
enum class Writing {
  any,       // without regard to where its lines are
  at_once,   // by one copy, which does what past_caches says
  in_pieces  // for a remote core in a staging buffer
};

/// Rules of the budget. Frames with h or more hops left together hold at most budget * 2 / (2 + h). Of this, frames
/// for one receiver hold at most a quarter, but always one frame if no other with so few hops left is in flight to
/// it: a slow receiver does not stop the others. Frames with fewer hops left thus find memory, whatever frames with
/// more hops hold. By induction over the hops left, every frame advances, and forwarding cannot deadlock.
///
/// Frames that the transport refuses wait, in order, in a queue per receiver and number of hops left. A frame with
/// many hops left never delays one with few. Spilled frames wait there too. Frames claimed by other PEs wait
/// separately, only for the transport: behind spilled frames, two PEs could wait for each other's memory.
class FrameStore {
 public:
  FrameStore(transport::Endpoint& endpoint, std::size_t budget_bytes, std::size_t spill_bytes_max);
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore();

  /// Claims memory for a frame of `frame_bytes` (frame_overhead included) to `target`. Refuses (empty) beyond the
  /// budget.
  [[nodiscard]] OpenFrame try_claim(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left,
                                    Writing writing = Writing::any);

  /// Whether the budget allows such a frame. Its memory may still be fragmented.
  [[nodiscard]] bool has_room(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
    reclaim();
    return within_budget(target, endpoint_->block_bytes(frame_bytes), class_of(hops_left));
  }

  /// try_claim() outside the budget, in private memory. UsageError when the spill reaches its limit.
  [[nodiscard]] OpenFrame spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);

  /// try_claim(), or else spill(). Never blocks. Behind waiting frames it always spills: a frame that cannot overtake
  /// them must not hold the memory that they wait for.
  [[nodiscard]] OpenFrame claim_or_spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left,
                                         Writing writing = Writing::any) {
    if (!queued(target, hops_left)) {
      if (const OpenFrame frame = try_claim(target, frame_bytes, hops_left, writing)) return frame;
    }
    return spill(target, frame_bytes, hops_left);
  }

  /// For control messages, which are few and small: never refused, not limited, not counted as spilled frames.
  [[nodiscard]] OpenFrame claim_for_control(std::size_t target, std::size_t frame_bytes) {
    if (!queued(target, 0)) {
      if (const OpenFrame frame = try_claim(target, frame_bytes, 0)) return frame;
    }
    return spill_uncapped(frame_bytes, 0);
  }

  /// Posts a filled frame, or queues it behind frames that wait for the same receiver. Returns whether it was posted.
  bool post(std::size_t target, const OpenFrame& frame);

  /// Posts by value a frame without hops left that lies in the caller's memory. Its size is at most
  /// Endpoint::by_value_bytes_max(). False if it would have to wait; nothing has changed then.
  [[nodiscard]] bool try_post_by_value(std::size_t target, transport::Frame& frame) {
    if (queued() && queued(target, 0)) return false;
    const std::byte* end = frame.payload() + frame.header.payload_bytes;
    return endpoint_->try_post(target, &frame, end, false) == transport::Endpoint::Posted::copied;
  }

  /// Endpoint::try_begin_in_place(), or nullptr if frames wait for `target`.
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t target) {
    if (queued() && queued(target, 0)) return nullptr;
    return endpoint_->try_begin_in_place(target);
  }
  void post_in_place(std::size_t target, const transport::FrameHeader& header) {
    endpoint_->post_in_place(target, header);
  }

  /// Private memory for a frame from `source` that must wait on this PE. Counts against the limit of the spill.
  /// UsageError when that is reached.
  [[nodiscard]] std::shared_ptr<std::byte> hold(std::size_t source, std::size_t frame_bytes);

  /// Frees an unused frame.
  void drop(std::size_t target, const OpenFrame& frame);

  /// Tries to post queued frames. Returns whether any was posted.
  bool drain();

  /// Reclaims frames that receivers have released. Returns whether there were any.
  bool reclaim();

  /// Whether frames with so many hops left wait for `target`. New ones must queue behind them.
  bool queued(std::size_t target, std::uint8_t hops_left) const {
    return !queues_[queue_index(target, hops_left)].empty();
  }
  bool queued() const { return !waiting_queues_.empty() || !of_others_.empty(); }
  std::size_t queued_frames() const { return queued_frames_; }
  bool queued(ScopeId scope) const { return queued_in_[scope] != 0; }
  bool spilling() const { return spill_bytes_ != 0; }

  std::size_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t spill_bytes() const { return spill_bytes_; }
  /// Bytes allocated by hold().
  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t spill_bytes_peak() const { return spill_bytes_peak_; }
  std::uint64_t spilled_frames() const { return spilled_frames_; }
  /// Frames that were written past the caches, from staging buffers or at once.
  std::uint64_t frames_past_caches() const { return frames_past_caches_; }
  /// Bytes claimed for or lent to `target`, including frames that were released since the last reclaim().
  std::uint64_t outstanding_bytes(std::size_t target) const { return to_target_[target][0]; }
  /// The same for all targets, of frames with `hops_left` or more hops left.
  std::uint64_t outstanding_bytes_with_hops(std::uint8_t hops_left) const { return used_[class_of(hops_left)]; }

  /// Calls visit(target, header, spilled) for each frame that waits to be posted.
  template <class Visit>
  void for_each_queued(Visit visit) const {
    for (const std::size_t index : waiting_queues_) {
      const Queue& queue = queues_[index];
      for (std::size_t i = queue.head; i < queue.frames.size(); ++i) {
        const OpenFrame& frame = queue.frames[i];
        visit(index / classes, frame.frame->header, frame.memory == OpenFrame::Memory::spilled);
      }
    }
    for (const auto& [target, frame] : of_others_) visit(target, frame.frame->header, false);
  }

 private:
  struct Queue {
    std::vector<OpenFrame> frames;
    std::size_t head = 0;
    bool empty() const { return head == frames.size(); }
  };
  static constexpr std::size_t classes = 8;           // by hops left
  using ByHops = std::array<std::uint64_t, classes>;  // [h]: bytes of frames with at least h hops left

  static std::size_t class_of(std::uint8_t hops_left) { return hops_left < classes ? hops_left : classes - 1; }
  static std::size_t queue_index(std::size_t target, std::uint8_t hops_left) {
    return target * classes + class_of(hops_left);
  }

  enum class Outcome { posted, queue_full, no_memory };
  Outcome try_post(std::size_t target, const OpenFrame& frame);
  bool post_staging(std::size_t target, const OpenFrame& staging);
  bool post_of_another(std::size_t target, const OpenFrame& frame);
  bool drain_of_others();
  static void copy_into(const OpenFrame& to, const OpenFrame& from);
  OpenFrame write_past_caches(OpenFrame frame, Writing writing);
  void update_accept_in_place();
  OpenFrame write_out(const OpenFrame& staging);
  bool spill_one_behind(std::size_t target, Queue& queue);
  OpenFrame spill_uncapped(std::size_t frame_bytes, std::uint8_t hops_left);
  OpenFrame try_claim_at_once(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);
  bool within_budget(std::size_t target, std::size_t bytes, std::size_t hops) const;
  void account(std::size_t target, std::size_t hops, std::int64_t bytes);
  void free_spilled(const OpenFrame& frame);

  transport::Endpoint* endpoint_;
  std::size_t budget_bytes_;
  std::size_t spill_bytes_max_;
  std::vector<ByHops> to_target_;
  ByHops used_{};
  std::size_t claimed_since_reclaim_ = 0;
  std::vector<Queue> queues_;                                 // by queue_index
  std::vector<std::size_t> waiting_queues_;                   // indices of queues that are not empty
  std::vector<std::pair<std::size_t, OpenFrame>> of_others_;  // target, frame
  std::size_t queued_frames_ = 0;
  std::vector<std::size_t> queued_in_ = std::vector<std::size_t>(scopes_max);  // by scope
  SpillMemory spill_memory_;
  std::unique_ptr<StagingMemory> staging_memory_;  // once there are any
  std::uint64_t held_bytes_ = 0;
  bool accepts_in_place_ = true;
  std::uint64_t spill_bytes_ = 0, spill_bytes_peak_ = 0, spilled_frames_ = 0;
  std::uint64_t frames_past_caches_ = 0;
};

}  // namespace headway::am
