// SPDX-License-Identifier: BSD-3-Clause
/// Single-source shortest paths of Graph500 on an array of elements, each of which has a block of vertices: bucket by
/// bucket of distances, a message for each edge that is looked along.
#include <algorithm>
#include <array>
#include <cstdint>
#include <graph/search.hpp>
#include <headway/headway.hpp>
#include <optional>
#include <string>
#include <support/application.hpp>
#include <vector>

#include "part.hpp"
#include "serial.hpp"

namespace headway::sssp {
namespace {

constexpr unsigned serial_scale_max = 14;

struct Arguments : graph::SearchArguments {
  double delta = 0;       // 0: by the edges
  double bucketed = 0.1;  // a fraction of all vertices
  std::string spoil_what = "parent";
  bool alone = true;  // compare with one processor
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  static const std::array<std::string, 3> spoils = {"parent", "distance", "cycle"};
  bench::CommandLine app("Graph500's single-source shortest paths on Headway's objects; validated.", "headway-sssp");
  graph::add_search_options(app, arguments);
  app.add_choice("--spoil-what", "NAME",
                 "what --spoil changes: parent, distance, or cycle, of vertices as far as their parents [parent]",
                 arguments.spoil_what, spoils);
  app.add_number("--delta", "D", "width of a bucket of distances [0.2 over the edge factor]", arguments.delta, 1e-4,
                 1e3);
  app.add_number("--bucketed", "FRACTION",
                 "when so much of all vertices has been taken out of buckets, all others are at once [0.1]",
                 arguments.bucketed, 0, 1);
  app.add_count("--zeros", "N", "of N edges one weighs nothing [0: by chance alone]", arguments.graph.zeros, 0,
                1 << 30);
  app.add_flag("--no-serial", "do not compare with one processor, as is done up to scale 14",
               [&] { arguments.alone = false; });
  return app.parse(argc, argv);
}

/// Of all searches.
struct Found {
  std::uint64_t reached = 0, edges = 0, relaxed = 0, rounds = 0, checksum = 0, errors = 0;
};

class Search {
 public:
  Search(Pe& pe, const Arguments& arguments)
      : pe_(pe), arguments_(arguments), parts_(pe, arguments, float(arguments.delta)) {
    Array<Part>& array = parts_.array();
    const graph::Layout layout = parts_.layout();
    parts_.build([&](std::uint64_t i, std::uint32_t vertex, std::uint32_t other) {
      const float weight = graph::weight(arguments_.graph, i);
      array[layout.part(vertex)].send<&Part::add_edge>(layout.within(vertex), other, weight);
    });
  }

  graph::Parts<Part>& parts() { return parts_; }

  /// Returns the seconds that it took.
  double search(std::uint32_t root, Found& found) {
    Array<Part>& array = parts_.array();
    const graph::Layout layout = parts_.layout();
    array.for_each_local([](Part& part) { part.reset(); });
    pe_.quiesce();
    const std::int64_t begin = pe_.engine().now();
    if (pe_.id() == 0) array[layout.part(root)].send<&Part::visit>(layout.within(root), 0.f, root);
    for (std::uint64_t phase = 0;; ++phase) {
      const Waiting waiting = who_waits();
      if (waiting.lowest == Part::no_bucket) break;
      parts_.balance_at(phase);
      if (double(waiting.taken) >= arguments_.bucketed * double(arguments_.graph.vertices())) {
        array.for_each_local([&](Part& part) { found.relaxed += part.relax_all(); });
        found.rounds += pe_.id() == 0;
        continue;
      }
      do {
        array.for_each_local([&](Part& part) { found.relaxed += part.relax_light(waiting.lowest); });
        found.rounds += pe_.id() == 0;
      } while (who_waits().lowest == waiting.lowest);
      array.for_each_local([&](Part& part) { found.relaxed += part.relax_heavy(); });
    }
    return bench::max_over_pes(pe_, double(pe_.engine().now() - begin) * 1e-9);
  }

  void validate(std::uint32_t root, Found& found) {
    Array<Part>& array = parts_.array();
    spoil(root);
    array.for_each_local([&](Part& part) { part.check(root); });
    pe_.quiesce();
    std::uint64_t level = 0;
    array.for_each_local([&](Part& part) { level += part.level_children(); });
    if (bench::sum_over_pes(pe_, level) != 0) {
      array.for_each_local([&](Part& part) { part.lift(); });
      pe_.quiesce();
      std::uint64_t grounded = 0;
      do {
        grounded = 0;
        array.for_each_local([&](Part& part) { grounded += part.ground_children(); });
        pe_.quiesce();
      } while (bench::sum_over_pes(pe_, grounded) != 0);
    }
    array.for_each_local([&](Part& part) {
      part.end_check();
      part.for_each_reached([&](std::uint32_t vertex, float distance, std::uint64_t degree) {
        ++found.reached;
        found.edges += degree;
        found.checksum += checksum_of(vertex, distance);
      });
    });
  }
  /// Collective: this PE's part of `found` becomes everybody's.
  Found sum(Found found) {
    found.errors = 0;
    parts_.array().for_each_local([&](const Part& part) { found.errors += part.errors(); });
    return allreduce(pe_, found, [](const Found& a, const Found& b) {
      return Found{a.reached + b.reached, a.edges + b.edges,       a.relaxed + b.relaxed,
                   a.rounds + b.rounds,   a.checksum + b.checksum, a.errors + b.errors};
    });
  }

  AggregatorStatistics statistics() const { return parts_.array().statistics<&Part::visit>(); }
  const AggregatorOptions& options() const { return parts_.array().options<&Part::visit>(); }

 private:
  struct Waiting {
    std::uint32_t lowest;  // the nearest bucket in which a vertex waits
    std::uint64_t taken;   // vertices, out of any
  };
  /// Collective: when all messages have been handled.
  Waiting who_waits() {
    pe_.quiesce();
    Waiting waiting{Part::no_bucket, 0};
    parts_.array().for_each_local([&](Part& part) {
      waiting.lowest = std::min(waiting.lowest, part.lowest());
      waiting.taken += part.taken();
    });
    return allreduce(pe_, waiting, [](const Waiting& a, const Waiting& b) {
      return Waiting{std::min(a.lowest, b.lowest), a.taken + b.taken};
    });
  }
  void spoil(std::uint32_t root) {
    for (std::uint64_t i = 0; i < arguments_.spoil; ++i) {
      bool spoilt = false;
      parts_.array().for_each_local([&](Part& part) {
        if (spoilt) return;
        if (arguments_.spoil_what == "parent") spoilt = part.spoil_parent();
        if (arguments_.spoil_what == "distance") spoilt = part.spoil_distance();
        if (arguments_.spoil_what == "cycle") spoilt = part.spoil_cycle(root);
      });
    }
    pe_.quiesce();
  }

  Pe& pe_;
  const Arguments& arguments_;
  graph::Parts<Part> parts_;
};

/// What one processor finds from the same roots.
bool is_same_alone(const Arguments& arguments, const std::vector<std::uint32_t>& roots, const Found& found) {
  const graph::Edges<Far> edges = whole_graph(arguments.graph);
  std::uint64_t reached = 0, checksum = 0;
  for (const std::uint32_t root : roots) {
    const std::vector<float> distances = distances_from(root, edges, arguments.graph.vertices());
    for (std::uint32_t vertex = 0; vertex < distances.size(); ++vertex) {
      if (distances[vertex] == unreached) continue;
      ++reached;
      checksum += checksum_of(vertex, distances[vertex]);
    }
  }
  return reached == found.reached && checksum == found.checksum;
}

int measure(Pe& pe, const Arguments& given) {
  Arguments arguments = given;
  arguments.graph.seed = base::Settings::from_environment().seed;
  if (arguments.delta == 0) arguments.delta = 0.2 / double(arguments.graph.edge_factor);
  arguments.alone = arguments.alone && arguments.graph.scale <= serial_scale_max;
  Search search(pe, arguments);
  apps::Progress progress(pe, arguments.common, "sssp: root", arguments.roots);
  Found found;
  double seconds = 0;
  bench::FrameCounts frames;
  std::uint64_t handled = 0;
  std::vector<std::uint32_t> roots;
  while (roots.size() < arguments.roots) {
    progress.at(roots.size());
    const auto root = search.parts().next_root();
    if (!root) break;
    roots.push_back(*root);
    const AggregatorStatistics before = search.statistics();
    seconds += search.search(*root, found);
    const AggregatorStatistics after = search.statistics();
    frames = bench::joined(frames, bench::growth(before, after));
    handled += after.handled - before.handled;
    search.validate(*root, found);
  }
  frames = bench::sum_over_pes(pe, frames);
  found = search.sum(found);
  found.errors += bench::sum_over_pes(pe, handled) != found.relaxed + roots.size();  // one more starts each search
  if (arguments.alone && pe.id() == 0) found.errors += !is_same_alone(arguments, roots, found);
  found.errors = broadcast(pe, found.errors, 0);
  if (pe.id() == 0) {
    const std::size_t bytes = 2 * sizeof(std::uint32_t) + sizeof(float);
    bench::Json record = bench::make_record(bench::make_case(pe, "sssp", search.options(), bytes, found.relaxed),
                                            seconds, found.errors == 0);
    bench::add_frames(record, frames);
    graph::add_search(record, arguments, search.parts(), roots.size(), found.edges, seconds, found.checksum);
    record["delta"] = arguments.delta;
    record["bucketed"] = arguments.bucketed;
    record["rounds"] = found.rounds;
    record["reached"] = found.reached;
    record["errors"] = found.errors;
    record["options"] = bench::options_record(search.options());
    record["options"]["beside_one_processor"] = arguments.alone;
    bench::report(record, arguments.common.json);
  }
  return found.errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::sssp

int main(int argc, char** argv) {
  using namespace headway::sssp;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
