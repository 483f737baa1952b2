/// Memory that other PEs of its host read and write by load and store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/transport/local/arena.hpp>
#include <optional>
#include <span>

namespace headway::rma {

/// One PE's pool, half of it for what all PEs allocate together. Memory is known by how far into the pool it lies, which
/// means the same in every process.
///
///     | allocated by all PEs, at the same offsets | allocated by this PE alone |
///
/// Used by its PE alone. Takes from the system what is touched, and gives back what is freed.
class Pool final : public am::Extension {
 public:
  static Pool& of(Pe& pe);

  /// At least `bytes` bytes at a page's begin, of unknown content. Throws UsageError where there is not as much.
  [[nodiscard]] std::uint64_t allocate(std::size_t bytes) { return take(own_, bytes); }
  void free(std::uint64_t offset) { give_back(own_, offset); }

  /// The same offset on every PE. Collective, in the same order on every PE, as is free_everywhere(); neither waits for
  /// the others. `bytes` is the same everywhere.
  [[nodiscard]] std::uint64_t allocate_everywhere(std::size_t bytes) { return take(common_, bytes); }
  void free_everywhere(std::uint64_t offset) { give_back(common_, offset); }

  /// This PE's pool. UsageError where the system has none to give.
  std::span<std::byte> memory();
  /// The same, or nothing while nothing has been taken of it.
  std::span<std::byte> memory_in_use() const { return memory_; }

  static std::unique_ptr<am::Extension> make(Pe& pe) { return std::make_unique<Pool>(pe); }
  explicit Pool(Pe& pe) : pe_(&pe) {}

 private:
  using Arena = local::BasicArena<12>;

  std::uint64_t take(std::optional<Arena>& half, std::size_t bytes);
  void give_back(std::optional<Arena>& half, std::uint64_t offset);

  Pe* pe_;
  std::span<std::byte> memory_;
  std::optional<Arena> common_, own_;  // made when they are first used
};

/// Throws UsageError for an array that no memory holds.
[[noreturn]] void refuse_size(Pe& pe, std::size_t size, std::size_t element_bytes);

}  // namespace headway::rma
