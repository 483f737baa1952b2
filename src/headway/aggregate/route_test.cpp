// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/topology_text.hpp>
#include <headway/model/route_model.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace headway::aggregate {
namespace {

using model::grid_extents;

constexpr std::size_t pes_most = 130;

std::vector<Route> routes(std::size_t pes, Topology topology, std::size_t pes_per_process = 1) {
  std::vector<Route> all;
  for (std::size_t me = 0; me < pes; ++me) all.emplace_back(me, pes, topology, pes_per_process);
  return all;
}

/// Follows a message along its route. Returns an empty text, or the first error.
std::string follow(const std::vector<Route>& all, std::size_t source, std::size_t destination) {
  auto wrong = [&](const std::string& what) {
    return std::to_string(source) + " -> " + std::to_string(destination) + ": " + what;
  };
  std::size_t at = source;
  Route::Hop hop = all[at].first(destination);
  if (hop.slot == Route::deliver_here) return wrong("a message is not delivered where it is sent: oneself is a hop");
  for (int level_before = -1;;) {
    const Route& route = all[at];
    if (hop.slot >= route.slots()) return wrong("there is no such slot");
    const unsigned level = route.level(hop.slot);
    if (int(level) <= level_before) return wrong("a hop's level is not above that of the hop before");
    if (level >= route.levels()) return wrong("there is no such level");
    if (route.key_bytes(level) < 8 && hop.key >> (8 * route.key_bytes(level)) != 0) return wrong("the key is too long");
    level_before = int(level);
    at = route.target(hop.slot);
    if (at >= all.size()) return wrong("the next PE does not exist");
    if (level + 1 == route.levels()) return at == destination ? "" : wrong("it ends at another PE");
    if (hop.key >= all[at].all_next(level).size()) return wrong("the receiver does not know the key");
    hop = all[at].next(level, hop.key);
    if (hop.slot == Route::deliver_here) return at == destination ? "" : wrong("it is delivered to another PE");
  }
}

TEST(Route, every_message_arrives_by_hops_of_rising_levels) {
  for (unsigned dimensions = 0; dimensions <= dimensions_max; ++dimensions) {
    for (std::size_t pes = 1; pes <= pes_most; ++pes) {
      const std::vector<Route> all = routes(pes, grid(dimensions));
      for (const Route& route : all) ASSERT_EQ(route.levels(), std::max(dimensions, 1u));  // so n hops are enough
      for (std::size_t source = 0; source < pes; ++source) {
        for (std::size_t destination = 0; destination < pes; ++destination) {
          ASSERT_EQ(follow(all, source, destination), "") << pes << " PEs, " << dimensions << "D";
        }
      }
    }
  }
}

/// Hosts of so many PEs, in turn.
std::vector<std::size_t> firsts(std::size_t pes, const std::vector<std::size_t>& sizes) {
  std::vector<std::size_t> all;
  for (std::size_t pe = 0; pe < pes; pe += sizes[(all.size() - 1) % sizes.size()]) all.push_back(pe);
  return all;
}

const std::vector<std::vector<std::size_t>> sizes_of_hosts = {{1},    {2},       {4},       {7},          {40},
                                                              {1, 5}, {3, 1, 2}, {4, 4, 2}, {1, 1, 1, 9}, {12, 1}};

std::vector<Route> routes_of_hosts(std::size_t pes, Topology topology, const std::vector<std::size_t>& hosts) {
  std::vector<Route> all;
  for (std::size_t me = 0; me < pes; ++me) all.emplace_back(me, pes, topology, 1, hosts);
  return all;
}

std::size_t host_of(const std::vector<std::size_t>& hosts, std::size_t pe) {
  return std::size_t(std::ranges::upper_bound(hosts, pe) - hosts.begin()) - 1;
}

TEST(Route, every_message_arrives_by_hops_of_rising_levels_over_hosts_of_any_sizes) {
  for (const Topology topology :
       {grid(1, Scheme::whs), grid(2, Scheme::whs), grid(3, Scheme::whs), grid(7, Scheme::whs), grid(1, Scheme::hh),
        grid(2, Scheme::hh), grid(3, Scheme::hh), grid(6, Scheme::hh)}) {
    for (const std::vector<std::size_t>& sizes : sizes_of_hosts) {
      for (std::size_t pes = 1; pes <= 40; ++pes) {
        const std::vector<Route> all = routes_of_hosts(pes, topology, firsts(pes, sizes));
        ASSERT_LE(all[0].levels(), topology.dimensions + (topology.scheme == Scheme::hh ? 2 : 1));
        for (std::size_t source = 0; source < pes; ++source) {
          for (std::size_t destination = 0; destination < pes; ++destination) {
            ASSERT_EQ(follow(all, source, destination), "")
                << pes << " PEs, " << to_string(topology) << ", hosts of " << ::testing::PrintToString(sizes);
          }
        }
      }
    }
  }
}

/// Pairs of PEs of different hosts between which it goes.
std::vector<std::pair<std::size_t, std::size_t>> crossings(const std::vector<Route>& all,
                                                           const std::vector<std::size_t>& hosts, std::size_t source,
                                                           std::size_t destination) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  Route::Hop hop = all[source].first(destination);
  for (std::size_t at = source; hop.slot != Route::deliver_here;) {
    const unsigned level = all[at].level(hop.slot);
    const std::size_t from = std::exchange(at, all[at].target(hop.slot));
    if (host_of(hosts, from) != host_of(hosts, at)) found.emplace_back(from, at);
    EXPECT_EQ(all[at].is_between_hosts(level), host_of(hosts, from) != host_of(hosts, at));
    if (level + 1 == all[at].levels()) break;
    hop = all[at].next(level, hop.key);
  }
  return found;
}

TEST(Route, over_hosts_a_message_crosses_as_often_as_the_grid_has_dimensions_and_never_within_a_host) {
  constexpr std::size_t pes = 37;
  for (const Topology topology :
       {grid(1, Scheme::whs), grid(2, Scheme::whs), grid(1, Scheme::hh), grid(2, Scheme::hh)}) {
    for (const std::vector<std::size_t>& sizes : sizes_of_hosts) {
      const std::vector<std::size_t> hosts = firsts(pes, sizes);
      const std::vector<Route> all = routes_of_hosts(pes, topology, hosts);
      if (!all[0].is_over_hosts()) continue;
      for (std::size_t source = 0; source < pes; ++source) {
        for (std::size_t destination = 0; destination < pes; ++destination) {
          const bool stays = host_of(hosts, source) == host_of(hosts, destination);
          const std::size_t times = crossings(all, hosts, source, destination).size();
          ASSERT_LE(times, stays ? 0 : topology.dimensions) << source << " -> " << destination;
          ASSERT_EQ(times == 0, stays) << source << " -> " << destination;
        }
      }
    }
  }
}

TEST(Route, of_hosts_that_gather_one_pe_sends_to_one_pe_of_each_other_host) {
  constexpr std::size_t pes = 37;
  for (const std::vector<std::size_t>& sizes : sizes_of_hosts) {
    const std::vector<std::size_t> hosts = firsts(pes, sizes);
    const std::vector<Route> all = routes_of_hosts(pes, grid(1, Scheme::hh), hosts);
    if (!all[0].is_over_hosts()) continue;
    std::set<std::pair<std::size_t, std::size_t>> ways;
    for (std::size_t source = 0; source < pes; ++source) {
      for (std::size_t destination = 0; destination < pes; ++destination) {
        for (const auto& way : crossings(all, hosts, source, destination)) ways.insert(way);
      }
    }
    ASSERT_EQ(ways.size(), hosts.size() * (hosts.size() - 1)) << ::testing::PrintToString(sizes);
  }
}

TEST(Route, of_hosts_that_gather_pes_share_the_other_hosts) {
  const std::vector<std::size_t> hosts = firsts(16, {4});
  const std::vector<Route> all = routes_of_hosts(16, grid(1, Scheme::hh), hosts);
  std::vector<std::size_t> sends(16), receives(16);
  for (std::size_t host = 0; host < 4; ++host) {
    for (std::size_t to = 0; to < 4; ++to) {
      for (const auto& [from, at] : crossings(all, hosts, 4 * host, 4 * to)) {
        ++sends[from];
        ++receives[at];
      }
    }
  }
  EXPECT_EQ(*std::ranges::max_element(sends), 1u);
  EXPECT_EQ(*std::ranges::max_element(receives), 1u);
}

TEST(Route, hosts_make_no_difference_where_there_is_one_or_each_has_one_pe) {
  for (const unsigned dimensions : {1u, 2u, 3u}) {
    for (const Scheme scheme : {Scheme::whs, Scheme::hh}) {
      EXPECT_EQ(route_extents(13, grid(dimensions, scheme), 1, firsts(13, {1})), grid_extents(13, dimensions));
      EXPECT_EQ(route_extents(13, grid(dimensions, scheme), 1, firsts(13, {13})), grid_extents(13, 1));
      EXPECT_EQ(route_extents(13, grid(dimensions, scheme), 1, {}), grid_extents(13, 1));
    }
    EXPECT_EQ(route_extents(13, grid(dimensions), 1, firsts(13, {4})), grid_extents(13, dimensions));
  }
}

TEST(Route, every_message_arrives_by_hops_of_rising_levels_over_processes) {
  for (unsigned dimensions = 1; dimensions < dimensions_max; ++dimensions) {
    for (std::size_t pes = 1; pes <= 40; ++pes) {
      for (const std::size_t pes_per_process : {1, 2, 3, 4, 7, 16, 40}) {
        for (const Scheme scheme : {Scheme::wps, Scheme::pp}) {
          const std::vector<Route> all = routes(pes, grid(dimensions, scheme), pes_per_process);
          for (std::size_t source = 0; source < pes; ++source) {
            for (std::size_t destination = 0; destination < pes; ++destination) {
              ASSERT_EQ(follow(all, source, destination), "")
                  << pes << " PEs, " << pes_per_process << " in a process, " << dimensions << "D";
            }
          }
        }
      }
    }
  }
}

TEST(Route, over_processes_all_hops_but_the_last_lead_to_other_processes_and_the_last_one_to_none) {
  for (const unsigned dimensions : {1u, 2u, 3u}) {
    for (const std::size_t pes : {9, 12, 30, 64}) {
      for (const std::size_t pes_per_process : {2, 4, 5}) {
        const std::vector<Route> all = routes(pes, grid(dimensions, Scheme::wps), pes_per_process);
        for (std::size_t me = 0; me < pes; ++me) {
          ASSERT_EQ(all[me].levels(), dimensions + 1);
          for (std::size_t destination = 0; destination < pes; ++destination) {
            const std::uint32_t slot = all[me].first(destination).slot;
            const bool is_last = all[me].level(slot) == dimensions;
            const bool stays = all[me].target(slot) / pes_per_process == me / pes_per_process;
            ASSERT_EQ(is_last, stays) << me << " -> " << destination << " of " << pes;
          }
        }
      }
    }
  }
}

TEST(Route, pes_that_fill_buffers_together_send_them_to_the_same_pes) {
  for (const unsigned dimensions : {1u, 2u, 3u}) {
    for (const std::size_t pes : {9, 13, 64}) {
      const std::vector<Route> all = routes(pes, grid(dimensions, Scheme::pp), 4);
      for (std::size_t me = 0; me < pes; ++me) {
        const Route& first = all[me / 4 * 4];
        for (std::size_t slot = 0; slot < all[me].slots() && all[me].level(slot) < dimensions; ++slot) {
          ASSERT_EQ(all[me].target(slot), first.target(slot)) << me << " of " << pes;
        }
        for (std::size_t destination = 0; destination < pes; ++destination) {
          if (destination / 4 == me / 4) continue;
          ASSERT_EQ(all[me].first(destination).slot, first.first(destination).slot);
          ASSERT_EQ(all[me].first(destination).key, first.first(destination).key);
        }
      }
    }
  }
}

TEST(Route, processes_make_no_difference_where_there_is_one_or_each_has_one_pe) {
  for (const unsigned dimensions : {1u, 2u, 3u}) {
    EXPECT_EQ(route_extents(13, grid(dimensions, Scheme::wps), 1), grid_extents(13, dimensions));
    EXPECT_EQ(route_extents(13, grid(dimensions, Scheme::wps), 13), grid_extents(13, 1));
    EXPECT_EQ(route_extents(13, grid(dimensions), 4), grid_extents(13, dimensions));
  }
}

TEST(Route, a_pe_has_at_most_one_slot_for_each_place_of_its_rows_and_columns) {
  for (unsigned dimensions = 0; dimensions <= dimensions_max; ++dimensions) {
    for (std::size_t pes = 1; pes <= pes_most; ++pes) {
      std::size_t extents = 0;
      for (const std::size_t extent : grid_extents(pes, dimensions)) extents += extent;
      for (const Route& route : routes(pes, grid(dimensions))) {
        ASSERT_LE(route.slots(), extents) << pes << " PEs, " << dimensions << "D";
      }
    }
  }
}

TEST(Route, the_grid_holds_all_pes_and_no_side_is_longer_than_needed) {
  for (unsigned dimensions = 1; dimensions <= dimensions_max; ++dimensions) {
    for (std::size_t pes = 1; pes <= 5000; ++pes) {
      const std::vector<std::size_t> extents = grid_extents(pes, dimensions);
      ASSERT_EQ(extents.size(), dimensions);
      std::size_t product = 1;
      for (const std::size_t extent : extents) product *= extent;
      ASSERT_GE(product, pes);
      // the side of the smallest cube that holds them is long enough for each dimension
      std::size_t side = 1;
      auto cube = [&] {
        std::size_t volume = 1;
        for (unsigned d = 0; d < dimensions && volume < pes; ++d) volume *= side;
        return volume;
      };
      while (cube() < pes) ++side;
      ASSERT_LE(*std::ranges::max_element(extents), side) << pes << " PEs, " << dimensions << "D";
    }
  }
}

TEST(Route, one_dimension_goes_straight_to_every_pe_and_carries_no_key) {
  for (const std::size_t pes : {1, 2, 3, 8, 13, 130}) {
    for (std::size_t me = 0; me < pes; ++me) {
      const Route route(me, pes, grid(1));
      ASSERT_EQ(route.slots(), pes);
      EXPECT_EQ(route.key_bytes(0), 0u);
      for (std::size_t destination = 0; destination < pes; ++destination) {
        EXPECT_EQ(route.first(destination).slot, destination);
        EXPECT_EQ(route.target(destination), destination);
      }
    }
  }
}

TEST(Route, a_key_takes_the_fewest_bytes_and_the_last_level_has_none) {
  for (unsigned dimensions = 1; dimensions <= 3; ++dimensions) {
    for (const std::size_t pes : {1, 5, 16, 256, 257, 4096}) {
      const Route route(pes / 2, pes, grid(dimensions));
      const std::vector<std::size_t> extents = grid_extents(pes, dimensions);
      std::size_t block = 1;
      for (unsigned level = dimensions; level-- > 0; block *= extents[level]) {
        EXPECT_EQ(route.key_bytes(level), base::bytes_for_values(block))
            << pes << " PEs, " << dimensions << "D, " << level;
      }
    }
  }
}

TEST(Route, a_full_grid_spreads_forwarded_messages_evenly) {
  constexpr std::size_t pes = 64;
  for (const unsigned dimensions : {2u, 3u, 6u}) {
    const std::vector<Route> all = routes(pes, grid(dimensions));
    std::vector<std::size_t> passed(pes);
    for (std::size_t source = 0; source < pes; ++source) {
      for (std::size_t destination = 0; destination < pes; ++destination) {
        Route::Hop hop = all[source].first(destination);
        for (std::size_t at = source; hop.slot != Route::deliver_here;) {
          const unsigned level = all[at].level(hop.slot);
          at = all[at].target(hop.slot);
          if (at != destination) ++passed[at];
          if (level + 1 == all[at].levels()) break;
          hop = all[at].next(level, hop.key);
        }
      }
    }
    EXPECT_EQ(*std::ranges::min_element(passed), *std::ranges::max_element(passed)) << dimensions << "D";
  }
}

std::size_t hops_of(const std::vector<Route>& all, std::size_t source, std::size_t destination) {
  std::size_t hops = 0;
  Route::Hop hop = all[source].first(destination);
  for (std::size_t at = source; hop.slot != Route::deliver_here;) {
    ++hops;
    const unsigned level = all[at].level(hop.slot);
    at = all[at].target(hop.slot);
    if (level + 1 == all[at].levels()) break;
    hop = all[at].next(level, hop.key);
  }
  return hops;
}

double mean_hops_of(const std::vector<Route>& all) {
  std::size_t hops = 0;
  for (std::size_t source = 0; source < all.size(); ++source) {
    for (std::size_t destination = 0; destination < all.size(); ++destination) {
      if (source != destination || all.size() == 1) hops += hops_of(all, source, destination);
    }
  }
  return double(hops) / double(all.size()) / double(std::max<std::size_t>(all.size() - 1, 1));
}

TEST(Route, the_model_predicts_the_mean_number_of_hops) {
  // groups of 4; exact where processes, hosts and rows are full
  for (const Topology topology :
       {grid(1), grid(2), grid(3), grid(1, Scheme::wps), grid(2, Scheme::wps), grid(1, Scheme::pp), grid(2, Scheme::pp),
        grid(1, Scheme::whs), grid(2, Scheme::whs), grid(1, Scheme::hh), grid(2, Scheme::hh)}) {
    for (std::size_t pes = 1; pes <= 72; ++pes) {
      const bool is_of_hosts = topology.scheme == Scheme::whs || topology.scheme == Scheme::hh;
      const std::vector<Route> all =
          is_of_hosts ? routes_of_hosts(pes, topology, firsts(pes, {4})) : routes(pes, topology, 4);
      const model::RouteModel predicted =
          model::route_model(to_string(topology), {.pes = pes, .pes_per_process = 4, .pes_per_host = 4});
      // 8 x 8, 4 x 4 x 4, and 16 groups as 4 x 4
      const bool is_full = pes == 64;
      const double hops = mean_hops_of(all);
      ASSERT_NEAR(model::mean_hops(predicted) / hops, 1, is_full ? 1e-9 : 0.06)
          << pes << " PEs, " << to_string(topology);
      ASSERT_EQ(predicted.levels.size(), all[0].levels()) << pes << " PEs, " << to_string(topology);
    }
  }
}

TEST(Topology, its_name_is_what_is_parsed) {
  EXPECT_EQ(parse_topology("direct"), direct());
  EXPECT_EQ(to_string(direct()), "direct");
  for (unsigned dimensions = 1; dimensions <= dimensions_max; ++dimensions) {
    EXPECT_EQ(parse_topology(to_string(grid(dimensions))), grid(dimensions));
  }
  EXPECT_EQ(parse_topology("2D"), grid(2));
  EXPECT_EQ(parse_topology("ww"), grid(1));
  EXPECT_EQ(to_string(grid(1, Scheme::wps)), "wps");
  EXPECT_EQ(to_string(grid(3, Scheme::wps)), "wps-3d");
  EXPECT_EQ(to_string(grid(1, Scheme::pp)), "pp");
  EXPECT_EQ(parse_topology("wps-1d"), grid(1, Scheme::wps));
  for (unsigned dimensions = 1; dimensions < dimensions_max; ++dimensions) {
    for (const Scheme scheme : {Scheme::wps, Scheme::pp, Scheme::whs, Scheme::hh}) {
      if (!is_allowed(grid(dimensions, scheme))) continue;
      EXPECT_EQ(parse_topology(to_string(grid(dimensions, scheme))), grid(dimensions, scheme));
    }
  }
  EXPECT_EQ(to_string(grid(1, Scheme::whs)), "whs");
  EXPECT_EQ(to_string(grid(2, Scheme::hh)), "hh-2d");
}

TEST(Topology, a_scheme_has_a_readable_name_beside_its_code) {
  EXPECT_EQ(parse_topology("pe-to-pe"), grid(1, Scheme::pe_to_pe));
  EXPECT_EQ(parse_topology("pe-to-process"), grid(1, Scheme::wps));
  EXPECT_EQ(parse_topology("pe-to-process-3d"), grid(3, Scheme::pe_to_process));
  EXPECT_EQ(parse_topology("process-to-process-2d"), grid(2, Scheme::process_to_process));
  EXPECT_EQ(parse_topology("pe-to-host"), grid(1, Scheme::pe_to_host));
  EXPECT_EQ(parse_topology("host-to-host-6d"), grid(6, Scheme::host_to_host));
  for (const base::SchemeName& scheme : base::scheme_names) {
    if (scheme.readable.empty()) continue;
    EXPECT_EQ(to_string(parse_topology(scheme.readable)), scheme.code);
    EXPECT_NE(std::string(base::topologies_allowed).find(scheme.readable), std::string::npos) << scheme.readable;
  }
}

TEST(Topology, the_dimensions_of_a_text_are_those_that_an_aggregator_accepts) {
  for (const base::SchemeName& scheme : base::scheme_names) {
    const Scheme parsed = parse_topology(scheme.code).scheme;
    EXPECT_TRUE(is_allowed(grid(scheme.dimensions_max, parsed))) << scheme.code;
    EXPECT_FALSE(is_allowed(grid(scheme.dimensions_max + 1, parsed))) << scheme.code;
  }
}

TEST(Topology, other_texts_are_refused_with_the_text_and_what_is_allowed) {
  for (const char* text : {"",
                           "0d",
                           "9d",
                           "d",
                           "2",
                           "2dd",
                           "12d",
                           "-1d",
                           "Direct ",
                           "grid",
                           "wps-",
                           "wps2d",
                           "wps-8d",
                           "wps-0d",
                           "wps-2",
                           "ww-2d",
                           "pps",
                           "whs-8d",
                           "hh-7d",
                           "h",
                           "pe-to-pe-2d",
                           "pe-to-process-8d",
                           "host-to-host-7d",
                           "process",
                           "pe-to-host2d"}) {
    try {
      (void)parse_topology(text);
      ADD_FAILURE() << "taken: " << text;
    } catch (const SettingError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("direct, 1d"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace headway::aggregate
