// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/error.hpp>
#include <headway/base/topology_text.hpp>
#include <headway/model/argument.hpp>
#include <headway/model/route_model.hpp>
#include <map>

namespace headway::model {

std::vector<std::size_t> grid_extents(std::size_t pes, unsigned dimensions) {
  std::vector<std::size_t> extents(std::max(dimensions, 1u));
  std::size_t rest = pes;
  for (std::size_t level = extents.size(); level-- > 1;) {
    // the smallest extent for which a power covers the remaining units
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

namespace {

/// The part of messages between two random PEs, perhaps the same, that take a hop at each level. At a level a message
/// is in the block of its destination, on the PE with its sender's index there: any one with the same probability.
std::vector<double> parts_of_levels(std::size_t pes, const std::vector<std::size_t>& extents) {
  std::vector<double> parts;
  std::map<std::size_t, double> blocks{{pes, 1}};  // how many there are, by PEs: full ones and a few others
  std::size_t block = 1;
  for (std::size_t level = 1; level < extents.size(); ++level) block *= extents[level];
  for (std::size_t level = 0; level < extents.size(); ++level) {
    double apart = 0;  // PEs of a block, times the probability that a hop leads to another one of its parts
    std::map<std::size_t, double> next;
    for (const auto& [size, count] : blocks) {
      const std::size_t full = size / block, rest = size % block;
      const double together = double(full) * double(block) * double(block) + double(rest) * double(rest);
      apart += count * (double(size) - together / double(size));
      if (full != 0) next[block] += count * double(full);
      if (rest != 0) next[rest] += count;
    }
    parts.push_back(apart / double(pes));
    blocks = std::move(next);
    if (level + 1 < extents.size()) block /= extents[level + 1];
  }
  return parts;
}

RouteModel grid_of(std::size_t pes, unsigned dimensions) {
  const std::vector<std::size_t> extents = grid_extents(pes, dimensions);
  const std::vector<double> parts = parts_of_levels(pes, extents);
  RouteModel route;
  for (std::size_t level = 0; level < extents.size(); ++level) {
    route.levels.push_back({.next_pes = extents[level] - 1, .hops = parts[level]});
  }
  return route;
}

/// A grid of groups, processes or hosts, and a last level within them. `gathers`: a hop within the group comes first.
RouteModel grid_of_groups(std::size_t pes, unsigned dimensions, std::size_t pes_of_group, double sharing,
                          bool gathers) {
  std::vector<std::size_t> extents = grid_extents((pes + pes_of_group - 1) / pes_of_group, dimensions);
  extents.push_back(pes_of_group);
  const std::vector<double> parts = parts_of_levels(pes, extents);
  RouteModel route;
  if (gathers) {
    // to other groups, unless the PE sends for its group itself: it does so for one part in `size`
    auto pairs = [&](std::size_t size) { return size == 0 ? 0 : double(pes - size) * double(size - 1); };
    const std::size_t whole_groups = pes / pes_of_group;
    const double hops = double(whole_groups) * pairs(pes_of_group) + pairs(pes % pes_of_group);
    route.levels.push_back({.next_pes = pes_of_group - 1, .hops = hops / double(pes) / double(pes)});
  }
  for (std::size_t level = 0; level < extents.size(); ++level) {
    const bool is_last = level + 1 == extents.size();
    route.levels.push_back({.next_pes = extents[level] - 1, .hops = parts[level], .sharing = is_last ? 1 : sharing});
  }
  return route;
}

RouteModel over_all(std::string_view code, unsigned dimensions, const Placement& placement) {
  const std::size_t pes = placement.pes;
  if (code == "wps" || code == "pp") {
    const std::size_t group = placement.pes_per_process;
    if (group == 1) return grid_of(pes, dimensions);
    if (group >= pes) return grid_of(pes, 1);
    return grid_of_groups(pes, dimensions, group, code == "pp" ? double(group) : 1, false);
  }
  if (code == "whs" || code == "hh") {
    const std::size_t group = std::min(placement.pes_per_host, pes);
    if (group == 1) return grid_of(pes, dimensions);
    if (group >= pes) return grid_of(pes, 1);
    return grid_of_groups(pes, dimensions, group, code == "hh" ? double(group) : 1, code == "hh");
  }
  return grid_of(pes, dimensions);
}

}  // namespace

RouteModel route_model(std::string_view topology, const Placement& placement) {
  const std::optional<base::TopologyText> read = base::read_topology(topology);
  if (!read) {
    throw SettingError(
        fmt::format("model: topology '{}' is not allowed; allowed are {}", topology, base::topologies_allowed));
  }
  require_at_least("number of PEs", double(placement.pes), 1);
  require_at_least("PEs of a process", double(placement.pes_per_process), 1);
  require_at_least("PEs of a host", double(placement.pes_per_host), 1);
  RouteModel route = over_all(read->code, read->dimensions, placement);
  route.is_direct = read->dimensions == 0;
  if (placement.pes == 1) {
    route.levels.back().hops = 1;
    return route;
  }
  // of all pairs, to those of different PEs
  for (RouteLevel& level : route.levels) level.hops *= double(placement.pes) / double(placement.pes - 1);
  return route;
}

double mean_hops(const RouteModel& route) {
  double hops = 0;
  for (const RouteLevel& level : route.levels) hops += level.hops;
  return hops;
}

std::size_t hops_max(const RouteModel& route) {
  return std::size_t(std::ranges::count_if(route.levels, [](const RouteLevel& level) { return level.hops > 0; }));
}

std::size_t next_pes(const RouteModel& route) {
  std::size_t all = 0;
  for (const RouteLevel& level : route.levels) all += level.next_pes;
  return all;
}

RouteLoad route_load(const RouteModel& route, double messages, double bytes, const Buffer& buffer) {
  require_at_least("messages of a PE", messages, 0);
  require_positive("bytes of a message", bytes);
  RouteLoad load;
  for (const RouteLevel& level : route.levels) {
    const double sent = messages * level.hops;
    load.bytes += sent * bytes;
    if (route.is_direct) {
      load.frames += sent;
      continue;
    }
    if (sent == 0) continue;
    const double together = sent * level.sharing;  // of the PEs that share buffers
    const double buffers = std::clamp(together, 1.0, std::max(double(level.next_pes), 1.0));
    load.frames += buffers * std::ceil(together * bytes / buffers / effective_bytes(buffer)) / level.sharing;
  }
  return load;
}

double load_ns(const AlphaBeta& cost, const RouteLoad& load) {
  require_at_least("frames", load.frames, 0);
  return load.frames * message_ns(cost, 0) + message_ns({0, cost.beta_ns_per_byte}, load.bytes);
}

}  // namespace headway::model
