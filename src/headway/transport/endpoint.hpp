// SPDX-License-Identifier: BSD-3-Clause
/// The contract of a transport: one Endpoint per PE moves frames to and from all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/format_error.hpp>
#include <headway/transport/frame.hpp>
#include <headway/transport/host_map.hpp>
#include <headway/transport/network_memory.hpp>
#include <headway/transport/services.hpp>
#include <headway/transport/shared_memory.hpp>
#include <limits>

namespace headway::transport {

class Observer;

/// An arrived frame with an invalid header or place. The text names sender, receiver and the invalid value.
struct InvalidFrame : FormatError {
  using FormatError::FormatError;
};

/// Costs of a frame between two PEs, in terms of LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995). Layers above
/// derive defaults from these values; estimates are good enough for that.
struct TransportCosts {
  double overhead_ns;       // o: processor time of sender and receiver together for a frame of any length
  double gap_per_byte_ns;   // G: time per byte in each direction of a PE that sends and receives steadily
  double latency_ns;        // L: from the end of the sender's work until the receiver may take the frame
  double wake_ns = 20'000;  // from the arrival of a frame until a sleeping PE runs; polling for less costs nothing
  /// Longer frames wait for their receiver's answer before they are sent.
  std::size_t eager_bytes = std::numeric_limits<std::size_t>::max();
  bool copied = false;  // frames are copied on their way: no line that the receiver reads lies in the sender's cache
};

/// Frames of one PE. States of a frame's memory and the calls that change them:
///
///     free --try_claim--> claimed --try_post--> posted --poll (receiver)--> lent --release (receiver)--> returned
///      ^                     |                                                                              |
///      +-------- drop -------+------------------------------- reclaim --------------------------------------+
///
/// Promises: a posted frame arrives exactly once; frames between two endpoints arrive in the order of their posts; a
/// refusal (nullptr, false) changes nothing. Only the endpoint's own PE thread calls it.
class Endpoint {
 public:
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;

  std::size_t id() const { return host_map_.id; }
  std::size_t size() const { return host_map_.size; }
  const HostMap& host_map() const { return host_map_; }
  SharedMemory& shared_memory() { return *shared_memory_; }
  /// nullptr if the network reads no memory.
  NetworkMemory* network_memory() { return network_memory_; }

  /// Messages of this process to those of other hosts. nullptr if there are no other hosts, or if some PE has no pool
  /// that is large enough for the users of Services. The same on all PEs.
  virtual Services* services() { return nullptr; }

  /// Claims memory for a frame of `frame_bytes`, frame_overhead included. nullptr if the PE's frame memory is spent.
  /// reclaim() returns the caller's `tag`.
  [[nodiscard]] virtual Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) = 0;

  /// True if the caller should write `claimed`, the frame of the last claim, past the caches in whole lines: its last
  /// reader runs on a remote core, so that writes of small pieces would wait for each line. Only before the first write
  /// to the frame. The endpoint measures the cost of writing such lines, and may write to the frame for that.
  virtual bool should_write_past_caches(Frame* /*claimed*/) { return false; }

  /// Bytes that a claim of `frame_bytes` takes from the budget.
  virtual std::size_t block_bytes(std::size_t frame_bytes) const = 0;

  /// Gives a claimed frame back unused.
  virtual void drop(Frame* frame) = 0;

  enum class Posted {
    refused,  // the target's queue is full; nothing has changed
    copied,   // sent by value: the memory still belongs to the caller
    lent,     // the memory belongs to the receiver until reclaim() returns it
  };

  /// Posts a frame with header and payload filled; its tail lies at [tail_end - tail_bytes, tail_end). `claimed` is
  /// true for memory of try_claim(); a frame in other memory can only go by value. The header's source is the PE that
  /// claimed the frame: this PE, or another one of its process, which may have ended its part of the run. The memory
  /// returns to that PE.
  [[nodiscard]] virtual Posted try_post(std::size_t target, Frame* frame, const std::byte* tail_end, bool claimed) = 0;

  /// The largest payload and tail together that go by value, at most by_value_bytes_most. Frames with hops left never
  /// do.
  virtual std::size_t by_value_bytes_max() const = 0;

  /// Place for a payload of up to in_place_bytes_most bytes in the memory of `target`, so that the frame needs no
  /// memory of this PE. It lies 32 bytes behind an address aligned to 64. The caller writes it at once and calls
  /// post_in_place() in any case and before any other call: `target` waits for it. nullptr if there is no place, or if
  /// the target's queue is full.
  [[nodiscard]] virtual std::byte* try_begin_in_place(std::size_t /*target*/) { return nullptr; }
  /// Posts the frame that try_begin_in_place() began. It has no hops left and no tail.
  virtual void post_in_place(std::size_t /*target*/, const FrameHeader& /*header*/) {}
  /// Permits or forbids such frames to this PE. A PE forbids them while it holds many frames that it cannot handle yet,
  /// because a sender is slowed down only by frames in its own memory.
  virtual void accept_in_place(bool /*accepts*/) {}

  /// Takes back the frames that receivers have released; calls returned(block_bytes, tag) for each. Returns their
  /// number.
  virtual std::size_t reclaim(void (*returned)(void* context, std::size_t block_bytes, std::uint64_t tag),
                              void* context) = 0;

  /// Takes the next arrived frame. Payload and tail lie one behind the other where they arrived. False if there is
  /// none. Throws InvalidFrame for a header with impossible lengths or an impossible source; checks no other field.
  [[nodiscard]] virtual bool poll(Arrival& arrival) = 0;

  /// Returns the frame's memory to its sender.
  virtual void release(const Arrival& arrival) = 0;

  /// Sleeps until a frame arrives or returns, at most `ns_max`. Returns at once if one is there.
  virtual void sleep(std::int64_t ns_max) = 0;

  /// Of an endpoint that counts or traces, or lies over one. Use observer_of().
  virtual Observer* observer() { return nullptr; }

  /// Costs between hosts if there are several, else within the host. The same on all PEs at any time.
  virtual TransportCosts costs() const = 0;
  virtual TransportCosts costs_within_host() const { return costs(); }

  /// The only clock from which the layers above decide, in nanoseconds.
  virtual std::int64_t now() const = 0;

 protected:
  /// The memory interfaces outlive the endpoint, or are parts of it; so does the memory of `host_map.host_firsts`.
  Endpoint(const HostMap& host_map, SharedMemory& shared_memory, NetworkMemory* network_memory = nullptr)
      : host_map_(host_map), shared_memory_(&shared_memory), network_memory_(network_memory) {}

 private:
  HostMap host_map_;
  SharedMemory* shared_memory_;
  NetworkMemory* network_memory_;
};

}  // namespace headway::transport
