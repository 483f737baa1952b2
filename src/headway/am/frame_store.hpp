/// A PE's frames on their way out: who may claim how much, what waits because a receiver is slow, and the spill.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/transport/endpoint.hpp>
#include <vector>

namespace headway::am {

/// A frame that is being filled. `end` is one past its last usable byte.
struct OpenFrame {
  Frame* frame = nullptr;
  std::byte* end = nullptr;
  std::uint8_t hops_left = 0;
  bool spilled = false;  // in the PE's own memory instead of frame memory

  explicit operator bool() const { return frame != nullptr; }
};

/// Rules of the budget. Frames with h hops left after the next may hold at most budget * 2 / (2 + h) together with all
/// that have more: frames nearer their end always find room, so that forwarding cannot deadlock. One target may hold at
/// most a quarter of the budget (but always one frame), so that a slow receiver does not stop the others.
///
/// Frames that the transport refuses wait in a queue per target, in order. Spilled frames wait there too.
class FrameStore {
 public:
  FrameStore(Endpoint& endpoint, std::size_t budget_bytes, std::size_t spill_bytes_max);
  FrameStore(const FrameStore&) = delete;
  FrameStore& operator=(const FrameStore&) = delete;
  ~FrameStore();

  /// Claims memory for a frame of `frame_bytes` (frame_overhead included) to `target`. Refuses (empty) beyond the budget.
  [[nodiscard]] OpenFrame try_claim(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);

  /// The same in the PE's own memory, outside the budget. Throws UsageError when the spill reaches its cap.
  [[nodiscard]] OpenFrame spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left);

  /// try_claim, or else spill: never blocks.
  [[nodiscard]] OpenFrame claim_or_spill(std::size_t target, std::size_t frame_bytes, std::uint8_t hops_left) {
    const OpenFrame frame = try_claim(target, frame_bytes, hops_left);
    return frame ? frame : spill(target, frame_bytes, hops_left);
  }

  /// Posts a filled frame, or queues it behind those that wait for the same target. Returns whether it went.
  bool post(std::size_t target, const OpenFrame& frame, const std::byte* tail_end);

  /// Gives an unused frame back.
  void drop(std::size_t target, const OpenFrame& frame);

  /// Tries to post what is queued. Returns whether any went.
  bool drain();

  /// Takes back frames that receivers have released. Returns whether there were any.
  bool reclaim();

  bool queued(std::size_t target) const { return queues_[target].head != queues_[target].frames.size(); }
  bool queued() const { return !waiting_targets_.empty(); }
  std::size_t queued_frames() const { return queued_frames_; }
  bool spilling() const { return spill_bytes_ != 0; }

  std::size_t budget_bytes() const { return budget_bytes_; }
  std::size_t target_bytes_max() const { return budget_bytes_ / 4; }
  std::uint64_t spill_bytes() const { return spill_bytes_; }
  std::uint64_t spill_bytes_peak() const { return spill_bytes_peak_; }
  std::uint64_t spilled_frames() const { return spilled_frames_; }
  std::uint64_t outstanding_bytes(std::size_t target) const { return outstanding_[target]; }

 private:
  struct Queued {
    OpenFrame frame;
    const std::byte* tail_end;
  };
  struct Queue {
    std::vector<Queued> frames;
    std::size_t head = 0;
  };
  static constexpr std::size_t classes = 8;

  bool try_post(std::size_t target, const OpenFrame& frame, const std::byte* tail_end);
  bool within_budget(std::size_t target, std::size_t bytes, std::size_t hops) const;
  void account(std::size_t target, std::size_t hops, std::int64_t bytes);
  void free_spilled(const OpenFrame& frame);

  Endpoint* endpoint_;
  std::size_t budget_bytes_;
  std::size_t spill_bytes_max_;
  std::vector<std::uint64_t> outstanding_;            // bytes per target, claimed or lent
  std::array<std::uint64_t, classes> used_{};         // [h]: bytes of frames with h or more hops left
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> waiting_targets_;        // those whose queue is not empty
  std::size_t queued_frames_ = 0;
  std::uint64_t spill_bytes_ = 0, spill_bytes_peak_ = 0, spilled_frames_ = 0;
};

}  // namespace headway::am
