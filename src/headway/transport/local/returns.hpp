// SPDX-License-Identifier: BSD-3-Clause
/// Frames that return to their owner: a stack in shared memory. Any PE pushes. Only the owner takes, always all frames.
/// A pusher needs only that the top is the frame in its link, wherever that frame has been since; and no taker reads a
/// link that another PE may change (no ABA).
#pragma once

#include <atomic>
#include <cstdint>

namespace headway::local {

/// `Word` is an atomic of 64 bits with the offset of the top frame in the segment. A frame's `link` is the offset of
/// the frame below it. The link belongs to the receiver until it has pushed the frame.
///
/// `Word` is a parameter, so that tests explore this code with an atomic of their own.
template <class Word>
class BasicReturns {
 public:
  static constexpr std::uint64_t end = 0;  // below the last frame: the segment's own header lies there

  explicit BasicReturns(Word& top) : top_(&top) {}

  bool empty() const { return top_->load(std::memory_order_relaxed) == end; }

  /// Returns the frame at `offset`, with link `link`, to its owner.
  template <class Link>
  void push(Link& link, std::uint64_t offset) {
    std::uint64_t below = top_->load(std::memory_order_relaxed);
    do {
      link = below;
    } while (!top_->compare_exchange_weak(below, offset, std::memory_order_release, std::memory_order_relaxed));
  }

  /// Called by the owner: calls take(offset) for each frame. take() returns the frame's link, read before any change.
  template <class Take>
  void take_all(Take take) {
    if (empty()) return;
    // acquire: the receivers' reads of these frames are over
    for (std::uint64_t at = top_->exchange(end, std::memory_order_acquire); at != end;) at = take(at);
  }

 private:
  Word* top_;
};

using Returns = BasicReturns<std::atomic<std::uint64_t>>;

}  // namespace headway::local
