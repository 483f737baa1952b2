// SPDX-License-Identifier: BSD-3-Clause
/// Memory of posted receives, in which PEs also read the arrived frames.
#pragma once

#include <headway/transport/wire/wire.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/transport/frame.hpp>
#include <memory>
#include <new>
#include <vector>

namespace headway::wire {

/// Memory for one message.
struct Block {
  std::byte* memory = nullptr;
  std::size_t capacity = 0;
  std::size_t bytes = 0;      // of the message
  std::uint32_t process = 0;  // the sender
  bool complete = false;
  std::size_t place = 0;  // among all blocks

  const transport::Frame& frame() const { return *reinterpret_cast<const transport::Frame*>(memory); }
};

/// Posted blocks have one size. A filled block is lent in place. If many blocks are lent, a message of less than half a
/// block is copied to a block of its own length, so that small unread messages do not hold posted blocks.
///
///     posted --a message--> lent --given back--> free --> posted
class ReceiveMemory {
 public:
  static constexpr std::size_t lent_in_place_max = 16, free_max = 16;

  explicit ReceiveMemory(std::size_t posted_bytes) : posted_bytes_(posted_bytes) {}
  ReceiveMemory(const ReceiveMemory&) = delete;
  ReceiveMemory& operator=(const ReceiveMemory&) = delete;
  ~ReceiveMemory() {
    for (Block* block : all_) destroy(block);
  }

  /// Length of a posted block.
  std::size_t posted_bytes() const { return posted_bytes_; }

  Block* to_post() {
    if (free_.empty()) return make(posted_bytes_);
    Block* const block = free_.back();
    free_.pop_back();
    return block;
  }
  Block* of_size(std::size_t bytes) { return make(bytes); }

  /// Lends a filled posted block: the block itself, or a block with a copy.
  Block* to_lend(Block* block) {
    if (lent_in_place_ >= lent_in_place_max && block->bytes * 2 <= posted_bytes_) {
      Block* const copy = make(block->bytes);
      std::memcpy(copy->memory, block->memory, block->bytes);
      copy->bytes = block->bytes;
      copy->process = block->process;
      copy->complete = true;
      put(block);
      return copy;
    }
    ++lent_in_place_;
    return block;
  }
  void give_back(Block* block) {
    if (block->capacity == posted_bytes_) --lent_in_place_;
    put(block);
  }
  /// Frees a posted block that is not lent.
  void put(Block* block) {
    if (block->capacity == posted_bytes_ && free_.size() < free_max) {
      block->complete = false;
      return free_.push_back(block);
    }
    all_[block->place] = all_.back();
    all_[block->place]->place = block->place;
    all_.pop_back();
    bytes_ -= block->capacity;
    destroy(block);
  }

  std::size_t bytes() const { return bytes_; }
  std::size_t bytes_peak() const { return bytes_peak_; }

 private:
  static constexpr std::align_val_t alignment{HEADWAY_WIRE_LARGE_UNIT};

  Block* make(std::size_t bytes) {
    auto block = std::make_unique<Block>();
    block->capacity = base::align_up(bytes, HEADWAY_WIRE_LARGE_UNIT);
    if (block->capacity == posted_bytes_ && bytes != posted_bytes_) block->capacity += HEADWAY_WIRE_LARGE_UNIT;
    block->memory = static_cast<std::byte*>(::operator new(block->capacity, alignment));
    bytes_ += block->capacity;
    bytes_peak_ = std::max(bytes_peak_, bytes_);
    block->place = all_.size();
    all_.push_back(block.get());
    return block.release();
  }
  static void destroy(Block* block) {
    ::operator delete(block->memory, alignment);
    delete block;
  }

  std::size_t posted_bytes_;
  std::vector<Block*> free_, all_;
  std::size_t lent_in_place_ = 0, bytes_ = 0, bytes_peak_ = 0;
};

}  // namespace headway::wire
