// SPDX-License-Identifier: BSD-3-Clause
/// Access of a PE to memory of other PEs without their help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/am/pe.hpp>
#include <headway/rma/buffer_key.hpp>
#include <memory>
#include <span>
#include <vector>

namespace headway::rma {

class Pool;

/// The access of one PE to memory that a key names: by load and store if both PEs have it mapped (one process, or the
/// owner's Pool); else by cross-memory attach (process_vm_readv and _writev) if the system permits it on this host;
/// else none, and the owner must send the content.
class Reach final : public am::Extension {
 public:
  static Reach& of(Pe& pe);

  /// The key of this PE's own memory. The caller chooses `number`. `timed`: BufferKey::is_timed().
  BufferKey key(std::span<const std::byte> memory, std::uint64_t number, bool timed = false);

  /// FormatError unless a PE of this run has made this key.
  void check(const BufferKey& key) const;

  /// The memory's address in this process, or nullptr. FormatError if it lies beyond the owner's pool.
  std::byte* mapped(const BufferKey& key);

  /// False if copy_from() and copy_to() are known not to work.
  bool may_attach(const BufferKey& key) const;
  /// The same for PE `other` and memory of this PE.
  bool may_attach_to_this(std::size_t other) const;
  /// Records that the system does not let `other` attach to this process.
  void refused_by(std::size_t other) { refused_by_[other] = true; }
  /// True for a PE of another process of this host.
  bool is_other_process_here(std::size_t pe) const { return on_this_host(pe) && !in_this_process(pe); }
  /// True if PE `other` has that memory of this PE mapped.
  bool is_mapped_by(std::size_t other, const std::byte* data, std::size_t bytes) const;
  /// True if all PEs of the run have it mapped.
  bool is_mapped_by_all(const std::byte* data, std::size_t bytes) const;
  /// True if the host has other processes, and they can map this PE's pool.
  bool others_map_pool() const;

  /// Copies `bytes` bytes from `offset` on. False if the system does not permit it: then the content at `to` is
  /// unknown, and may_attach() is false from now on. UsageError if the owner has unmapped the memory, SystemError if
  /// its process has ended.
  bool copy_from(const BufferKey& key, std::uint64_t offset, std::byte* to, std::size_t bytes);
  bool copy_to(const BufferKey& key, std::uint64_t offset, const std::byte* from, std::size_t bytes);

  static std::unique_ptr<am::Extension> make(Pe& pe) { return std::make_unique<Reach>(pe); }
  explicit Reach(Pe& pe);

 private:
  enum class Attach : std::uint8_t { untried, works, refused };

  bool in_this_process(std::size_t pe) const { return process_.contains(pe); }
  bool on_this_host(std::size_t pe) const { return host_.contains(pe); }
  bool attach(const BufferKey& key);
  /// The address of pool memory in this process, or nullptr. FormatError if it lies beyond the pool.
  std::byte* in_pool(std::size_t pe, std::uint64_t offset, std::uint64_t bytes);
  template <bool reads>
  bool copy(const BufferKey& key, std::uint64_t offset, std::byte* here, std::size_t bytes);
  std::uint64_t offset_in_pool(const std::byte* data, std::size_t bytes) const;

  Pe* pe_;
  mutable const Pool* pool_ = nullptr;  // this PE's; nullptr before its first use
  transport::PeRange process_, host_;   // of this PE
  base::TransferPath path_;
  std::uint64_t token_ = 0;           // 0: no key has been made
  std::uint32_t system_process_ = 0;  // its number in the system, once a key has been made
  std::vector<Attach> attach_;        // by PE
  std::vector<bool> refused_by_;      // by PE: the system does not let it attach to this process
};

}  // namespace headway::rma
