/// The contract of a transport: one Endpoint per PE moves frames to and from all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/format_error.hpp>
#include <headway/transport/frame.hpp>
#include <headway/transport/services.hpp>
#include <headway/transport/shared_by_process.hpp>
#include <limits>
#include <span>
#include <vector>

namespace headway {

/// Memory of this process that others read over the network: see Endpoint::expose().
class ExposedMemory;

/// A frame that cannot be one: says from and to whom it was, and what is wrong.
struct InvalidFrame : FormatError {
  using FormatError::FormatError;
};

/// What frames between two PEs cost, in the terms of LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995). Layers
/// above derive defaults from it, for which estimates are good enough.
struct TransportCosts {
  double overhead_ns;      // o: processor time for a frame of any length, the sender's and the receiver's together
  double gap_per_byte_ns;  // G: a PE that sends and receives steadily moves a byte each way in so long
  double latency_ns;       // L: from when the sender is done with a frame until the receiver may take it
  double wake_ns = 20'000;  // until a PE that sleeps goes on when a frame comes: to look on for less loses nothing
  std::size_t eager_bytes = std::numeric_limits<std::size_t>::max();  // longer frames first ask their receiver for room
  bool copied = false;  // on their way: what is read has come by no cache of its writer's
};

/// States of a frame's memory and who may call what:
///
///     free --try_claim--> claimed --try_post--> posted --poll (receiver)--> lent --release (receiver)--> returned
///      ^                     |                                                                              |
///      +-------- drop -------+------------------------------- reclaim --------------------------------------+
///
/// Promises: a posted frame arrives exactly once; frames between two endpoints arrive in the order they were posted;
/// a refusal (nullptr, false) changes nothing. All calls are for the endpoint's own PE thread alone.
class Endpoint {
 public:
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  virtual ~Endpoint() = default;

  virtual std::size_t id() const = 0;
  virtual std::size_t size() const = 0;

  /// PEs p * k to p * k + k - 1 are those of process p, where k is this; the last process may have fewer.
  virtual std::size_t pes_per_process() const { return 1; }

  /// The first PE of each host, ascending from 0; without any all PEs are on one. Those of a host reach one another
  /// through shared memory, and others over a wire. The same on all PEs.
  virtual std::span<const std::size_t> host_firsts() const { return {}; }

  /// What this PE has in common with the others of its process; nullptr if nothing.
  virtual SharedByProcess* shared_by_process() { return nullptr; }

  /// Messages of its process to those of other hosts. nullptr where there are none, or where not every PE has a pool
  /// with room for what Services are for; the same on all PEs.
  virtual Services* services() { return nullptr; }

  /// Claims memory for a frame of `frame_bytes` in all (frame_overhead included). Refuses when the PE's frame memory is
  /// spent. `tag` is the caller's, and comes back with reclaim().
  [[nodiscard]] virtual Frame* try_claim(std::size_t frame_bytes, std::uint64_t tag) = 0;

  /// Whether `claimed`, the frame of the last claim, is better written past this processor's caches, in whole lines: one
  /// that writes to lines which another PE has read, whose processor shares no cache with it, gets them back one by one.
  /// Asked by who can do so, before anything is written there; learned from what such lines have cost. May write to it.
  virtual bool should_write_past_caches(Frame* /*claimed*/) { return false; }

  /// How much memory a claim of `frame_bytes` takes from the budget.
  virtual std::size_t block_bytes(std::size_t frame_bytes) const = 0;

  /// Gives a claimed frame back unused.
  virtual void drop(Frame* frame) = 0;

  enum class Posted {
    refused,  // the target's queue is full: nothing has changed
    copied,   // it went by value: the memory is still the caller's
    lent,     // the memory is the receiver's until it comes back with reclaim()
  };

  /// Posts a frame whose header and payload are filled; the tail lies at [tail_end - tail_bytes, tail_end).
  /// `claimed` says whether the frame is memory of try_claim(); one that is not can only go by value. The header's
  /// source is the PE that claimed it: this one, or another of its process, to which the memory comes back, and which
  /// may have ended its part of the run by then.
  [[nodiscard]] virtual Posted try_post(std::size_t target, Frame* frame, const std::byte* tail_end, bool claimed) = 0;

  /// The largest payload and tail together that go by value, at most by_value_bytes_most; only frames without hops left
  /// do.
  virtual std::size_t by_value_bytes_max() const = 0;

  /// Where the payload of a frame to `target` goes that needs no memory of this PE's: in_place_bytes_most bytes, 32 behind
  /// an address that is aligned to 64. It is written at once and posted by post_in_place(), before any other call and
  /// whatever happens: the target waits for it. nullptr where that cannot be, or the target's queue is full.
  [[nodiscard]] virtual std::byte* try_begin_in_place(std::size_t /*target*/) { return nullptr; }
  /// Posts what has been begun, which has no hops left and no tail. Who has the one has the other.
  virtual void post_in_place(std::size_t /*target*/, const FrameHeader& /*header*/) {}
  /// Whether others may begin such frames to this PE: not while it keeps many that it cannot handle yet, for those whose
  /// memory is their sender's hold that one back.
  virtual void accept_in_place(bool /*accepts*/) {}

  /// Takes back frames that receivers have released; calls returned(block_bytes, tag) for each. Returns how many.
  virtual std::size_t reclaim(void (*returned)(void* context, std::size_t block_bytes, std::uint64_t tag),
                              void* context) = 0;

  /// The next arrived frame: payload and tail lie in the memory that it came in, one behind the other; nothing else of
  /// its header has been looked at. False if there is none. Throws InvalidFrame for one that cannot be.
  [[nodiscard]] virtual bool poll(Arrival& arrival) = 0;

  /// Gives the frame's memory back to its sender.
  virtual void release(const Arrival& arrival) = 0;

  /// Sleeps until a frame arrives or comes back, or `ns_max` have passed. Returns at once when one is there already.
  virtual void sleep(std::int64_t ns_max) = 0;

  /// The same on all PEs, always; where there are several hosts, those between them, and those within one.
  virtual TransportCosts costs() const = 0;
  virtual TransportCosts costs_within_host() const { return costs(); }

  /// The only clock the layers above use for decisions, in nanoseconds.
  virtual std::int64_t now() const = 0;

  /// Memory of `pe` that programs share, zero until it is written: where it lies in this process. Empty where this PE
  /// cannot reach it by load and store; its own it always can, unless the system has none to give. Costs only what is
  /// touched. Throws SystemError.
  virtual std::span<std::byte> pool(std::size_t /*pe*/) { return {}; }

  /// Whether the network itself reads memory of `pe` for this PE, and of this PE for `pe`: the next three may work then.
  virtual bool network_reads(std::size_t /*pe*/) const { return false; }

  /// Lets others read `memory`, which stays where it is until it is withdrawn, and writes the key that they need. Slow:
  /// the system may have to pin the memory. nullptr where the network refuses it. What is never withdrawn ends with the
  /// run.
  [[nodiscard]] virtual ExposedMemory* expose(std::span<const std::byte> /*memory*/, std::vector<std::byte>& /*key*/) {
    return nullptr;
  }
  virtual void withdraw(ExposedMemory* /*exposed*/) {}

  /// Begins to copy the first `bytes` of what `pe` has exposed to `to`; `done` is called by a later poll(), when it is
  /// there. False, and nothing has changed, where the network refuses the key. Throws SystemError when the process is
  /// lost, here or in a later poll(); that the memory is still exposed is for the caller to know.
  [[nodiscard]] virtual bool read_over_network(std::size_t /*pe*/, std::span<const std::byte> /*key*/,
                                               std::byte* /*to*/, std::size_t /*bytes*/,
                                               std::function<void()> /*done*/) {
    return false;
  }

  /// A page of `pe` that every PE of its host and the supervisor can read: the layer above lays it out. Zero at first.
  virtual std::span<std::byte> board(std::size_t pe) = 0;
  /// Whether all boards lie in memory that all PEs share, so that they may tell each other something there. The same on
  /// all PEs.
  virtual bool shares_boards() const { return false; }
};

}  // namespace headway
