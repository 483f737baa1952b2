/// Room that other processes of the host have mapped, for short content that lies elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <headway/am/pe.hpp>
#include <headway/base/copy_large.hpp>
#include <headway/base/size_constants.hpp>
#include <span>

namespace headway::transfer {

/// Of one PE. To read a little of another process's heap costs a call of the system; to copy it to the pool first may
/// cost less. Buffers are used in turn: lines that have left the writer's own cache are written again, and read,
/// sooner. Between them is room that nobody uses: what a processor reads ahead of need would be the next one's lines.
/// Up to 4 MiB, or 5 in pages larger than 4 KiB, and what is used of them is there; taken from the PE's Pool with the
/// first use.
class BounceBuffers {
 public:
  explicit BounceBuffers(Pe& pe);

  /// Not where nobody could read it there, or where all buffers are taken.
  bool has_free();
  /// Where a copy of `content`, of at most SizeConstants::bounce_buffer_bytes, lies until free(). Nothing where there
  /// is no room.
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
  std::deque<std::uint32_t> free_;  // the one that was used last is the last
};

}  // namespace headway::transfer
