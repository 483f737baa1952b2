// SPDX-License-Identifier: BSD-3-Clause
/// Connected components of a grid with missing edges. Each PE joins the vertices of its own block, then all join across
/// the edges between blocks, by remote reads and compare-and-exchange (connect of Split-C's programs).
#include <cmath>
#include <headway/headway.hpp>
#include <options.hpp>
#include <span>
#include <support/scale.hpp>
#include <support/work.hpp>
#include <vector>

#include "grid.hpp"

namespace headway::connect {
namespace {

struct Arguments {
  Grid grid{0, 0};  // rows of each PE, columns; 0: as many as `scale` says
  double scale = 0.25, work_us = 0;
  GlobalOptions memory;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Connected components of a grid, on Headway's global memory; verified.", "headway-connect");
  app.add_count("--rows", "N", "rows of nodes that each PE has [by --scale]", arguments.grid.rows, 1, 1 << 20);
  app.add_count("--columns", "N", "nodes of a row [by --scale]", arguments.grid.columns, 1, 1 << 20);
  apps::add_scale(app, "4 M nodes in a square", arguments.scale);
  apps::add_work(app, "node of its own, and word that it reads", arguments.work_us);
  app.add_fraction("--edges", "FRACTION", "of the edges of the grid are there [0.3]", arguments.grid.edges, true);
  bench::add_global_options(app, arguments.memory);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// One PE's rows. Each word names a node of its component that is not larger: chains end at the smallest.
class Rows {
 public:
  /// Collective.
  Rows(Pe& pe, GlobalMemory& memory, const Grid& grid, const apps::Work& work)
      : pe_(pe),
        work_(work),
        memory_(memory),
        grid_(grid),
        each_(grid.nodes() / pe.size()),
        first_(pe.id() * each_),
        parents_(pe, grid.nodes(), each_),
        labels_(each_) {}

  /// Returns the smallest node of each own one's component. Collective.
  std::span<const std::uint64_t> run() {
    Sets own(parents_.local(), first_);
    const std::size_t end = first_ + each_;
    for (std::size_t node = first_; node < end; ++node) {
      if (grid_.leads_right(node)) own.unite(node, node + 1);
      if (node + grid_.columns < end && grid_.leads_down(node)) own.unite(node, node + grid_.columns);
    }
    work_.done(double(each_));
    barrier(pe_);  // from here on others change this PE's words
    for (std::size_t node = end - grid_.columns; node < end; ++node) {
      if (grid_.leads_down(node)) join(node, node + grid_.columns);
    }
    barrier(pe_);
    for (std::size_t i = 0; i < each_; ++i) {
      const std::uint64_t up = parents_.local()[i];  // an own one is before it, and has its label
      const bool is_own = up >= first_ && up != first_ + i;
      labels_[i] = is_own ? labels_[up - first_] : find(up);
    }
    return labels_;
  }

  /// Words that were read or tried to be changed for that, from here on.
  std::uint64_t accesses() const { return accesses_; }

 private:
  std::uint64_t find(std::uint64_t node) {
    for (;;) {
      ++accesses_;
      work_.done(1);
      const std::uint64_t up = memory_.read(parents_[node]);
      if (up == node) return node;
      node = up;
    }
  }
  /// The larger of two ends of chains is hung below the smaller, if it is an end still.
  void join(std::uint64_t a, std::uint64_t b) {
    for (;;) {
      a = find(a), b = find(b);
      if (a == b) return;
      if (a < b) std::swap(a, b);
      ++accesses_;
      if (memory_.compare_exchange(parents_[a], a, b) == a) return;
    }
  }

  Pe& pe_;
  apps::Work work_;
  GlobalMemory& memory_;
  Grid grid_;
  std::size_t each_, first_;
  DistArray<std::uint64_t> parents_;
  std::vector<std::uint64_t> labels_;
  std::uint64_t accesses_ = 0;
};

int measure(Pe& pe, const Arguments& arguments) {
  Grid grid = arguments.grid;
  const std::uint64_t side = apps::scaled(std::sqrt(arguments.scale), 2048);
  if (grid.rows == 0) grid.rows = (side + pe.size() - 1) / pe.size();
  if (grid.columns == 0) grid.columns = side;
  grid.rows *= pe.size();
  GlobalMemory memory(pe, arguments.memory);
  Rows rows(pe, memory, grid, apps::Work(pe, arguments.work_us));
  pe.quiesce();
  const auto before = memory.statistics();
  const std::int64_t begin = pe.engine().now();
  const std::span<const std::uint64_t> labels = rows.run();
  pe.quiesce();
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const auto after = memory.statistics();
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t accesses = bench::sum_over_pes(pe, rows.accesses());

  const std::vector<std::uint64_t> expected = components(grid);
  const std::size_t first = pe.id() * labels.size();
  std::uint64_t own_errors = 0, own_components = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    own_errors += labels[i] != expected[first + i];
    own_components += expected[first + i] == first + i;
  }
  const std::uint64_t errors = bench::sum_over_pes(pe, own_errors), count = bench::sum_over_pes(pe, own_components);
  if (pe.id() == 0) {
    const AggregatorOptions& effective = memory.aggregation();
    bench::Json record = bench::make_record(bench::make_case(pe, "connect", effective, sizeof(std::uint64_t), accesses),
                                            seconds, errors == 0);
    bench::add_frames(record, frames);
    record["nodes"] = grid.nodes();
    record["components"] = count;
    record["errors"] = errors;
    record["options"] = bench::options_record(effective);
    record["options"]["mapped"] = arguments.memory.mapped;
    bench::report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::connect

int main(int argc, char** argv) {
  using namespace headway::connect;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
