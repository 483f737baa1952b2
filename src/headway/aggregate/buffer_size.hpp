// SPDX-License-Identifier: BSD-3-Clause
/// The size of a slot's next buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>

namespace headway::aggregate {

/// Bytes of a buffer with frame_overhead; least <= first <= most. Equal values: sizes do not adapt.
struct SizeLimits {
  std::size_t least = 0, first = 0, most = 0;
};

/// Adapts to the use of a slot's buffers: it doubles after a full one, and halves after several in a row of which less
/// than a quarter was used. Their content fits the smaller size too, so no frames are added. Called when a buffer is
/// opened or posted, never on the fast path.
class BufferSize {
 public:
  std::size_t next(const SizeLimits& limits) const { return bytes_ == 0 ? limits.first : bytes_; }

  /// The next message needs a buffer of so many bytes.
  void hold(const SizeLimits& limits, std::size_t bytes) {
    if (next(limits) < bytes) set(std::min(std::max(2 * next(limits), bytes), limits.most));
  }

  /// `used`: its header, payload and tail.
  void posted(const SizeLimits& limits, am::FlushReason reason, std::size_t used) {
    const std::size_t bytes = next(limits);
    // a PE without memory posts buffers as full that are not
    if (reason == am::FlushReason::full && used > bytes / 2) {
      set(std::min(2 * bytes, limits.most));
    } else if (used >= bytes / 4) {
      sparse_in_a_row_ = 0;
    } else if (++sparse_in_a_row_ == sparse_to_shrink) {
      set(std::max(bytes / 2, limits.least));
    }
  }

 private:
  static constexpr std::uint32_t sparse_to_shrink = 4;

  void set(std::size_t bytes) {
    bytes_ = std::uint32_t(bytes);
    sparse_in_a_row_ = 0;
  }

  std::uint32_t bytes_ = 0;  // 0: the first size
  std::uint32_t sparse_in_a_row_ = 0;
};

}  // namespace headway::aggregate
