/// Memory for what a PE must keep outside its budget, apart from malloc, which keeps what a peak leaves behind.
#pragma once

#include <cstddef>
#include <map>

namespace headway::am {

/// Blocks of similar sizes, at most an eighth larger than asked for, share chunks; a chunk goes back to the system as
/// soon as its last block is freed, and no chunk is made while another of its kind has room. Large blocks are mapped
/// alone. All blocks must be freed before it ends. For one PE.
class SpillMemory {
 public:
  SpillMemory() = default;
  SpillMemory(const SpillMemory&) = delete;
  SpillMemory& operator=(const SpillMemory&) = delete;
  ~SpillMemory();

  /// A block of `bytes`, aligned to 64. Throws SystemError where the system has no more.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);

  /// Frees a block of allocate(), and returns how many bytes were asked for.
  std::size_t free(std::byte* block);

  /// What is mapped now; resident as far as it was written.
  std::size_t mapped_bytes() const { return mapped_bytes_; }

  static constexpr std::size_t chunk_bytes = std::size_t(256) << 10;

 private:
  struct Chunk;
  struct Prefix;

  Chunk* map_chunk(std::size_t slot_bytes);
  void unmap(Chunk* chunk);
  static void link(Chunk*& first, Chunk* chunk);
  static void unlink(Chunk*& first, Chunk* chunk);

  // Lists: chunks with a free slot, by its bytes, and those without.
  std::map<std::size_t, Chunk*> with_room_;
  Chunk* full_ = nullptr;
  std::size_t mapped_bytes_ = 0;
};

}  // namespace headway::am
