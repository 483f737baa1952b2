/// A PE's frames on their way out: who may claim how much, what waits because a receiver is slow, and the spill.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/am/scope.hpp>
#include <headway/am/spill_memory.hpp>
#include <headway/transport/endpoint.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace headway::am {

/// A frame that is being filled. `end` is one past its last usable byte.
struct OpenFrame {
  Frame* frame = nullptr;
  std::byte* end = nullptr;
  std::uint8_t hops_left = 0;
  bool spilled = false;     // in the PE's own memory instead of frame memory
  bool of_another = false;  // claimed by another PE of the process, to which it comes back; only to be posted

  explicit operator bool() const { return frame != nullptr; }
};

/// Rules of the budget. Frames with h hops left after the next may hold at most budget * 2 / (2 + h) together with all
/// that have more, whatever came first. One target may hold a quarter of that (but always one frame if none that has as
/// few hops left is on its way to it), so that a slow receiver does not stop the others. Frames nearer their end thus
/// find room whatever those with more hops left hold; by induction over the hops left every frame gets on, and
/// forwarding cannot deadlock.
///
/// Frames that the transport refuses wait, in order, in a queue per target and number of hops left: one with many never
/// stands before one with few. Spilled frames wait there too. Frames of other PEs wait apart, for nothing but the
/// transport: were they to wait behind spilled ones, PEs could wait for each other's memory.
class FrameStore {
 public:
  FrameStore(Endpoint& endpoint, std::size_t budget_bytes, std::size_t spill_bytes_max);
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore();

  /// Claims memory for a frame of `frame_bytes` (frame_overhead included) to `target`. Refuses (empty) beyond the
  /// budget.
  [[nodiscard]] OpenFrame try_claim(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);

  /// Whether the budget has room for such a frame; its memory may still lie in pieces that are too small.
  [[nodiscard]] bool has_room(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
    reclaim();
    return within_budget(target, endpoint_->block_bytes(frame_bytes), class_of(hops_left));
  }

  /// try_claim in the PE's own memory, outside the budget. Throws UsageError when the spill reaches its cap.
  [[nodiscard]] OpenFrame spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);

  /// try_claim, or else spill: never blocks. Behind frames that wait it always spills, for what cannot go before them
  /// must not hold the memory that they wait for.
  [[nodiscard]] OpenFrame claim_or_spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
    if (!queued(target, hops_left)) {
      if (const OpenFrame frame = try_claim(target, frame_bytes, hops_left)) return frame;
    }
    return spill(target, frame_bytes, hops_left);
  }

  /// For the runtime's own messages, few and small: neither refused nor capped, and not reported as spill.
  [[nodiscard]] OpenFrame claim_for_control(std::size_t target, std::size_t frame_bytes) {
    if (!queued(target, 0)) {
      if (const OpenFrame frame = try_claim(target, frame_bytes, 0)) return frame;
    }
    return spill_uncapped(frame_bytes, 0);
  }

  /// Posts a filled frame, or queues it behind those that wait for the same target. Returns whether it went.
  bool post(std::size_t target, const OpenFrame& frame, const std::byte* tail_end);

  /// Posts a frame without hops left that lies in memory of the caller's, by value: it may hold at most
  /// Endpoint::by_value_bytes_max(). False where it would have to wait; nothing has changed then.
  [[nodiscard]] bool try_post_by_value(std::size_t target, Frame& frame) {
    if (queued() && queued(target, 0)) return false;
    const std::byte* end = frame.payload() + frame.header.payload_bytes;
    return endpoint_->try_post(target, &frame, end, false) == Endpoint::Posted::copied;
  }

  /// Memory of the PE's own, laid out as a frame's, for one that came from `source` and must wait here. It counts
  /// towards the cap of the spill. Throws UsageError when that is reached.
  [[nodiscard]] std::shared_ptr<std::byte> hold(std::size_t source, std::size_t frame_bytes);

  /// Gives an unused frame back.
  void drop(std::size_t target, const OpenFrame& frame);

  /// Tries to post what is queued. Returns whether any went.
  bool drain();

  /// Takes back frames that receivers have released. Returns whether there were any.
  bool reclaim();

  /// Whether frames with as many hops left wait for `target`: further ones must queue behind them.
  bool queued(std::size_t target, std::uint8_t hops_left) const {
    return !queues_[queue_index(target, hops_left)].empty();
  }
  bool queued() const { return !waiting_queues_.empty() || !of_others_.empty(); }
  std::size_t queued_frames() const { return queued_frames_; }
  bool queued(ScopeId scope) const { return queued_in_[scope] != 0; }
  bool spilling() const { return spill_bytes_ != 0; }

  std::size_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t spill_bytes() const { return spill_bytes_; }
  /// What lies in memory of hold().
  std::uint64_t held_bytes() const { return held_bytes_; }
  std::uint64_t spill_bytes_peak() const { return spill_bytes_peak_; }
  std::uint64_t spilled_frames() const { return spilled_frames_; }
  /// Claimed for or lent to `target`; frames that came back since the last reclaim() count too.
  std::uint64_t outstanding_bytes(std::size_t target) const { return to_target_[target][0]; }
  /// The same for all targets together, of frames with so many hops left or more.
  std::uint64_t outstanding_bytes_with_hops(std::uint8_t hops_left) const { return used_[class_of(hops_left)]; }

  /// Calls visit(target, header, spilled) for each frame that waits to be posted.
  template <class Visit>
  void for_each_queued(Visit visit) const {
    for (const std::size_t index : waiting_queues_) {
      const Queue& queue = queues_[index];
      for (std::size_t i = queue.head; i < queue.frames.size(); ++i) {
        visit(index / classes, queue.frames[i].frame.frame->header, queue.frames[i].frame.spilled);
      }
    }
    for (const auto& [target, queued] : of_others_) visit(target, queued.frame.frame->header, false);
  }

 private:
  struct Queued {
    OpenFrame frame;
    const std::byte* tail_end;
  };
  struct Queue {
    std::vector<Queued> frames;
    std::size_t head = 0;
    bool empty() const { return head == frames.size(); }
  };
  static constexpr std::size_t classes = 8;           // by hops left
  using ByHops = std::array<std::uint64_t, classes>;  // [h]: bytes of frames with h or more hops left

  static std::size_t class_of(std::uint8_t hops_left) { return hops_left < classes ? hops_left : classes - 1; }
  static std::size_t queue_index(std::size_t target, std::uint8_t hops_left) {
    return target * classes + class_of(hops_left);
  }

  enum class Outcome { posted, queue_full, no_memory };
  Outcome try_post(std::size_t target, const OpenFrame& frame, const std::byte* tail_end);
  bool post_of_another(std::size_t target, const OpenFrame& frame, const std::byte* tail_end);
  bool drain_of_others();
  bool demote_one_behind(std::size_t target, Queue& queue);
  OpenFrame spill_uncapped(std::size_t frame_bytes, std::uint8_t hops_left);
  OpenFrame try_claim_at_once(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);
  bool within_budget(std::size_t target, std::size_t bytes, std::size_t hops) const;
  void account(std::size_t target, std::size_t hops, std::int64_t bytes);
  void free_spilled(const OpenFrame& frame);

  Endpoint* endpoint_;
  std::size_t budget_bytes_;
  std::size_t spill_bytes_max_;
  std::vector<ByHops> to_target_;
  ByHops used_{};
  std::size_t claimed_since_reclaim_ = 0;
  std::vector<Queue> queues_;                              // by queue_index
  std::vector<std::size_t> waiting_queues_;                // those that are not empty
  std::vector<std::pair<std::size_t, Queued>> of_others_;  // target, frame
  std::size_t queued_frames_ = 0;
  std::vector<std::size_t> queued_in_ = std::vector<std::size_t>(scopes_max);  // by scope
  SpillMemory spill_memory_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t spill_bytes_ = 0, spill_bytes_peak_ = 0, spilled_frames_ = 0;
};

}  // namespace headway::am
