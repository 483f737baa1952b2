// SPDX-License-Identifier: BSD-3-Clause
/// Single-producer single-consumer rings of buffers in shared memory, one for each ordered pair of PEs.
///
///   ring:    | posted | released | buffer 0 | buffer 1 | ... |       a line each for the two counters
///   buffer:  | bytes, last | messages, one after the other ... |     a line, then the messages
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "messages.hpp"
#include "processes.hpp"

namespace headway::limit {

struct BufferHead {
  std::uint64_t bytes;  // of messages behind this head
  std::uint64_t last;   // of this sender in this pass
};

/// posted >= released, posted - released <= depth of the pass
struct RingHead {
  alignas(cache_line) std::atomic<std::uint64_t> posted;    // the sender's
  alignas(cache_line) std::atomic<std::uint64_t> released;  // the receiver's
};
static_assert(sizeof(RingHead) == 2 * cache_line);

class Ring {
 public:
  static constexpr std::size_t depth_min = 2, depth_usual = 8, depth_max = 32;
  static constexpr std::size_t slack = 64;  // behind the messages of a buffer, for copies in wide pieces

  static constexpr std::size_t stride(std::size_t buffer_bytes) {
    return align_up(cache_line + buffer_bytes + slack, cache_line);
  }
  static constexpr std::size_t bytes(std::size_t buffer_bytes) {
    return sizeof(RingHead) + depth_max * stride(buffer_bytes);
  }

  Ring(std::byte* memory, std::size_t buffer_bytes)
      : head_(*reinterpret_cast<RingHead*>(memory)),
        buffers_(memory + sizeof(RingHead)),
        stride_(stride(buffer_bytes)) {}

  /// Both ends, between passes: how many buffers are used from here on.
  void use(std::size_t depth) { depth_ = depth; }

  // The sender.

  /// Memory for messages, or nothing while all buffers are with the receiver.
  std::byte* try_claim() {
    if (next_ - released_seen_ >= depth_) {
      released_seen_ = head_.released.load(std::memory_order_acquire);
      if (next_ - released_seen_ >= depth_) return nullptr;
    }
    return buffer(next_) + cache_line;
  }
  /// Hands over the claimed buffer.
  void post(std::size_t bytes, bool last) {
    *reinterpret_cast<BufferHead*>(buffer(next_)) = {bytes, last};
    head_.posted.store(++next_, std::memory_order_release);
  }

  /// Between passes, when all buffers are the sender's: the first `depth`.
  void clear(std::size_t depth) { std::memset(buffers_, 0, depth * stride_); }

  // The receiver.

  /// The oldest buffer not yet released, or nothing. Its messages lie `cache_line` behind it.
  const BufferHead* peek() const {
    if (head_.posted.load(std::memory_order_acquire) == next_) return nullptr;
    return reinterpret_cast<const BufferHead*>(buffer(next_));
  }
  void release() { head_.released.store(++next_, std::memory_order_release); }

 private:
  std::byte* buffer(std::uint64_t number) const { return buffers_ + number % depth_ * stride_; }

  RingHead& head_;
  std::byte* buffers_;
  std::size_t stride_;
  std::size_t depth_ = depth_usual;
  std::uint64_t next_ = 0;  // this side's counter
  std::uint64_t released_seen_ = 0;
};

}  // namespace headway::limit
