// SPDX-License-Identifier: BSD-3-Clause
/// The messages that a PE sends: where they lie, and their numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/headway.hpp>
#include <headway/rma/pool.hpp>
#include <message/buffers.hpp>
#include <message/message.hpp>
#include <new>
#include <span>

namespace headway::bench {

/// One PE's, filled once. Used by its PE alone; in the pool others may read it.
class Sources {
 public:
  Sources(Pe& pe, std::size_t bytes, bool fresh, bool in_pool)
      : pe_(&pe), bytes_(bytes), in_pool_(in_pool), layout_(layout_of_buffers(bytes, fresh)) {
    if (in_pool_) {
      offset_ = rma::Pool::of(pe).allocate(layout_.bytes());
      memory_ = rma::Pool::of(pe).memory().data() + offset_;
    } else {
      memory_ = static_cast<std::byte*>(::operator new(layout_.bytes(), alignment));
    }
    const std::span<std::byte> first(memory_, bytes);
    fill_pattern(first, pe.id());
    for (std::size_t i = 1; i < layout_.count; ++i) std::memcpy(memory_ + layout_.offset(i), memory_, bytes);
  }
  ~Sources() {
    if (in_pool_)
      rma::Pool::of(*pe_).free(offset_);
    else
      ::operator delete(memory_, alignment);
  }
  Sources(const Sources&) = delete;
  Sources& operator=(const Sources&) = delete;

  /// Message `index`: the memory that it has, with its number at both ends. Nothing else of it is written.
  std::span<const std::uint64_t> message(std::uint64_t index) {
    std::byte* const begin = memory_ + layout_.offset(index);
    stamp(begin, bytes_, index);
    return {reinterpret_cast<const std::uint64_t*>(begin), bytes_ / sizeof(std::uint64_t)};
  }

  /// How many differ in where they lie.
  std::size_t count() const { return layout_.count; }

 private:
  static constexpr std::align_val_t alignment{4096};
  Pe* pe_;
  std::size_t bytes_;
  bool in_pool_;
  BufferLayout layout_;
  std::byte* memory_ = nullptr;
  std::uint64_t offset_ = 0;  // in the pool
};

}  // namespace headway::bench
