// SPDX-License-Identifier: BSD-3-Clause
/// Memory of staging buffers, in which a PE fills frames for remote cores before it copies them past the caches.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <headway/transport/local/arena.hpp>
#include <optional>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace headway::am {

/// Blocks of powers of two. The block that came back last is taken first: so the few blocks in use at a time stay in
/// the core's caches. A caller that gets no block works without one. For one PE.
class StagingMemory {
  using Blocks = local::BasicArena<10>;

 public:
  /// `bytes` is a power of two. Only pages that are touched take memory. With less than 1 KiB, or when the system has
  /// no addresses left, there is no room.
  explicit StagingMemory(std::size_t bytes) : bytes_(bytes) {
    if (bytes < std::size_t(1) << Blocks::order_min) return;
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return;
    at_ = static_cast<std::byte*>(at);
    blocks_.emplace(at_, bytes, 0);
    forbid(at_, bytes);
  }
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;
  ~StagingMemory() {
    if (at_ == nullptr) return;
    allow(at_, bytes_);
    munmap(at_, bytes_);
  }

  /// Aligned to 64. nullptr where there is no room.
  [[nodiscard]] std::byte* try_take(std::size_t bytes) {
    if (at_ == nullptr || taken_bytes_ + block_bytes(bytes) > bytes_) return nullptr;
    std::byte* const block = blocks_->try_allocate(bytes + guard_bytes, 0);
    if (block == nullptr) return nullptr;
    taken_bytes_ += blocks_->block_bytes(block);
    allow(block, bytes);
    return block;
  }
  void give(std::byte* block) {
    const std::size_t bytes = blocks_->block_bytes(block);
    taken_bytes_ -= bytes;
    forbid(block, bytes);
    blocks_->free(block);
  }

 private:
  static std::size_t block_bytes(std::size_t bytes) { return std::size_t(1) << Blocks::order_for(bytes + guard_bytes); }

  // Memory outside all blocks must not be touched. AddressSanitizer checks this, with some guard bytes behind each
  // block.
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t guard_bytes = 64;
  static void forbid(std::byte* at, std::size_t bytes) { __asan_poison_memory_region(at, bytes); }
  static void allow(std::byte* at, std::size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
  static constexpr std::size_t guard_bytes = 0;
  static void forbid(std::byte*, std::size_t) {}
  static void allow(std::byte*, std::size_t) {}
#endif

  std::size_t bytes_, taken_bytes_ = 0;
  std::byte* at_ = nullptr;
  std::optional<Blocks> blocks_;
};

}  // namespace headway::am
