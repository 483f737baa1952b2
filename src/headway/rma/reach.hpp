/// How a PE reaches memory of others without their doing.
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

/// Of one PE. Memory that a key names is reached by load and store, where both have it mapped (one process, or the
/// owner's Pool); by cross-memory attach (process_vm_readv and _writev), where the system lets processes of the host;
/// or not at all, and then its owner must send it.
class Reach final : public am::Extension {
 public:
  static Reach& of(Pe& pe);

  /// The key of this PE's own memory; `number` is the caller's. `copy`: its copy in the pool, if there is one. `timed`:
  /// BufferKey::is_timed().
  BufferKey key(std::span<const std::byte> memory, std::uint64_t number, std::span<const std::byte> copy = {},
                bool timed = false);

  /// FormatError unless a PE of this run has made this key.
  void check(const BufferKey& key) const;

  /// Where the memory lies in this process, or nullptr. FormatError for what lies beyond the owner's pool.
  std::byte* mapped(const BufferKey& key);

  /// Whether copy_from() and copy_to() may work, as far as is known.
  bool may_attach(const BufferKey& key) const;
  /// The same, and whether mapped() is more than nullptr, for memory of this PE and what PE `other` could do with it.
  bool may_attach_to_this(std::size_t other) const;
  /// `other` has found that it may not.
  void refused_by(std::size_t other) { refused_by_[other] = any_refused_ = true; }
  /// Whether other processes of the host may, and by settings would, attach to this one, and none is known to be refused.
  bool others_attach() const { return path_ == TransferPath::fastest && host_.count > process_.count && !any_refused_; }
  /// Of this host.
  bool is_other_process_here(std::size_t pe) const { return on_this_host(pe) && !in_this_process(pe); }
  bool is_mapped_by(std::size_t other, const std::byte* data, std::size_t bytes) const;
  /// Whether there are other processes, and they have this PE's pool mapped, or can have.
  bool others_map_pool() const;
  bool is_in_pool(const std::byte* data, std::size_t bytes) const {
    return offset_in_pool(data, bytes) != BufferKey::no_offset;
  }

  /// Copies `bytes` from `offset` on. False where the system does not let this process: nothing is known of what lies
  /// at `to` then, and may_attach() is false from now on. UsageError where the memory is gone, SystemError where its
  /// process is.
  bool copy_from(const BufferKey& key, std::uint64_t offset, std::byte* to, std::size_t bytes);
  bool copy_to(const BufferKey& key, std::uint64_t offset, const std::byte* from, std::size_t bytes);

  static std::unique_ptr<am::Extension> make(Pe& pe) { return std::make_unique<Reach>(pe); }
  explicit Reach(Pe& pe);

 private:
  enum class Attach : std::uint8_t { untried, works, refused };

  bool in_this_process(std::size_t pe) const { return process_.contains(pe); }
  bool on_this_host(std::size_t pe) const { return host_.contains(pe); }
  bool attach(const BufferKey& key);
  /// Memory of a PE's pool as this process has it, or nullptr. FormatError for what lies beyond it.
  std::byte* in_pool(std::size_t pe, std::uint64_t offset, std::uint64_t bytes);
  template <bool reads>
  bool copy(const BufferKey& key, std::uint64_t offset, std::byte* here, std::size_t bytes);
  std::uint64_t offset_in_pool(const std::byte* data, std::size_t bytes) const;

  Pe* pe_;
  mutable const Pool* pool_ = nullptr;  // this PE's, once it has been asked for
  PeRange process_, host_;              // of this PE
  TransferPath path_;
  std::uint64_t token_ = 0;  // 0: no key has been made
  std::uint32_t system_process_ = 0;  // its number in the system, once a key has been made
  std::vector<Attach> attach_;     // by PE
  std::vector<bool> refused_by_;   // likewise: those that may not attach to this one
  bool any_refused_ = false;
};

}  // namespace headway::rma
