// SPDX-License-Identifier: BSD-3-Clause
/// Memory that other processes of the host have mapped, for copies of short content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <headway/am/pe.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/size_constants.hpp>
#include <span>

namespace headway::transfer {

/// The bounce buffers of one PE. A read of another process's heap costs a system call; a copy to the pool may cost
/// less. Buffers are used in turn, because a line that has left the writer's own cache is written and read sooner.
/// Unused memory separates them, so that hardware prefetch does not fetch lines of the next buffer. They take up to 5
/// MiB of the PE's Pool, from the first use on.
class BounceBuffers {
 public:
  explicit BounceBuffers(Pe& pe);

  /// False if all are in use, or no other process has mapped the pool.
  bool has_free();
  /// Copies `content`, at most SizeConstants::bounce_buffer_bytes, to a free buffer and returns the copy, which lives
  /// until free(). Empty if none is free.
  std::span<const std::byte> put(std::span<const std::byte> content, LargeCopy copy);
  void free(const std::byte* buffer) {
    free_.push_back(std::uint32_t(std::size_t(buffer - memory_) / sizes_->bounce_buffer_stride));
  }

 private:
  void begin();

  Pe* pe_;
  const SizeConstants* sizes_;
  bool begun_ = false;
  std::byte* memory_ = nullptr;
  std::deque<std::uint32_t> free_;  // the most recently used one is last
};

}  // namespace headway::transfer
