// SPDX-License-Identifier: BSD-3-Clause
/// What one PE has done in a run, as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headway::count {

/// Of aggregators, all of the PE's together. Their own counters; peaks are sums of each aggregator's peak.
struct AggregatorCounts {
  std::uint64_t messages = 0, payload_bytes = 0;                 // sent, also to the PE itself
  std::uint64_t forwarded = 0;                                   // for other PEs, on routes of several hops
  std::uint64_t alone = 0;                                       // messages in a frame of their own
  std::uint64_t full = 0, timeout = 0, idle = 0, requested = 0;  // frames, by the reason of the post
  std::uint64_t peak_buffer_bytes = 0;
  std::uint64_t buffer_bytes = 0;  // the largest option buffer_bytes
  std::uint64_t spilled_frames = 0, spilled_bytes_peak = 0;

  void add(const AggregatorCounts& other);
};

inline constexpr std::size_t gaps = 14;
/// 1 us to 8.2 ms.
constexpr double gap_ns_of(std::size_t i) { return 1000.0 * double(std::uint64_t(1) << i); }

inline constexpr std::size_t spendings = 4;  // as Spending: program, handlers, communication, waiting

/// All of a PE. Frames are those between different PEs, control messages included. It travels in a message as its
/// bytes.
struct PeCounts {
  std::uint64_t frames_sent = 0, bytes_sent = 0;  // header, payload and tail
  std::uint64_t frames_received = 0, bytes_received = 0;
  std::uint64_t control_frames = 0;      // of frames_sent: messages of the runtime itself
  std::uint64_t messages_in_frames = 0;  // in the others; a forwarded message counts at each hop
  std::uint64_t receivers = 0;           // PEs that got frames of this PE
  std::uint64_t retries = 0;             // posts that the transport refused
  // A burst is a run of frames until the PE waits for a message of another one. Its time ends there.
  std::uint64_t bursts = 0, burst_frames_max = 0, burst_ns = 0;
  std::uint64_t gap_delay_ns[gaps] = {};    // the sum of model::gap_of_burst_ns() of all bursts, for gap_ns_of(i)
  std::uint64_t turns = 0;                  // bursts that ended so; at most the last one did not
  std::uint64_t reads = 0;                  // waits for the answer to a request
  std::uint64_t turns_of_all = 0;           // of the turns, those that wait for all messages: quiescence, an epoch
  std::uint64_t turns_of_handlers = 0;      // of the other turns, those after the first one of a wait: handlers answer
  std::uint64_t waits = 0, waiting_ns = 0;  // without anything to do, until a frame arrived
  std::uint64_t waits_of_all = 0;           // of the waits, as turns_of_all
  std::uint64_t barriers = 0;               // quiescences and collective calls
  std::uint64_t bulk = 0;                   // transfers of content that this PE has begun
  std::uint64_t run_ns = 0;                 // from the begin of the PE until all messages are handled
  std::uint64_t cpu_ns = 0;                 // processor time of its thread meanwhile; 0 in a simulation
  std::uint64_t spent_ns[spendings] = {};   // by Spending; together run_ns
  std::uint64_t hardware_errno = 0;         // of the kernel that refused the processor's counters to a run with phases
  AggregatorCounts aggregators;
};
static_assert(std::is_trivially_copyable_v<PeCounts>);

inline constexpr std::size_t phases_max = 64;  // of a PE; further ones count together
inline constexpr std::uint32_t no_parent = ~std::uint32_t(0);

/// A phase of the program in another phase, or in none. Travels as PeCounts.
struct PhaseCounts {
  char name[60] = {};
  std::uint32_t parent = no_parent;  // its index among the PE's phases
  std::uint64_t calls = 0;
  std::uint64_t ns[spendings] = {};  // by Spending, phases inside included
  std::uint64_t hardware[3] = {};    // cycles, instructions, cache misses; ~0: not counted
};
static_assert(sizeof(PhaseCounts) == 128 && std::is_trivially_copyable_v<PhaseCounts>);

}  // namespace headway::count
