/// Where a message hops next, and the key it carries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/options.hpp>
#include <span>
#include <vector>

namespace headway::aggregate {

/// The first PE of each host, ascending from 0; one of them or none: all PEs are on one host.
using HostFirsts = std::span<const std::size_t>;

/// The most and the fewest PEs that a host has.
struct HostSizes {
  std::size_t most, least;
};
HostSizes host_sizes(std::size_t pes, HostFirsts hosts);

/// The routes of one PE over an n-dimensional grid of `pes` PEs, for any number.
///
/// Level 0 divides the PEs into blocks of equal size, the last one perhaps smaller; level 1 divides each block again;
/// at the last level a block is one PE. A message first hops to the block of its destination, to the PE that lies where
/// its sender lies in its own block (wrapped around in a smaller one), and then on within that block. So it takes at
/// most n hops, each in a level above the last, and needs no PE that does not exist.
///
///   2D, 7 PEs, rows of 3:     0 1 2        2 -> 4: to row 1, where 2 would be 5: 2 -> 5 -> 4
///                             3 4 5        1 -> 6: to row 2, which is short: column 1 wraps to 0: 1 -> 6
///                             6
///
/// A frame of level l carries for each message its destination's index within the receiver's block of level l + 1: the
/// key, in as few bytes as hold it. At the last level there is none.
///
/// Where the topology knows of processes, the blocks of the last level but one are processes (of consecutive PEs, the
/// last one perhaps smaller), and the levels above it a grid of these. Where it knows of hosts, these are hosts, of any
/// sizes; and with `hh` a hop within the host comes first, at a level of its own that divides nothing: to the PE of the
/// host that sends to where the message goes next, unless that is its sender.
///
///   hh, hosts of 3, 1, 2 PEs:  0 1 2 | 3 | 4 5    0 -> 4: PE 1 sends to the third host, and 5 receives: 0 -> 1 -> 5 -> 4
class Route {
 public:
  struct Hop {
    std::uint32_t slot;  // or deliver_here
    std::uint32_t key;
  };
  static constexpr std::uint32_t deliver_here = 0xffffffff;

  Route(std::size_t me, std::size_t pes, Topology topology, std::size_t pes_per_process = 1, HostFirsts hosts = {});

  unsigned levels() const { return unsigned(levels_.size()); }
  /// Whether the last level is one within processes.
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

  /// What to do with a message of a frame of `level` that carries `key`.
  const Hop& next(unsigned level, std::uint32_t key) const { return levels_[level + 1].hops[key]; }
  /// The same by key, of which there are as many.
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
  unsigned gathering_levels_ = 0;  // those before the grid's: with hh one
  std::vector<Level> levels_;
  std::vector<std::uint32_t> targets_;
  std::vector<std::uint8_t> slot_levels_;
  std::vector<std::uint32_t> first_slots_;  // by level
};

/// The extents of the grid, level 0 first; their product is at least `pes`.
std::vector<std::size_t> grid_extents(std::size_t pes, unsigned dimensions);

/// Those of a route: at most so many PEs can be next at each level. Where there is one process, or each has one PE,
/// processes make no difference; nor do hosts.
std::vector<std::size_t> route_extents(std::size_t pes, Topology topology, std::size_t pes_per_process,
                                       HostFirsts hosts = {});

/// Whether a route of that topology is one over hosts: there are several, and one of them has several PEs.
bool is_over_hosts(std::size_t pes, Topology topology, HostFirsts hosts);

/// Whether a topology can be: its dimensions are not too many.
bool is_allowed(Topology topology);

}  // namespace headway::aggregate
