#include <fmt/format.h>

#include <algorithm>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>

namespace headway {

Topology parse_topology(std::string_view text) {
  if (text == "direct") return direct();
  if (text.size() == 2 && text[0] >= '1' && text[0] <= '0' + int(dimensions_max) && (text[1] == 'd' || text[1] == 'D')) {
    return grid(unsigned(text[0] - '0'));
  }
  throw SettingError(fmt::format("topology {}: allowed are direct, 1d, 2d, ... {}d", text, dimensions_max));
}

std::string to_string(Topology topology) {
  return topology.dimensions == 0 ? "direct" : fmt::format("{}d", topology.dimensions);
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

Route::Route(std::size_t me, std::size_t pes, Topology topology) {
  const std::vector<std::size_t> extents = grid_extents(pes, topology.dimensions);
  const std::size_t levels = extents.size();
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
    for (std::size_t first = 0; first < place.size; first += place.block) {
      const std::size_t size = std::min(place.block, place.size - first);
      targets_.push_back(std::uint32_t(place.first + first + (place.index % place.block) % size));
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
