// SPDX-License-Identifier: BSD-3-Clause
/// Memory for frames outside a PE's budget. Unlike malloc, it returns to the system after a peak.
#pragma once

#include <cstddef>
#include <map>

namespace headway::am {

/// Blocks of similar sizes share chunks; a block is at most an eighth larger than requested. A chunk is unmapped as
/// soon as its last block is freed, and no chunk is mapped while another of its size has room. Large blocks have a
/// mapping each. All blocks must be freed before it is destroyed. Used by one PE's thread.
class SpillMemory {
 public:
  SpillMemory() = default;
  SpillMemory(const SpillMemory&) = delete;
  SpillMemory& operator=(const SpillMemory&) = delete;
  ~SpillMemory();

  /// A block of `bytes`, aligned to 64. Throws SystemError if the system has no memory.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);

  /// Frees a block of allocate(). Returns the size that was requested.
  std::size_t free(std::byte* block);

  /// Bytes mapped now. Only written pages are resident.
  std::size_t mapped_bytes() const { return mapped_bytes_; }

  static constexpr std::size_t chunk_bytes = std::size_t(256) << 10;

 private:
  struct Chunk;
  struct Prefix;

  Chunk* map_chunk(std::size_t slot_bytes);
  void unmap(Chunk* chunk);
  static void link(Chunk*& first, Chunk* chunk);
  static void unlink(Chunk*& first, Chunk* chunk);

  // Lists of chunks: with a free slot, by slot size, and full ones.
  std::map<std::size_t, Chunk*> with_room_;
  Chunk* full_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace headway::am
