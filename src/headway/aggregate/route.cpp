// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/topology_text.hpp>
#include <headway/model/route_model.hpp>

namespace headway {

namespace {

constexpr std::pair<std::string_view, Scheme> node_aware[] = {
    {"wps", Scheme::wps}, {"pp", Scheme::pp}, {"whs", Scheme::whs}, {"hh", Scheme::hh}};

}  // namespace

Topology parse_topology(std::string_view text) {
  const std::optional<base::TopologyText> read = base::read_topology(text);
  if (!read)
    throw SettingError(fmt::format("topology '{}' is not allowed; allowed are {}", text, base::topologies_allowed));
  const auto* const named = std::ranges::find(node_aware, read->code, [](const auto& pair) { return pair.first; });
  return grid(read->dimensions, named == std::end(node_aware) ? Scheme::ww : named->second);
}

std::string to_string(Topology topology) {
  if (topology.scheme == Scheme::ww) {
    return topology.dimensions == 0 ? "direct" : fmt::format("{}d", topology.dimensions);
  }
  const auto* const named =
      std::ranges::find(node_aware, topology.scheme, [](const auto& pair) { return pair.second; });
  return topology.dimensions == 1 ? std::string(named->first)
                                  : fmt::format("{}-{}d", named->first, topology.dimensions);
}

}  // namespace headway

namespace headway::aggregate {

using model::grid_extents;

HostSizes host_sizes(std::size_t pes, HostFirsts hosts) {
  if (hosts.size() < 2) return {pes, pes};
  HostSizes sizes{0, pes};
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const std::size_t size = (host + 1 == hosts.size() ? pes : hosts[host + 1]) - hosts[host];
    sizes = {std::max(sizes.most, size), std::min(sizes.least, size)};
  }
  return sizes;
}

std::vector<std::size_t> route_extents(std::size_t pes, Topology topology, std::size_t pes_per_process,
                                       HostFirsts hosts) {
  if (is_of_hosts(topology.scheme)) {
    const std::size_t most = host_sizes(pes, hosts).most;
    if (most == 1) return grid_extents(pes, topology.dimensions);
    if (most == pes) return {pes};
    std::vector<std::size_t> extents = grid_extents(hosts.size(), topology.dimensions);
    if (topology.scheme == Scheme::hh) extents.insert(extents.begin(), most);
    extents.push_back(most);
    return extents;
  }
  if (topology.scheme == Scheme::ww || pes_per_process == 1) return grid_extents(pes, topology.dimensions);
  const std::size_t processes = (pes + pes_per_process - 1) / pes_per_process;
  if (processes == 1) return {pes};
  std::vector<std::size_t> extents = grid_extents(processes, topology.dimensions);
  extents.push_back(pes_per_process);
  return extents;
}

bool is_over_hosts(std::size_t pes, Topology topology, HostFirsts hosts) {
  const std::size_t most = host_sizes(pes, hosts).most;
  return is_of_hosts(topology.scheme) && most > 1 && most < pes;
}

bool is_allowed(Topology topology) {
  if (topology.scheme == Scheme::ww) return topology.dimensions <= dimensions_max;
  return topology.dimensions > 0 && topology.dimensions + (topology.scheme == Scheme::hh ? 2 : 1) <= dimensions_max;
}

namespace {

/// Blocks of consecutive PEs.
struct Blocks {
  std::vector<std::size_t> firsts;    // ascending, and then the number of PEs
  std::vector<std::uint32_t> number;  // of each PE's block
  std::size_t pes_most = 0;

  explicit Blocks(std::vector<std::size_t> all) : firsts(std::move(all)), number(firsts.back()) {
    for (std::size_t block = 0; block + 1 < firsts.size(); ++block) {
      std::fill(number.begin() + std::ptrdiff_t(firsts[block]), number.begin() + std::ptrdiff_t(firsts[block + 1]),
                std::uint32_t(block));
      pes_most = std::max(pes_most, size(block));
    }
  }
  std::size_t size(std::size_t block) const { return firsts[block + 1] - firsts[block]; }
  std::size_t offset(std::size_t pe) const { return pe - firsts[number[pe]]; }
  bool are_together(std::size_t a, std::size_t b) const { return number[a] == number[b]; }
};

/// Blocks of so many units, the last one perhaps smaller: units are hosts, or PEs if there are no hosts.
Blocks blocks_of(std::size_t units_in_one, std::size_t pes, HostFirsts hosts) {
  std::vector<std::size_t> firsts;
  const std::size_t units = hosts.empty() ? pes : hosts.size();
  for (std::size_t unit = 0; unit < units; unit += units_in_one) firsts.push_back(hosts.empty() ? unit : hosts[unit]);
  firsts.push_back(pes);
  return Blocks(std::move(firsts));
}

}  // namespace

/// The blocks into which each level divides those of the level before, and this PE's block.
struct Route::Map {
  std::size_t me, pes, pes_per_process;
  Topology topology;
  Over over;
  std::vector<Blocks> levels;

  void divide(const std::vector<std::size_t>& extents, unsigned gathering_levels, HostFirsts hosts);
  /// This PE's block of the level before.
  std::size_t first(unsigned level) const {
    return level == 0 ? 0 : levels[level - 1].firsts[levels[level - 1].number[me]];
  }
  std::size_t end(unsigned level) const {
    return level == 0 ? pes : levels[level - 1].firsts[levels[level - 1].number[me] + 1];
  }
  const Blocks& hosts() const { return levels[levels.size() - 2]; }
  std::size_t target(unsigned level, std::size_t block) const;
  std::size_t sender(unsigned level, std::size_t block) const;
};

void Route::Map::divide(const std::vector<std::size_t>& extents, unsigned gathering_levels, HostFirsts hosts) {
  std::size_t units = 1;  // in a block
  for (std::size_t level = extents.size() - (hosts.empty() ? 0 : 1); level-- > gathering_levels;) {
    levels.insert(levels.begin(), blocks_of(units, pes, hosts));
    units *= extents[level];
  }
  if (gathering_levels != 0) levels.insert(levels.begin(), Blocks({0, pes}));
  if (!hosts.empty()) levels.push_back(blocks_of(1, pes, {}));
}

/// The PE of a block to which this PE sends at that level.
std::size_t Route::Map::target(unsigned level, std::size_t block) const {
  const Blocks& blocks = levels[level];
  const bool is_last = level + 1 == levels.size();
  if (over == Over::hosts && !is_last) {
    // The host with this one's index in its own block, modulo a smaller block; and its PE with this one's index. With
    // hh the receiving PEs differ by sending host, and are rather not those that send to other hosts.
    const std::size_t mine = hosts().number[me], mine_at = hosts().number[blocks.firsts[blocks.number[me]]];
    const std::size_t there = hosts().number[blocks.firsts[block]];
    const std::size_t count = hosts().number[blocks.firsts[block + 1] - 1] + 1 - there;
    const std::size_t host = there + (mine - mine_at) % count, size = hosts().size(host);
    const std::size_t at = topology.scheme == Scheme::hh ? size - 1 - mine % size : hosts().offset(me) % size;
    return hosts().firsts[host] + at;
  }
  std::size_t offset = blocks.offset(me);
  if (over == Over::processes && topology.scheme == Scheme::pp && !is_last) {
    // with pp the PEs of a process send to the same PE
    offset += me / pes_per_process % pes_per_process - me % pes_per_process;
  }
  return blocks.firsts[block] + offset % blocks.size(block);
}

/// The PE of this host that sends to that block for all: the other blocks of all levels are assigned round robin.
std::size_t Route::Map::sender(unsigned level, std::size_t block) const {
  std::size_t turn = 0;
  for (unsigned l = 1; l < level; ++l) turn += levels[l].number[end(l) - 1] - levels[l].number[first(l)];
  turn += block - levels[level].number[first(level)] - (block > levels[level].number[me] ? 1 : 0);
  const std::size_t host = hosts().number[me];
  return hosts().firsts[host] + turn % hosts().size(host);
}

Route::Route(std::size_t me, std::size_t pes, Topology topology, std::size_t pes_per_process, HostFirsts hosts) {
  const std::vector<std::size_t> extents = route_extents(pes, topology, pes_per_process, hosts);
  const auto levels = unsigned(extents.size());
  if (topology.scheme != Scheme::ww && levels > topology.dimensions) {
    over_ = is_of_hosts(topology.scheme) ? Over::hosts : Over::processes;
  }
  gathering_levels_ = over_ == Over::hosts && topology.scheme == Scheme::hh ? 1 : 0;
  Map map{me, pes, pes_per_process, topology, over_, {}};
  map.divide(extents, gathering_levels_, over_ == Over::hosts ? hosts : HostFirsts());

  levels_.resize(levels);
  for (unsigned level = 0; level < levels; ++level) {
    const Blocks& blocks = map.levels[level];
    levels_[level].key_bytes = base::bytes_for_values(blocks.pes_most);
    first_slots_.push_back(std::uint32_t(slots()));
    if (level < gathering_levels_) {
      const std::size_t host = map.hosts().number[me];
      for (std::size_t pe = map.hosts().firsts[host]; pe < map.hosts().firsts[host + 1]; ++pe) add_slot(pe, level);
      continue;
    }
    for (std::size_t block = blocks.number[map.first(level)]; block <= blocks.number[map.end(level) - 1]; ++block) {
      add_slot(map.target(level, block), level);
    }
  }
  for (unsigned level = 0; level < levels; ++level) levels_[level].hops = hops_of(map, level);
}

void Route::add_slot(std::size_t target, unsigned level) {
  targets_.push_back(std::uint32_t(target));
  slot_levels_.push_back(std::uint8_t(level));
}

/// The hops by the destination's index in this PE's block of the level before.
std::vector<Route::Hop> Route::hops_of(const Map& map, unsigned level) const {
  const std::size_t first = map.first(level), end = map.end(level), me = map.me;
  std::vector<Hop> hops(end - first);
  for (std::size_t destination = first; destination < end; ++destination) {
    unsigned l = level;
    // no hop is needed at levels where the destination is in this PE's own block; at the last level this PE is a hop
    while (l + 1 < levels() && map.levels[l].are_together(destination, me)) ++l;
    const Blocks& blocks = map.levels[l];
    const std::size_t block = blocks.number[destination];
    Hop& hop = hops[destination - first];
    hop = {first_slots_[l] + std::uint32_t(block - blocks.number[map.first(l)]),
           std::uint32_t(blocks.offset(destination))};
    if (level >= gathering_levels_ || l + 1 == levels()) continue;
    const std::size_t sender = map.sender(l, block);
    if (sender == me) continue;
    hop = {first_slots_[level] + std::uint32_t(map.hosts().offset(sender)), std::uint32_t(destination)};
  }
  // an arrived message for this PE is delivered, not sent again
  if (level > 0) hops[me - first].slot = deliver_here;
  return hops;
}

}  // namespace headway::aggregate
