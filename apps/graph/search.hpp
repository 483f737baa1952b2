// SPDX-License-Identifier: BSD-3-Clause
/// What searches of a Kronecker graph on an array of its parts have in common: their options, their graph, their roots.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <headway/headway.hpp>
#include <optional>
#include <support/application.hpp>

#include "kronecker.hpp"
#include "parts.hpp"

namespace headway::graph {

struct SearchArguments {
  KroneckerOptions graph{.scale = 16};
  std::uint64_t roots = 4, parts = 0;  // 0: by the PEs
  std::uint64_t spoil = 0;             // vertices that are changed after a search, to see the check find it
  apps::Common common;
};

inline void add_search_options(bench::CommandLine& app, SearchArguments& arguments) {
  app.add_count("--scale", "N", "2^N vertices [16]", arguments.graph.scale, 1, 30);
  app.add_count("--edge-factor", "N", "edges for each vertex [16]", arguments.graph.edge_factor, 1, 1024);
  app.add_count("--roots", "N", "searches, each from another vertex that has edges [4]", arguments.roots, 1, 1024);
  app.add_count("--parts", "N", "elements that share the vertices, a power of two [by the PEs]", arguments.parts, 1,
                1 << 20);
  app.add_count("--spoil", "N", "vertices that are changed on each PE after each search: the check must see it [0]",
                arguments.spoil, 0, 1 << 20);
  apps::add_common_options(app, arguments.common);
}

/// Of how many vertices a part is. SettingError for --parts that cannot be.
inline Layout layout_of(const Pe& pe, const SearchArguments& arguments) {
  const std::uint64_t vertices = arguments.graph.vertices();
  // Two for each PE, of which each is found by one multiplication; where PEs are no power of two more, so that all
  // have about as many.
  const std::uint64_t wanted = std::has_single_bit(pe.size()) ? 2 * pe.size() : std::bit_ceil(4 * pe.size());
  const std::uint64_t parts = arguments.parts != 0 ? arguments.parts : std::min<std::uint64_t>(wanted, vertices);
  if (!std::has_single_bit(parts) || parts > vertices) {
    throw SettingError(
        fmt::format("--parts: '{}' is not allowed; allowed is a power of two up to the vertices, {}", parts, vertices));
  }
  return {arguments.graph.scale - unsigned(std::countr_zero(parts))};
}

/// A graph's parts. A Part is an element of Index<1> that is made from a Layout and `args`, and has the methods build()
/// and, for one of its vertices, leads_elsewhere().
template <class Part>
class Parts {
 public:
  template <class... Args>
  Parts(Pe& pe, const SearchArguments& arguments, const Args&... args)
      : pe_(pe),
        arguments_(arguments),
        layout_(layout_of(pe, arguments)),
        array_(pe, {std::int32_t(arguments.graph.vertices() >> layout_.log2)},
               {.override_all = arguments.common.aggregation,
                .measure_load = arguments.common.balance != "none" && arguments.common.balance != "rotate",
                .name = "parts"},
               layout_, args...),
        candidates_(arguments.graph) {}

  Array<Part>& array() { return array_; }
  const Array<Part>& array() const { return array_; }
  const Layout& layout() const { return layout_; }

  /// Collective. Calls send(i, vertex, other) for both ends of each edge i of this PE's share, and builds the edges
  /// that the parts receive.
  template <class Send>
  void build(Send send) {
    const std::uint64_t edges = arguments_.graph.edges(), pes = pe_.size();
    const std::uint64_t begin = edges * pe_.id() / pes, end = edges * (pe_.id() + 1) / pes;
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto [from, to] = edge(arguments_.graph, i);
      send(i, from, to);
      send(i, to, from);
    }
    pe_.quiesce();
    array_.for_each_local([](Part& part) { part.build(); });
    pe_.quiesce();
  }

  /// Collective: the next vertex to search from, the same on every PE; or nothing, where there are no more.
  /// SettingError where there is not even one.
  std::optional<std::uint32_t> next_root() {
    while (const auto vertex = candidates_.next()) {
      bool leads = false;
      if (pe_.id() == 0) {
        leads = array_[layout_.part(*vertex)].template rpc<&Part::leads_elsewhere>(layout_.within(*vertex)).get();
      }
      if (!broadcast(pe_, leads, 0)) continue;
      found_any_ = true;
      return vertex;
    }
    if (!found_any_) {
      throw SettingError(fmt::format(
          "--scale: '{}' is not allowed with --edge-factor {} and HEADWAY_SEED={}: no vertex has an edge to another; "
          "allowed are more of them, or another seed",
          arguments_.graph.scale, arguments_.graph.edge_factor, arguments_.graph.seed));
    }
    return std::nullopt;
  }

  /// Collective, between phases.
  void balance_at(std::uint64_t phase) {
    const apps::Common& common = arguments_.common;
    if (common.balance == "none" || phase % common.balance_every != 0) return;
    moved_ += balance(array_, parse_balance(common.balance)).moved;
  }
  std::uint64_t moved() const { return moved_; }

 private:
  Pe& pe_;
  const SearchArguments& arguments_;
  Layout layout_;
  Array<Part> array_;
  Candidates candidates_;
  bool found_any_ = false;
  std::uint64_t moved_ = 0;
};

/// What records of searches have in common. `edges` were looked at, in both directions.
template <class Part>
void add_search(bench::Json& record, const SearchArguments& arguments, const Parts<Part>& parts, std::uint64_t roots,
                std::uint64_t edges, double seconds, std::uint64_t checksum) {
  record["scale"] = arguments.graph.scale;
  record["edge_factor"] = arguments.graph.edge_factor;
  record["roots"] = roots;
  record["parts"] = parts.array().size();
  record["teps"] = seconds > 0 ? double(edges) / 2 / seconds : 0;
  record["checksum"] = fmt::format("{:016x}", checksum);
  record["balance"] = arguments.common.balance;
  record["moved"] = parts.moved();
}

}  // namespace headway::graph
