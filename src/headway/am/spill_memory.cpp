// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <headway/am/spill_memory.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace headway::am {
namespace {

constexpr std::size_t alignment = 64, page_bytes = 4096;

// AddressSanitizer reports accesses outside blocks in use.
void forbid([[maybe_unused]] void* at, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(at, bytes);
#endif
}
void allow([[maybe_unused]] void* at, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(at, bytes);
#endif
}

}  // namespace

// A chunk is a header followed by slots. A slot is a prefix followed by a block.
struct alignas(alignment) SpillMemory::Chunk {
  std::size_t bytes, slot_bytes, slots;
  std::size_t used = 0;     // slots [0, used) have been in use
  std::size_t live = 0;     // slots in use now
  Prefix* freed = nullptr;  // used - live slots, a list
  Chunk *previous = nullptr, *next = nullptr;

  bool has_room() const { return live < slots; }
};

struct alignas(alignment) SpillMemory::Prefix {
  Chunk* chunk;
  union {
    std::size_t bytes;  // of a block in use: requested size
    Prefix* next;       // of a free slot
  };
  std::byte* block() { return reinterpret_cast<std::byte*>(this + 1); }
};

SpillMemory::~SpillMemory() {
  auto unmap_all = [this](Chunk* first) {
    for (Chunk *chunk = first, *next; chunk != nullptr; chunk = next) {
      next = chunk->next;
      unmap(chunk);
    }
  };
  unmap_all(full_);
  for (const auto& [slot_bytes, first] : with_room_) unmap_all(first);
}

std::byte* SpillMemory::allocate(std::size_t bytes) {
  // Eight sizes between a power of two and the next.
  const std::size_t step = std::max(std::bit_floor(bytes) / 8, alignment);
  const std::size_t slot_bytes = sizeof(Prefix) + base::align_up(bytes, step);
  Chunk* chunk = with_room_[slot_bytes];
  if (chunk == nullptr) link(with_room_[slot_bytes], chunk = map_chunk(slot_bytes));

  Prefix* prefix = chunk->freed;
  if (prefix != nullptr) {
    allow(prefix, slot_bytes);
    chunk->freed = prefix->next;
  } else {
    void* slot = reinterpret_cast<std::byte*>(chunk + 1) + chunk->used++ * slot_bytes;
    allow(slot, slot_bytes);
    prefix = new (slot) Prefix;
    prefix->chunk = chunk;
  }
  prefix->bytes = bytes;
  ++chunk->live;
  if (!chunk->has_room()) {
    unlink(with_room_[slot_bytes], chunk);
    link(full_, chunk);
  }
  std::byte* block = prefix->block();
  forbid(prefix, sizeof(Prefix));
  forbid(block + bytes, slot_bytes - sizeof(Prefix) - bytes);
  return block;
}

std::size_t SpillMemory::free(std::byte* block) {
  Prefix* prefix = reinterpret_cast<Prefix*>(block) - 1;
  allow(prefix, sizeof(Prefix));
  const std::size_t bytes = prefix->bytes;
  Chunk* chunk = prefix->chunk;
  Chunk*& with_room = with_room_[chunk->slot_bytes];
  if (!chunk->has_room()) {
    unlink(full_, chunk);
    link(with_room, chunk);
  }
  prefix->next = std::exchange(chunk->freed, prefix);
  forbid(prefix, chunk->slot_bytes);
  if (--chunk->live == 0) {
    unlink(with_room, chunk);
    unmap(chunk);
  }
  return bytes;
}

SpillMemory::Chunk* SpillMemory::map_chunk(std::size_t slot_bytes) {
  const std::size_t slots = std::max<std::size_t>((chunk_bytes - sizeof(Chunk)) / slot_bytes, 1);
  const std::size_t bytes = base::align_up(sizeof(Chunk) + slots * slot_bytes, page_bytes);
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) base::throw_errno("mmap of memory for spilled frames");
  mapped_bytes_ += bytes;
  Chunk* chunk = new (at) Chunk{.bytes = bytes, .slot_bytes = slot_bytes, .slots = slots};
  forbid(chunk + 1, bytes - sizeof(Chunk));
  return chunk;
}

void SpillMemory::unmap(Chunk* chunk) {
  const std::size_t bytes = chunk->bytes;
  allow(chunk, bytes);
  munmap(chunk, bytes);
  mapped_bytes_ -= bytes;
}

void SpillMemory::link(Chunk*& first, Chunk* chunk) {
  chunk->previous = nullptr;
  chunk->next = first;
  if (first != nullptr) first->previous = chunk;
  first = chunk;
}

void SpillMemory::unlink(Chunk*& first, Chunk* chunk) {
  if (chunk->next != nullptr) chunk->next->previous = chunk->previous;
  (chunk->previous != nullptr ? chunk->previous->next : first) = chunk->next;
}

}  // namespace headway::am
