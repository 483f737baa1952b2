// SPDX-License-Identifier: BSD-3-Clause
/// Exchanges with a partner of the same host by load and store, without messages.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/am/pe.hpp>
#include <headway/halo/index_list.hpp>
#include <memory>
#include <span>
#include <vector>

namespace headway::halo {

/// Written by the sender, in the receiver's pool. A sender is at most one generation ahead of its receiver.
struct alignas(64) SenderLine {
  std::array<std::atomic<std::uint64_t>, 2> sent;  // by generation modulo 2: twice the generation, plus 1 if staged
};

/// Written by the receiver, in the sender's pool.
struct alignas(64) ReceiverLine {
  std::atomic<std::uint64_t> accepts;   // 1: the sender may write into the receiver's arrays
  std::atomic<std::uint64_t> ready;     // the generation for which it may write there now
  std::atomic<std::uint64_t> consumed;  // the last generation that the receiver has unpacked from a staging buffer
  std::atomic<std::uint64_t> notify;  // the generation that the receiver waits for: its sender sends a control message
};

/// An array of the receiver, as an offset in its pool. In the same process the array may lie outside of the pool.
struct FieldPlace {
  std::uint64_t offset, stride;
};

/// A PE sends these offsets in its own pool to a partner at set-up.
struct HostPlaces {
  std::uint64_t is_mapped;      // 0: elements travel in frames, and nothing else is set
  std::uint64_t sender_line;    // where the partner writes as sender
  std::uint64_t receiver_line;  // where the partner writes as receiver
  std::uint64_t fields;         // FieldPlace of each array
  std::uint64_t staging;        // two buffers for the elements of the partner
};

/// The content of a HostBlock.
struct HostSizes {
  std::size_t receives = 0, fields = 0;
  /// By partner to which this PE sends: the bytes of one generation; 0 for partners of other hosts.
  std::span<const std::uint64_t> staging_bytes;
  std::uint64_t generation = 0;  // the last one that has ended
};

/// The memory of one exchange in the PE's own pool:
///
///     | lines, set 0 | lines, set 1 | places of the fields | staging buffers |
///
/// A rebuilt exchange uses the other set of lines, because partners may still write to the present one.
class HostBlock {
 public:
  HostBlock(Pe& pe, const HostSizes& sizes);

  /// Other lines, as new ones, and other places of the staging buffers, which partners may still read. Returns false,
  /// and changes nothing, if the memory does not suffice.
  bool renew(const HostSizes& sizes);

  /// The bytes from the first staging buffer of a partner to the second.
  static std::uint64_t staging_step(std::uint64_t bytes);

  std::uint64_t offset() const { return offset_; }
  SenderLine& sender_line(std::size_t receive) const { return at<SenderLine>(lines_at())[receive]; }
  ReceiverLine& receiver_line(std::size_t send) const { return at<ReceiverLine>(lines_at())[receives_ + send]; }
  FieldPlace* fields() const { return at<FieldPlace>(fields_at_); }
  std::byte* staging(std::size_t send) const { return base_ + staging_at_[send]; }
  std::uint64_t offset_of(const void* address) const {
    return offset_ + std::uint64_t(static_cast<const std::byte*>(address) - base_);
  }

 private:
  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }
  std::uint64_t lines_at() const { return set_ * lines_ * sizeof(SenderLine); }
  void lay_out(const HostSizes& sizes);

  std::uint64_t offset_ = 0, fields_at_ = 0, bytes_ = 0;
  std::size_t lines_ = 0, fields_ = 0;  // room: lines of a set, and fields
  std::size_t set_ = 0, receives_ = 0;
  std::vector<std::uint64_t> staging_at_;
  std::byte* base_ = nullptr;
};
static_assert(sizeof(SenderLine) == sizeof(ReceiverLine));

/// Whether a partner runs on a remote core: then each line that it has read costs a writer tens of nanoseconds.
class Distance {
 public:
  /// Whether the caller should measure the next write, which uses the caches.
  bool is_due() { return writes_++ % writes_per_look == 0; }
  void learn(std::uint64_t bytes, std::int64_t ns) { is_remote_ = std::uint64_t(ns) * 64 > remote_ns_per_line * bytes; }
  bool is_remote() const { return is_remote_; }

 private:
  static constexpr std::uint32_t writes_per_look = 32;
  static constexpr std::uint64_t remote_ns_per_line = 8;

  std::uint32_t writes_ = 0;
  bool is_remote_ = false;
};

/// A partner of this host to which the PE sends; unused for other partners.
struct HostReceiver {
  const ReceiverLine* state = nullptr;  // in this PE's pool
  SenderLine* line = nullptr;           // in the partner's pool
  const FieldPlace* places = nullptr;   // of the partner
  std::byte* pool = nullptr;            // of the partner
  std::byte* staging = nullptr;         // in this PE's pool: two buffers
  std::uint64_t staging_step = 0;       // from the first to the second
  const IndexList* into = nullptr;      // the partner's list, in the plan or in `told`
  std::shared_ptr<IndexList> told;      // the list, if the plan does not know it
  Distance* distance = nullptr;         // of this partner, in all exchanges

  bool is_used() const { return line != nullptr; }
  bool accepts() const { return state->accepts.load(std::memory_order_relaxed) != 0; }
  bool is_ready(std::uint64_t generation) const { return state->ready.load(std::memory_order_acquire) >= generation; }
  /// Whether the staging buffer of this generation is free.
  bool may_stage(std::uint64_t generation) const;
  std::byte* buffer(std::uint64_t generation) const { return staging + (generation % 2) * staging_step; }
  /// The partner's array `field`, with elements of `bytes` bytes.
  FieldView view(std::size_t field, std::size_t bytes) const {
    return {pool + places[field].offset, bytes, places[field].stride};
  }
  /// After the elements are written. Returns whether the partner wants a control message.
  [[nodiscard]] bool publish(std::uint64_t generation, bool is_staged) const;
};

/// A partner of this host from which the PE receives; unused for other partners.
struct HostSender {
  enum class Sent { not_yet, in_place, staged };

  const SenderLine* line = nullptr;    // in this PE's pool
  ReceiverLine* state = nullptr;       // in the partner's pool
  const std::byte* staging = nullptr;  // in the partner's pool: two buffers
  std::uint64_t staging_step = 0;      // from the first to the second

  bool is_used() const { return line != nullptr; }
  Sent look(std::uint64_t generation) const;
  const std::byte* buffer(std::uint64_t generation) const { return staging + (generation % 2) * staging_step; }
  void release(std::uint64_t generation) const { state->consumed.store(generation, std::memory_order_release); }
  /// The caller looks again after this call: the partner may have sent before.
  void ask_for_notice(std::uint64_t generation) const;
};

/// Whether PE `other` is another PE of this host, and each of the two has mapped the pool of the other. Both find the
/// same.
bool shares_pools(Pe& pe, std::size_t other);

}  // namespace headway::halo
