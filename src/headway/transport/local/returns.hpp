/// Frames that come back to their owner: a stack in shared memory. Anybody pushes, the owner alone takes, and always all
/// of them. A pusher needs only that the topmost frame is the one that its link names, wherever that one has been since it
/// looked; and no taker can have looked at a link that another changed (no ABA).
#pragma once

#include <atomic>
#include <cstdint>

namespace headway::local {

/// `Word` is an atomic of 64 bits that holds the topmost frame's offset in the segment. A frame's `link` holds the one
/// below it, and belongs to the pusher from when it has read the frame until it has pushed it.
///
/// A template over the word, so that tests explore this very code with one of their own.
template <class Word>
class BasicReturns {
 public:
  static constexpr std::uint64_t end = 0;  // below the last frame: the segment's own header lies there

  explicit BasicReturns(Word& top) : top_(&top) {}

  bool empty() const { return top_->load(std::memory_order_relaxed) == end; }

  /// Gives the frame at `offset` back. `link` is that frame's.
  template <class Link>
  void push(Link& link, std::uint64_t offset) {
    std::uint64_t below = top_->load(std::memory_order_relaxed);
    do {
      link = below;
    } while (!top_->compare_exchange_weak(below, offset, std::memory_order_release, std::memory_order_relaxed));
  }

  /// The owner: calls take(offset), which returns the frame's link as it was, for each frame that is there.
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
