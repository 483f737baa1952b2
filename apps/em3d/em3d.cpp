// SPDX-License-Identifier: BSD-3-Clause
/// Electromagnetic waves on a bipartite graph: each step computes all electric nodes from magnetic ones, then all
/// magnetic nodes from electric ones. A program of Split-C's. A PE reads values from other PEs, together or one by one,
/// or their owners write them to the PEs that need them.
#include <algorithm>
#include <array>
#include <headway/headway.hpp>
#include <options.hpp>
#include <span>
#include <support/scale.hpp>
#include <support/work.hpp>
#include <vector>

#include "graph.hpp"

namespace headway::em3d {
namespace {

const std::array<std::string, 3> ways = {"get", "store", "read"};

struct Arguments {
  GraphOptions graph;
  std::size_t nodes_of_each = 0, steps = 100;  // nodes on each PE; 0: as many as `scale` says
  double scale = 1, work_us = 0;
  std::string way = "get";
  GlobalOptions memory;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("em3d of Split-C on Headway's global memory; verified.", "headway-em3d");
  app.add_count("--nodes", "N", "nodes of each kind that each PE has [by --scale]", arguments.nodes_of_each, 1,
                1 << 24);
  apps::add_scale(app, "8192 nodes of both kinds", arguments.scale);
  apps::add_work(app, "edge", arguments.work_us);
  app.add_count("--degree", "N", "nodes that each depends on [10]", arguments.graph.degree, 1, 1000);
  app.add_fraction("--remote", "FRACTION", "of the edges lead to the next PE [0.2]", arguments.graph.remote, true);
  app.add_count("--steps", "N", "steps of all nodes [100]", arguments.steps, 1, 1'000'000);
  app.add_choice("--way", "NAME",
                 "get: values are read where they are needed; store: written to where they will be; read: a read that "
                 "waits for each edge to another PE [get]",
                 arguments.way, ways);
  bench::add_global_options(app, arguments.memory);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// A PE's nodes of one kind, and their dependencies. A dependency is an index into the PE's copies. The copies hold the
/// value of each node that the PE needs, once, in ascending order of nodes.
class Half {
 public:
  /// Collective.
  Half(Pe& pe, GlobalMemory& memory, const GraphOptions& graph, unsigned kind, const apps::Work& work)
      : work_(work),
        memory_(&memory),
        values_(pe, graph.nodes),
        each_(graph.nodes / pe.size()),
        first_(pe.id() * each_) {
    for (std::size_t i = 0; i < each_; ++i) values_.local()[i] = first_value(graph, kind, first_ + i);
    for (std::size_t i = 0; i < each_; ++i) {
      for (const Dependency& one : dependencies(graph, kind, first_ + i)) needed_.push_back(one.node);
    }
    std::ranges::sort(needed_);
    needed_.erase(std::unique(needed_.begin(), needed_.end()), needed_.end());
    for (std::size_t i = 0; i < each_; ++i) {
      for (const Dependency& one : dependencies(graph, kind, first_ + i)) {
        const auto place = std::ranges::lower_bound(needed_, one.node) - needed_.begin();
        edges_.push_back({std::uint32_t(place), one.weight});
      }
    }
    degree_ = graph.degree;
    const std::size_t most = allreduce(pe, needed_.size(), [](std::size_t a, std::size_t b) { return std::max(a, b); });
    copies_.emplace(pe, most * pe.size(), most);
  }

  /// Collective, for way store: tells the owner of each needed node where to write its value.
  void subscribe(Pe& pe, Half& other) {
    Aggregator<std::uint64_t, GlobalPtr<double>> wishes(pe);
    wishes.on([&](std::uint64_t node, const GlobalPtr<double>& copy) {
      other.readers_.push_back({std::uint32_t(node - other.first_), copy});
    });
    for (std::size_t i = 0; i < needed_.size(); ++i) {
      const std::size_t node = needed_[i] - first_;
      if (node < each_) {
        other.own_readers_.push_back({std::uint32_t(node), std::uint32_t(i)});
      } else {
        wishes.send(values_.owner(needed_[i]), needed_[i], (*copies_)[pe.id() * copies_->layout().block() + i]);
        ++stores_;
      }
    }
    pe.quiesce();
  }

  /// Reads the values of the other kind that this PE needs.
  void get(const Half& other) {
    for (std::size_t i = 0; i < needed_.size(); ++i) memory_->get(other.values_[needed_[i]], &copies_->local()[i]);
    memory_->sync();
  }
  /// Writes its values to where the other kind, `to` on this PE, needs them.
  void store(Half& to) {
    const std::span<double> values = values_.local();
    for (const auto& [node, copy] : own_readers_) to.copies_->local()[copy] = values[node];
    for (const Reader& reader : readers_) memory_->store(reader.copy, values[reader.node]);
  }
  /// Until all that it needs was written here.
  void wait_for_stores() { memory_->wait_for_stores(stores_ * sizeof(double)); }

  void compute() {
    compute_with([copies = copies_->local()](std::uint32_t copy) { return copies[copy]; });
  }
  /// The same without copies: waits for the value of each edge that leads to another PE.
  void read_and_compute(const Half& other) {
    compute_with([&, own = other.values()](std::uint32_t copy) {
      const std::size_t node = needed_[copy];
      if (node - other.first_ < own.size()) return own[node - other.first_];
      ++reads_;
      return memory_->read(other.values_[node]);
    });
  }

  std::uint64_t needed() const { return needed_.size(); }
  /// Values that other PEs store here in a step.
  std::uint64_t stores() const { return stores_; }
  std::uint64_t reads() const { return reads_; }
  std::span<const double> values() const { return values_.local(); }

 private:
  struct Edge {
    std::uint32_t copy;
    double weight;
  };
  struct Reader {
    std::uint32_t node;  // within this PE's
    GlobalPtr<double> copy;
  };
  struct OwnReader {
    std::uint32_t node, copy;
  };

  /// `value_of` gives the value of a copy.
  template <class Value>
  void compute_with(const Value& value_of) {
    const Edge* edge = edges_.data();
    for (double& value : values_.local()) {
      double sum = 0;
      for (std::size_t k = 0; k < degree_; ++k, ++edge) sum += edge->weight * value_of(edge->copy);
      value -= sum;
      work_.done(double(degree_));
    }
  }

  apps::Work work_;
  GlobalMemory* memory_;
  DistArray<double> values_;
  std::size_t each_, first_, degree_ = 0;
  std::vector<std::size_t> needed_;          // nodes of the other kind
  std::optional<DistArray<double>> copies_;  // of their values
  std::vector<Edge> edges_;
  std::vector<Reader> readers_;  // on other PEs
  std::vector<OwnReader> own_readers_;
  std::size_t stores_ = 0;   // of other PEs to the copies, in a step
  std::uint64_t reads_ = 0;  // of other PEs' values, each waited for
};

/// Every PE alone, all nodes: how many of its own differ, in any bit.
std::uint64_t count_errors(const GraphOptions& graph, std::size_t steps, std::size_t first,
                           std::span<const double> electric, std::span<const double> magnetic) {
  std::array<std::vector<double>, 2> values;
  std::array<std::vector<Dependency>, 2> edges;
  for (unsigned kind = 0; kind < 2; ++kind) {
    for (std::size_t node = 0; node < graph.nodes; ++node) {
      values[kind].push_back(first_value(graph, kind, node));
      const std::vector<Dependency> all = dependencies(graph, kind, node);
      edges[kind].insert(edges[kind].end(), all.begin(), all.end());
    }
  }
  for (std::size_t step = 0; step < steps; ++step) {
    for (unsigned kind = 0; kind < 2; ++kind) {
      const Dependency* edge = edges[kind].data();
      for (double& value : values[kind]) {
        double sum = 0;
        for (std::size_t k = 0; k < graph.degree; ++k, ++edge) sum += edge->weight * values[1 - kind][edge->node];
        value -= sum;
      }
    }
  }
  std::uint64_t errors = 0;
  for (std::size_t i = 0; i < electric.size(); ++i) {
    errors += electric[i] != values[0][first + i];
    errors += magnetic[i] != values[1][first + i];
  }
  return errors;
}

int measure(Pe& pe, const Arguments& arguments) {
  GraphOptions graph = arguments.graph;
  graph.parts = pe.size();
  std::size_t each = arguments.nodes_of_each;
  if (each == 0) each = (apps::scaled(arguments.scale, 4096) + pe.size() - 1) / pe.size();
  graph.nodes = each * pe.size();
  GlobalMemory memory(pe, arguments.memory);
  const apps::Work work(pe, arguments.work_us);
  Half electric(pe, memory, graph, 0, work), magnetic(pe, memory, graph, 1, work);
  const bool stores = arguments.way == "store", reads = arguments.way == "read";
  if (stores) {
    electric.subscribe(pe, magnetic);
    magnetic.subscribe(pe, electric);
  }
  // Half a step. The barrier keeps a PE from changing values that others still read, or from writing into copies that
  // others have not read yet.
  const auto advance = [&](Half& half, Half& from) {
    if (reads) {
      half.read_and_compute(from);
    } else {
      if (stores) {
        from.store(half);
        half.wait_for_stores();
      } else {
        half.get(from);
      }
      half.compute();
    }
    barrier(pe);
  };
  pe.quiesce();
  const auto before = memory.statistics();
  const std::int64_t begin = pe.engine().now();
  for (std::size_t step = 0; step < arguments.steps; ++step) {
    advance(electric, magnetic);
    advance(magnetic, electric);
  }
  pe.quiesce();
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const auto after = memory.statistics();
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const auto of_both = [&](auto count) { return (electric.*count)() + (magnetic.*count)(); };
  const std::uint64_t moved =
      reads ? of_both(&Half::reads) : of_both(stores ? &Half::stores : &Half::needed) * arguments.steps;
  const std::uint64_t values = bench::sum_over_pes(pe, moved);
  const std::uint64_t errors = bench::sum_over_pes(
      pe, count_errors(graph, arguments.steps, pe.id() * each, electric.values(), magnetic.values()));
  if (pe.id() == 0) {
    const AggregatorOptions& effective = memory.aggregation();
    bench::Json record =
        bench::make_record(bench::make_case(pe, "em3d", effective, sizeof(double), values), seconds, errors == 0);
    bench::add_frames(record, frames);
    record["nodes"] = 2 * graph.nodes;
    record["degree"] = graph.degree;
    record["remote"] = graph.remote;
    record["steps"] = arguments.steps;
    record["errors"] = errors;
    record["options"] = bench::options_record(effective);
    record["options"]["way"] = arguments.way;
    record["options"]["mapped"] = arguments.memory.mapped;
    bench::report(record, arguments.json);
  }
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::em3d

int main(int argc, char** argv) {
  using namespace headway::em3d;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
