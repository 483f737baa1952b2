// SPDX-License-Identifier: BSD-3-Clause
/// Options and statistics of an aggregator.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <headway/base/settings.hpp>
#include <limits>
#include <string>
#include <string_view>

namespace headway {

/// The unit of the grid, and the PEs that share buffers. ("Shared-memory-aware latency-sensitive message aggregation
/// for fine-grained communication", 2024; its workers are our PEs.) A host is the PEs that reach one another through
/// shared memory.
enum class Scheme : std::uint8_t {
  ww,   // a grid of PEs; each PE fills a buffer for each next PE
  wps,  // a grid of processes; each PE fills a buffer for each process, and the receiver passes messages on within it
  pp,   // as wps, and the PEs of a process (at most 255) fill its buffers together
  whs,  // a grid of hosts; each PE fills a buffer for each host, and the receiver passes messages on within its host
  hh,   // as whs, and the PEs of a host first pass messages for another host to one PE of their own host
  // The same by readable names.
  pe_to_pe = ww,
  pe_to_process = wps,
  process_to_process = pp,
  pe_to_host = whs,
  host_to_host = hh,
};

namespace aggregate {

constexpr bool is_of_hosts(Scheme scheme) { return scheme == Scheme::whs || scheme == Scheme::hh; }

}  // namespace aggregate

/// The virtual grid over which messages hop, for any number of PEs.
struct Topology {
  unsigned dimensions = 1;     // 0: direct, each message in a frame of its own
  Scheme scheme = Scheme::ww;  // of processes or hosts: the hop within one is the last
  bool operator==(const Topology&) const = default;
};

namespace aggregate {

inline constexpr unsigned dimensions_max = 8;  // with the hop within a process or host

}  // namespace aggregate

constexpr Topology direct() { return {0}; }
constexpr Topology grid(unsigned dimensions, Scheme scheme = Scheme::ww) { return {dimensions, scheme}; }

/// Reads the text of a setting: base/topology_text.hpp lists the codes and readable names. Throws SettingError that
/// states the text and the allowed ones.
Topology parse_topology(std::string_view text);
/// With the code of the scheme.
std::string to_string(Topology topology);

/// These values ask for the HEADWAY_ setting or, without one, for the derived value.
inline constexpr Topology derived_topology{~0u - 1};
inline constexpr std::size_t derived_bytes = ~std::size_t(0);
inline constexpr double derived_fraction = -1;
inline constexpr std::chrono::nanoseconds derived_timeout{-1};
inline constexpr std::chrono::nanoseconds no_timeout = std::chrono::nanoseconds::max();

/// Options of an aggregator; all PEs give the same values. "Aggregation (variable-size TRAM, 2020)" explains the
/// fractions.
struct AggregatorOptions {
  /// Size of a frame with its header, 256 B to 256 MiB; at most budget / (2 * peers). A given value is the size of
  /// every buffer. A derived one is the largest size: the buffers of each destination grow and shrink with their use.
  std::size_t buffer_bytes = derived_bytes;
  /// The runtime posts a buffer when more than this fraction of it is filled; in [0, 1]. 0: each message at once.
  double threshold = derived_fraction;
  /// A message larger than this fraction of the buffer is sent alone; in [0, 1]. For messages of variable size
  /// threshold
  /// + cutoff <= 1, and those of at least 64 KiB are always sent alone. Derived, messages of fixed size gather if the
  /// largest buffer holds two.
  /// With `pp` both fractions are of the PE's own buffer, which has buffer_bytes / PEs of the process, at least 2 KiB
  /// and at most half of buffer_bytes. With `whs` and `hh` they are of a buffer for a PE of the same host. The size of
  /// that buffer follows from the PEs of a host in the same way; buffers for other hosts have buffer_bytes.
  double cutoff = derived_fraction;
  /// Longest wait of a buffer's oldest message; tested at progress(). no_timeout: unlimited.
  std::chrono::nanoseconds timeout = derived_timeout;
  /// Derived: 1d, or more dimensions if the budget leaves each buffer so little (below 4 KiB on one machine) that a
  /// frame costs more than its bytes.
  Topology topology = derived_topology;
  /// The runtime posts open buffers when the PE is idle. If they hold only one message each, it sends further messages
  /// alone, at once. False: messages gather until the buffer is full, too old, or flushed.
  bool flush_when_idle = true;
  /// Messages of one pair of PEs are handled in the order of their sends, at any size.
  bool ordered = false;
  /// Appears in reports and errors; the same on all PEs.
  std::string_view name = {};
};

/// Counts of this PE since it made the aggregator.
struct AggregatorStatistics {
  std::uint64_t messages = 0;       // sent by this PE, also to itself
  std::uint64_t handled = 0;        // by handlers on this PE
  std::uint64_t forwarded = 0;      // repacked on this PE
  std::uint64_t payload_bytes = 0;  // of the messages sent, with their alignment in frames
  std::uint64_t frames = 0;         // posted by this PE, also to forward messages
  std::uint64_t wire_bytes = 0;     // of those frames: header, payload, tail
  std::uint64_t alone = 0;          // messages sent alone
  /// Messages that this PE copied: to pack, to forward (each part), to merge with those of other PEs, and to reassemble
  /// parts. Copies of spilled frames and of frames past the caches are counted below.
  std::uint64_t copies = 0;
  std::uint64_t copied_bytes = 0;                                                       // of these, as payload_bytes
  std::uint64_t flush_full = 0, flush_timeout = 0, flush_idle = 0, flush_explicit = 0;  // frames by reason
  std::uint64_t frames_between_processes = 0, frames_between_hosts = 0;                 // of all frames
  std::uint64_t spilled_frames = 0;      // frames outside the budget, of all aggregators of the PE
  std::uint64_t spilled_bytes_peak = 0;  // the same, largest sum at one time
  std::uint64_t frames_past_caches = 0;  // written past the caches, of all aggregators of the PE
  std::uint64_t peak_buffer_bytes = 0;   // of open buffers in this PE's memory, largest sum at one time
  std::uint64_t peak_target_bytes = 0;   // claimed or lent for one next hop, largest sum at one time
  double fill_mean = 0;                  // of buffered frames when posted: used bytes / buffer size
};

}  // namespace headway
