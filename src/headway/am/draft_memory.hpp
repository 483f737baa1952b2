/// Memory in which frames are written that go past the caches, before they are copied to where they are claimed.
#pragma once

#include <cstddef>
#include <headway/transport/local/arena.hpp>
#include <memory>
#include <new>

namespace headway::am {

/// Blocks of powers of two, the one that came back last first: few are in use at a time, and those stay in the core's
/// caches. For one PE.
class DraftMemory {
 public:
  /// `bytes` is a power of two; costs only what is touched.
  explicit DraftMemory(std::size_t bytes)
      : memory_(static_cast<std::byte*>(::operator new(bytes, alignment))), blocks_(memory_.get(), bytes, 0) {}

  /// Aligned to 64. nullptr where there is no room.
  [[nodiscard]] std::byte* try_take(std::size_t bytes) { return blocks_.try_allocate(bytes, 0); }
  void give(std::byte* block) { blocks_.free(block); }

 private:
  static constexpr std::align_val_t alignment{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };

  std::unique_ptr<std::byte[], Free> memory_;
  local::BasicArena<10> blocks_;
};

}  // namespace headway::am
