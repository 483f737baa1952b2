// SPDX-License-Identifier: BSD-3-Clause
/// Hops and frames of routes over grids of PEs, processes and hosts, without a table for each PE.
#pragma once

#include <cstddef>
#include <headway/model/aggregation.hpp>
#include <headway/model/alpha_beta.hpp>
#include <string_view>
#include <vector>

namespace headway::model {

/// The extents of an n-dimensional grid of `pes` PEs (or processes, or hosts), level 0 first: their product is at least
/// `pes`, and each is of order pes^(1/n) ("TRAM", 2014). 0 dimensions count as 1.
std::vector<std::size_t> grid_extents(std::size_t pes, unsigned dimensions);

/// Where PEs are. All processes have the same number of PEs, and all hosts; only the last one may have fewer.
struct Placement {
  std::size_t pes = 1;              // 1 or more
  std::size_t pes_per_process = 1;  // 1 or more
  std::size_t pes_per_host = 1;     // 1 or more
};

/// One hop of a route.
struct RouteLevel {
  std::size_t next_pes = 0;  // the most PEs to which a PE sends at this level
  double hops = 0;           // part of the messages that take a hop at this level
  double sharing = 1;        // PEs that fill one buffer for each next PE together
};

/// A route of a topology. Each other PE is the destination of as many messages. With 1 PE the destination is the PE
/// itself.
///
/// `hops` is exact where all rows of a grid are full. Elsewhere it is within 6 % of the library's routes, which wrap in
/// short rows (compared up to 72 PEs). With hh and several dimensions, `sharing` of the levels after the first is an
/// upper bound.
struct RouteModel {
  bool is_direct = false;          // each message in a frame of its own
  std::vector<RouteLevel> levels;  // at least one
};

/// `topology`: direct, 1d to 8d, ww, or a scheme of processes (wps, pp) or hosts (whs, hh), also with dimensions, as in
/// wps-2d: the names of the library's options. SettingError for others and for a placement with a 0.
///
/// Sources: "TRAM", 2014 (grids); "shared-memory-aware aggregation", 2024 (WW, WPs, PP); docs/decisions/0021 (hosts).
RouteModel route_model(std::string_view topology, const Placement& placement);

/// Hops of a message on average: the sum over levels. "TRAM", 2014: near n (1 - P^(-1/n)) for a grid of n dimensions.
double mean_hops(const RouteModel& route);
/// The most hops of a message.
std::size_t hops_max(const RouteModel& route);
/// The next PEs of a PE at all levels: of order n P^(1/n) ("Aggregation (variable-size TRAM, 2020)").
std::size_t next_pes(const RouteModel& route);

/// What one PE sends, its share of forwarded messages included.
struct RouteLoad {
  double frames = 0;
  double bytes = 0;
};
/// The load of each PE if each sends `messages` of `bytes` evenly to all others, and buffers are posted when they are
/// full and at the end. Each of the next PEs gets the same number of messages, so a level with k buffers takes
/// k ceil(bytes of one / (b f_t)) frames. With direct, each message is a frame and the buffer has no effect.
RouteLoad route_load(const RouteModel& route, double messages, double bytes, const Buffer& buffer);

/// frames alpha + bytes beta, in ns: what communication costs a PE ("Aggregation (variable-size TRAM, 2020)").
double load_ns(const AlphaBeta& cost, const RouteLoad& load);

}  // namespace headway::model
