// SPDX-License-Identifier: BSD-3-Clause
/// The next hop of a message, and its key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/options.hpp>
#include <span>
#include <vector>

namespace headway::aggregate {

/// The first PE of each host, ascending from 0; one of them or none: all PEs are on one host.
using HostFirsts = std::span<const std::size_t>;

/// The largest and the smallest number of PEs of a host.
struct HostSizes {
  std::size_t most, least;
};
HostSizes host_sizes(std::size_t pes, HostFirsts hosts);

/// The routes of one PE over an n-dimensional grid of `pes` PEs, for any number.
///
/// Level 0 divides the PEs into blocks of equal size, the last one perhaps smaller; level 1 divides each block again;
/// at the last level a block is one PE. A message first hops to the block of its destination, to the PE with the index
/// that its sender has in its own block (modulo a smaller block), and then within that block. So it takes at most n
/// hops of rising levels, and needs no PE that does not exist.
///
///   2D, 7 PEs, rows of 3:     0 1 2        2 -> 4: to row 1, where 2 would be 5: 2 -> 5 -> 4
///                             3 4 5        1 -> 6: to row 2, which is short: column 1 wraps to 0: 1 -> 6
///                             6
///
/// A frame of level l has a key for each message: the destination's index within the receiver's block of level l + 1,
/// in the fewest bytes. The last level has no keys.
///
/// With a scheme of processes, the blocks before the last level are processes (of consecutive PEs, the last one perhaps
/// smaller), and the levels above are a grid of processes. With a scheme of hosts they are hosts, of any sizes. `hh`
/// adds a first level for a hop within the host: to the PE that sends to the next host of the message, unless that is
/// the sender itself.
///
///   hh, hosts of 3, 1, 2 PEs:  0 1 2 | 3 | 4 5    0 -> 4: PE 1 sends to the third host, and 5 receives: 0 -> 1 -> 5 ->
///   4
class Route {
 public:
  struct Hop {
    std::uint32_t slot;  // or deliver_here
    std::uint32_t key;
  };
  static constexpr std::uint32_t deliver_here = 0xffffffff;

  Route(std::size_t me, std::size_t pes, Topology topology, std::size_t pes_per_process = 1, HostFirsts hosts = {});

  unsigned levels() const { return unsigned(levels_.size()); }
  /// Whether hops of the last level stay within processes.
  bool is_over_processes() const { return over_ == Over::processes; }
  bool is_over_hosts() const { return over_ == Over::hosts; }
  /// Whether hops of a level may lead to other hosts, on a route over hosts.
  bool is_between_hosts(unsigned level) const { return level >= gathering_levels_ && level + 1 < levels(); }
  std::size_t slots() const { return targets_.size(); }
  std::size_t target(std::size_t slot) const { return targets_[slot]; }
  unsigned level(std::size_t slot) const { return slot_levels_[slot]; }
  unsigned key_bytes(unsigned level) const { return levels_[level].key_bytes; }

  /// The first hop to a destination in [0, pes).
  const Hop& first(std::size_t destination) const { return levels_[0].hops[destination]; }

  /// The next hop of a message with `key` in a frame of `level`.
  const Hop& next(unsigned level, std::uint32_t key) const { return levels_[level + 1].hops[key]; }
  /// The next hops by key; the size is the number of valid keys.
  std::span<const Hop> all_next(unsigned level) const { return levels_[level + 1].hops; }

 private:
  struct Level {
    unsigned key_bytes = 0;
    std::vector<Hop> hops;  // by the destination's index in this PE's block of the level
  };
  enum class Over { pes, processes, hosts };
  struct Map;
  std::vector<Hop> hops_of(const Map& map, unsigned level) const;
  void add_slot(std::size_t target, unsigned level);

  Over over_ = Over::pes;
  unsigned gathering_levels_ = 0;  // levels before the grid: 1 with hh
  std::vector<Level> levels_;
  std::vector<std::uint32_t> targets_;
  std::vector<std::uint8_t> slot_levels_;
  std::vector<std::uint32_t> first_slots_;  // by level
};

/// The extents of a route: the most next PEs at each level. Schemes of processes or hosts have no effect if there is
/// one, or if each has one PE.
std::vector<std::size_t> route_extents(std::size_t pes, Topology topology, std::size_t pes_per_process,
                                       HostFirsts hosts = {});

/// Whether a route of that topology is over hosts: there are several, and one of them has several PEs.
bool is_over_hosts(std::size_t pes, Topology topology, HostFirsts hosts);

/// Whether a topology is valid: it has not too many dimensions.
bool is_allowed(Topology topology);

}  // namespace headway::aggregate
