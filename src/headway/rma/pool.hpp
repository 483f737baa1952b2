// SPDX-License-Identifier: BSD-3-Clause
/// Memory of a PE that other PEs of its host read and write by load and store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/transport/local/arena.hpp>
#include <optional>
#include <span>

namespace headway::rma {

/// One PE's pool. Half of it is for common allocations of all PEs. Memory is named by its offset in the pool, which is
/// the same in every process.
///
///     | allocated by all PEs, at the same offsets | allocated by this PE alone |
///
/// Only its PE calls it. Pages take memory when they are touched; freed blocks return to the system.
class Pool final : public am::Extension {
 public:
  static Pool& of(Pe& pe);

  /// Allocates at least `bytes` bytes with unknown content, at the begin of a page. Returns the offset. UsageError if
  /// the pool has not enough memory.
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes) { return take(own_, bytes); }
  void free(std::uint64_t offset) { give_back(own_, offset); }

  /// Allocates at the same offset on every PE. Collective, with equal `bytes`, in the same order on every PE, like
  /// free_everywhere(). Neither waits for other PEs.
  [[nodiscard]] std::uint64_t allocate_everywhere(std::size_t bytes) { return take(common_, bytes); }
  void free_everywhere(std::uint64_t offset) { give_back(common_, offset); }

  /// This PE's pool. UsageError if the system provides no pools.
  std::span<std::byte> memory();
  /// The same; empty before the first allocation.
  std::span<std::byte> memory_in_use() const { return memory_; }

  static std::unique_ptr<am::Extension> make(Pe& pe) { return std::make_unique<Pool>(pe); }
  explicit Pool(Pe& pe) : pe_(&pe) {}

 private:
  using Arena = local::BasicArena<12>;

  std::uint64_t take(std::optional<Arena>& half, std::size_t bytes);
  void give_back(std::optional<Arena>& half, std::uint64_t offset);

  Pe* pe_;
  std::span<std::byte> memory_;
  std::optional<Arena> common_, own_;  // made at the first use
};

/// Throws UsageError for an array that is larger than the address space.
[[noreturn]] void refuse_size(Pe& pe, std::size_t size, std::size_t element_bytes);

}  // namespace headway::rma
