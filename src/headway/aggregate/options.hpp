/// What an aggregator may be told, and what it counts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <headway/base/settings.hpp>
#include <limits>
#include <string>
#include <string_view>

namespace headway {

/// Who has buffers for whom where processes or hosts have several PEs. ("Shared-memory-aware latency-sensitive message
/// aggregation for fine-grained communication", 2024, whose workers are our PEs.) PEs of one host are those that reach
/// one another through shared memory.
enum class Scheme : std::uint8_t {
  ww,   // each PE for PEs: the grid is one of PEs
  wps,  // each PE for processes: the grid is one of processes; who receives a frame passes it on within its process
  pp,   // each process for processes: as wps, and the PEs of a process, at most 255, fill buffers together
  whs,  // each PE for hosts: the grid is one of hosts; who receives a frame passes it on within its host
  hh,   // each host for hosts: as whs, and the PEs of a host first give theirs to the one of them that sends there
  // The same by readable names.
  pe_to_pe = ww,
  pe_to_process = wps,
  process_to_process = pp,
  pe_to_host = whs,
  host_to_host = hh,
};
constexpr bool is_of_hosts(Scheme scheme) { return scheme == Scheme::whs || scheme == Scheme::hh; }

/// The virtual grid that messages hop over; any number of PEs, primes and incomplete last rows included.
struct Topology {
  unsigned dimensions = 1;     // 0: direct, each message in a frame of its own; n: an n-dimensional grid
  Scheme scheme = Scheme::ww;  // others: the grid is one of processes or hosts, and the hop within one is the last
  bool operator==(const Topology&) const = default;
};
inline constexpr unsigned dimensions_max = 8;  // hops within a process or host included

constexpr Topology direct() { return {0}; }
constexpr Topology grid(unsigned dimensions, Scheme scheme = Scheme::ww) { return {dimensions, scheme}; }

/// Reads the text of a setting: base/topology_text.hpp lists the codes and readable names. Throws SettingError that
/// states the text and the allowed ones.
Topology parse_topology(std::string_view text);
/// With the code of the scheme.
std::string to_string(Topology topology);

/// Values that stand for "derive it", from the HEADWAY_ settings where these say it.
inline constexpr Topology derived_topology{~0u - 1};
inline constexpr std::size_t derived_bytes = ~std::size_t(0);
inline constexpr double derived_fraction = -1;
inline constexpr std::chrono::nanoseconds derived_timeout{-1};
inline constexpr std::chrono::nanoseconds no_timeout = std::chrono::nanoseconds::max();

/// Options of an aggregator; all PEs give the same. See "Aggregation (variable-size TRAM, 2020)" for the fractions.
struct AggregatorOptions {
  /// Size of a frame with all in it, 256 B to 256 MiB. What is used is at most budget / (2 * peers). Given: of every
  /// buffer. Derived: of the largest; each destination's grow and shrink with what gathers for it.
  std::size_t buffer_bytes = derived_bytes;
  /// A buffer is sent when more than this fraction of it is filled; in [0, 1]. 0: each message at once.
  double threshold = derived_fraction;
  /// A message larger than this fraction of the buffer travels by itself; in [0, 1]. For messages of variable size
  /// threshold + cutoff <= 1, and from 64 KiB on they do in any case; those of fixed size gather unless told otherwise
  /// where the largest buffer holds two.
  /// With `pp` the buffer of both fractions is the PE's own: buffer_bytes / PEs of the process, or, where that is less,
  /// 2 KiB and at most half of buffer_bytes. With `whs` and `hh` it is one of those for PEs of the same host, which are
  /// as small by the host's PEs; the others are of buffer_bytes.
  double cutoff = derived_fraction;
  /// The oldest message of a buffer waits at most this long, as of the next progress(); no_timeout: for ever.
  std::chrono::nanoseconds timeout = derived_timeout;
  /// Derived: 1d, or more dimensions where the budget's share of each buffer would be so small (below 4 KiB on one
  /// machine) that frames take longer than what is in them.
  Topology topology = derived_topology;
  /// Open buffers are sent when the PE has nothing else to do; and where each holds but one message, further messages
  /// go at once, by themselves. False: messages gather until the buffer is full, too old, or flushed.
  bool flush_when_idle = true;
  /// Messages of one pair of PEs are handled in the order they were sent, whatever their size.
  bool ordered = false;
  /// For messages to people; part of the signature that all PEs must agree on.
  std::string_view name = {};
};

/// Since the aggregator was made, on this PE.
struct AggregatorStatistics {
  std::uint64_t messages = 0;       // sent by this PE, those to itself included
  std::uint64_t handled = 0;        // for which the handler ran here
  std::uint64_t forwarded = 0;      // repacked here on their way
  std::uint64_t payload_bytes = 0;  // of the messages sent, as they lie in frames: with what aligns them
  std::uint64_t frames = 0;         // posted here, forwarding included
  std::uint64_t wire_bytes = 0;     // of those frames: header, payload, tail
  std::uint64_t alone = 0;          // messages that travelled by themselves
  /// Messages that were copied here: packed, repacked on their way (parts each), sorted, merged with those of other
  /// PEs, and put together from parts. Reading in place is no copy; spilled frames and frames past the caches are
  /// counted below.
  std::uint64_t copies = 0;
  std::uint64_t copied_bytes = 0;                                                       // of those, as payload_bytes
  std::uint64_t flush_full = 0, flush_timeout = 0, flush_idle = 0, flush_explicit = 0;  // frames by reason
  std::uint64_t frames_between_processes = 0, frames_between_hosts = 0;                 // of all frames
  std::uint64_t spilled_frames = 0;      // frames that waited outside the budget (of all aggregators of the PE)
  std::uint64_t spilled_bytes_peak = 0;  // at most this much at once (of all aggregators of the PE)
  std::uint64_t frames_past_caches = 0;  // written past the caches, but for large messages by a copy more (likewise)
  std::uint64_t peak_buffer_bytes = 0;   // of open buffers in this PE's memory, at most this much at once
  std::uint64_t peak_target_bytes = 0;   // claimed or lent for one hop, at most this much at once
  double fill_mean = 0;                  // of buffered frames when posted: bytes used over the buffer's size
};

}  // namespace headway
