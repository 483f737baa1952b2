#include <fmt/format.h>

#include <algorithm>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>

namespace headway {

namespace {

constexpr std::pair<std::string_view, Scheme> node_aware[] = {
    {"wps", Scheme::wps}, {"wsp", Scheme::wsp}, {"pp", Scheme::pp}};

/// "2d" is 2. 0 for what is none.
unsigned parse_dimensions(std::string_view text) {
  const bool good = text.size() == 2 && text[0] >= '1' && text[0] <= '9' && (text[1] == 'd' || text[1] == 'D');
  return good ? unsigned(text[0] - '0') : 0;
}

}  // namespace

Topology parse_topology(std::string_view text) {
  if (text == "direct") return direct();
  if (text == "ww") return grid(1);
  Topology topology = grid(parse_dimensions(text));
  for (const auto& [name, scheme] : node_aware) {
    if (text == name) topology = grid(1, scheme);
    if (text.starts_with(name) && text.substr(name.size()).starts_with('-')) {
      topology = grid(parse_dimensions(text.substr(name.size() + 1)), scheme);
    }
  }
  if (topology.dimensions != 0 && aggregate::is_allowed(topology)) return topology;
  throw SettingError(
      fmt::format("topology {}: allowed are direct, 1d, 2d, ... {}d, ww, wps, wps-2d, ... wps-{}d, wsp, ..., pp, ...",
                  text, dimensions_max, dimensions_max - 1));
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

std::vector<std::size_t> grid_extents(std::size_t pes, unsigned dimensions) {
  std::vector<std::size_t> extents(std::max(dimensions, 1u));
  std::size_t rest = pes;
  for (std::size_t level = extents.size(); level-- > 1;) {
    // the smallest extent whose power covers what is left
    auto covers = [&](std::size_t extent) {
      std::size_t product = 1;
      for (std::size_t i = 0; i <= level && product < rest; ++i) product *= extent;
      return product >= rest;
    };
    std::size_t extent = 1;
    while (!covers(extent)) ++extent;
    extents[level] = extent;
    rest = (rest + extent - 1) / extent;
  }
  extents[0] = rest;
  return extents;
}

std::vector<std::size_t> route_extents(std::size_t pes, Topology topology, std::size_t pes_per_process) {
  if (topology.scheme == Scheme::ww || pes_per_process == 1) return grid_extents(pes, topology.dimensions);
  const std::size_t processes = (pes + pes_per_process - 1) / pes_per_process;
  if (processes == 1) return {pes};
  std::vector<std::size_t> extents = grid_extents(processes, topology.dimensions);
  extents.push_back(pes_per_process);
  return extents;
}

bool is_allowed(Topology topology) {
  if (topology.scheme == Scheme::ww) return topology.dimensions <= dimensions_max;
  return topology.dimensions > 0 && topology.dimensions < dimensions_max;
}

Route::Route(std::size_t me, std::size_t pes, Topology topology, std::size_t pes_per_process) {
  const std::vector<std::size_t> extents = route_extents(pes, topology, pes_per_process);
  const std::size_t levels = extents.size();
  over_processes_ = topology.scheme != Scheme::ww && levels > topology.dimensions;
  levels_.resize(levels);

  struct Place {
    std::size_t first, size, index;  // this PE's block of the level: its first PE, its PEs, this PE's index in it
    std::size_t block;               // PEs of a block of the next level
    std::size_t slot;                // the level's first slot
  };
  std::vector<Place> places;
  Place place{0, pes, me, pes, 0};
  for (std::size_t level = 0; level < levels; ++level) {
    place.block = (level == 0 ? [&] {
      std::size_t product = 1;
      for (std::size_t l = 1; l < levels; ++l) product *= extents[l];
      return product;
    }() : place.block / extents[level]);
    place.slot = targets_.size();
    places.push_back(place);
    // where PEs of a process send together, they do so to the same PE
    const bool together = over_processes_ && topology.scheme == Scheme::pp && level + 1 < levels;
    const std::size_t index =
        together ? place.index - me % pes_per_process + me / pes_per_process % pes_per_process : place.index;
    for (std::size_t first = 0; first < place.size; first += place.block) {
      const std::size_t size = std::min(place.block, place.size - first);
      targets_.push_back(std::uint32_t(place.first + first + (index % place.block) % size));
      slot_levels_.push_back(std::uint8_t(level));
    }
    levels_[level].key_bytes = bytes_for_values(place.block);
    const std::size_t mine = place.index / place.block;
    place.first += mine * place.block;
    place.size = std::min(place.block, place.size - mine * place.block);
    place.index %= place.block;
  }

  for (std::size_t level = 0; level < levels; ++level) {
    levels_[level].hops.resize(places[level].size);
    for (std::size_t index = 0; index < places[level].size; ++index) {
      std::size_t l = level, rest = index;
      // levels at which the destination lies in this PE's own block need no hop; at the last one oneself is a hop
      while (l + 1 < levels && rest / places[l].block == places[l].index / places[l].block) rest %= places[l++].block;
      levels_[level].hops[index] = {std::uint32_t(places[l].slot + rest / places[l].block),
                                    std::uint32_t(rest % places[l].block)};
    }
    // a message that arrived for this PE is delivered, not sent to itself
    if (level > 0) levels_[level].hops[places[level].index].slot = deliver_here;
  }
}

}  // namespace headway::aggregate
