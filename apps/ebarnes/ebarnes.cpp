// SPDX-License-Identifier: BSD-3-Clause
/// Hierarchical N-body (Barnes, Hut, "A hierarchical O(N log N) force-calculation algorithm", 1986) with the octree in
/// global memory, in the way of the Split-C program ebarnes.
#include <array>
#include <cstdio>
#include <headway/headway.hpp>
#include <options.hpp>
#include <support/scale.hpp>
#include <support/work.hpp>

#include "check.hpp"
#include "simulation.hpp"

namespace headway::ebarnes {
namespace {

const std::array<std::string, 2> ways = {"blocking", "walks"};
const std::array<std::string, 6> spoils = {"none", "force", "lost", "id", "energy", "bit"};

struct Arguments {
  Options options;
  Ways ways;
  double scale = 0.05, work_us = 0, drift_max = 2e-3;
  std::string way = "blocking", spoil = "none";
  std::uint64_t samples = 100, serial_max = 100'000;
  bool no_serial = false;
  GlobalOptions memory;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Hierarchical N-body (Barnes-Hut) on Headway's global memory; verified.", "headway-ebarnes");
  Options& options = arguments.options;
  app.add_count("--bodies", "N", "bodies in all [by --scale]", options.bodies, 1, 1 << 24);
  apps::add_scale(app, "10^6 bodies", arguments.scale);
  apps::add_work(app, "interaction of a body", arguments.work_us);
  app.add_count("--steps", "N", "steps that are measured, after forces have been computed once [2]", options.steps, 1,
                1'000'000);
  app.add_number("--theta", "X", "cells as wide as X times their distance count as far away [1]", options.theta, 0.01,
                 1.1);
  app.add_number("--softening", "X", "length below which forces are softened [0.05]", options.softening, 1e-4, 1);
  app.add_number("--time-step", "X", "time of a step [0.025]", options.time_step, 1e-6, 1);
  app.add_count("--bucket", "N", "bodies of a leaf, at most [8]", options.bucket, 1, Cell::points_max);
  app.add_choice("--way", "NAME",
                 "blocking: a walk waits for each cell of another PE; walks: --walks of them go on in turn [blocking]",
                 arguments.way, ways);
  app.add_count("--walks", "N", "bodies of a PE whose walks go on in turn [256]", arguments.ways.walks, 1, 1 << 16);
  app.add_count("--cache", "N", "cells of other PEs that a PE keeps [32768]", arguments.ways.cache_cells, 2, 1 << 24);
  app.add_count("--samples", "N", "bodies whose forces are compared with a direct sum, at most [100]",
                arguments.samples, 1, 100'000);
  app.add_number("--drift", "X", "change of energy that is allowed, relative to that of the model [0.002]",
                 arguments.drift_max, 0, 10);
  app.add_flag("--no-serial", "do not compare with one processor, as up to 10^5 bodies times steps",
               arguments.no_serial);
  app.add_choice("--spoil", "WHAT", "spoils the result, to test the check: force, lost, id, energy or bit [none]",
                 arguments.spoil, spoils);
  bench::add_global_options(app, arguments.memory);
  app.add_json(arguments.json);
  const auto status = app.parse(argc, argv, [&] {
    options.seed = base::Settings::from_environment().seed;
    if (options.bodies == 0) options.bodies = apps::scaled(arguments.scale, 1e6);
    arguments.ways.blocking = arguments.way == "blocking";
    if (!arguments.ways.blocking && arguments.ways.cache_cells < 2 * arguments.ways.walks) {
      throw SettingError(
          fmt::format("--cache: '{}' is not allowed; allowed with --walks {} is a whole number from {} on",
                      arguments.ways.cache_cells, arguments.ways.walks, 2 * arguments.ways.walks));
    }
  });
  return status;
}

/// Changes what body 0 or all have, for tests of the check.
void spoil(const std::string& what, std::vector<Body>& bodies) {
  if (what == "energy") {
    for (Body& body : bodies) kick(body, 1);
    return;
  }
  const auto at = std::ranges::find(bodies, 0, &Body::id);
  if (at == bodies.end()) return;
  if (what == "force") at->acceleration[0] += 1;
  if (what == "id") at->id = 1;
  if (what == "bit") at->at[0] = std::nextafter(at->at[0], 100);
  if (what == "lost") bodies.erase(at);
}

int measure(Pe& pe, const Arguments& arguments) {
  const Options& options = arguments.options;
  GlobalMemory memory(pe, arguments.memory);
  Simulation simulation(pe, memory, options, arguments.ways, apps::Work(pe, arguments.work_us));
  simulation.pull();
  const Energy begin_energy = energy_of(pe, simulation.bodies());
  pe.quiesce();
  const auto before = memory.statistics();
  const Counts counts_before = simulation.counts();
  const std::int64_t begin = pe.engine().now();
  for (std::uint32_t step = 0; step < options.steps; ++step) simulation.step();
  pe.quiesce();
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const auto after = memory.statistics();
  const Counts own = simulation.counts() - counts_before;
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const Counts counts = allreduce(pe, own, std::plus<>());
  const auto busiest = [&](std::uint64_t count) { return std::uint64_t(bench::max_over_pes(pe, double(count))); };
  const std::uint64_t accesses_max = busiest(own.accesses()), interactions_max = busiest(own.interactions);

  spoil(arguments.spoil, simulation.bodies());
  Found found;
  check_bodies(pe, simulation.bodies(), options, begin_energy, arguments.drift_max, found);
  check_forces(pe, simulation.bodies(), options, arguments.samples, found);
  const std::uint64_t placed = counts.links + counts.locks - counts.divisions;
  if (placed != options.bodies * options.steps) {
    found.wrong.push_back(fmt::format("{} bodies were put into the trees, expected are {} in each of {}", placed,
                                      options.bodies, base::counted(options.steps, "step")));
  }
  const bool beside_one = !arguments.no_serial && options.bodies * options.steps <= arguments.serial_max;
  if (pe.id() == 0 && beside_one) check_beside_one(options, counts, found);
  const std::uint64_t errors = broadcast(pe, std::uint64_t(found.wrong.size()), 0);
  if (pe.id() == 0) {
    for (const std::string& line : found.wrong) std::fprintf(stderr, "headway-ebarnes: %s\n", line.c_str());
    const auto share = [&](std::uint64_t part) {
      return counts.accesses() == 0 ? 0 : double(part) / double(counts.accesses());
    };
    const AggregatorOptions& effective = memory.aggregation();
    bench::Json record = bench::make_record(bench::make_case(pe, "ebarnes", effective, sizeof(Cell), counts.accesses()),
                                            seconds, errors == 0);
    bench::add_frames(record, frames);
    record["bodies"] = found.census.bodies;
    record["steps"] = options.steps;
    record["errors"] = errors;
    record["checksum"] = fmt::format("{:016x}", found.census.checksum);
    record["ids"] = fmt::format("{:016x}", found.census.ids);
    record["beside_one"] = beside_one;
    record["force_error"] = found.force_error;
    record["force_error_max"] = found.force_error_max;
    record["energy"] = found.after.total(options.mass());
    record["energy_drift"] = found.drift;
    record["cells"] = counts.cells;
    record["interactions"] = counts.interactions;
    record["messages_max"] = accesses_max;
    record["reads"] = counts.reads;
    record["gets"] = counts.gets;
    record["puts"] = counts.puts;
    record["atomics"] = counts.atomics;
    record["share_reads"] = share(counts.reads);
    record["share_bulk"] = share(counts.bulk());
    record["locks"] = counts.locks;
    record["lock_retries"] = counts.lock_retries;
    record["divisions"] = counts.divisions;
    record["links"] = counts.links;
    record["link_retries"] = counts.link_retries;
    record["cache_hits"] = counts.opened - counts.misses;
    record["cache_misses"] = counts.misses;
    record["bodies_moved"] = counts.bodies_moved;
    record["imbalance"] =
        counts.interactions == 0 ? 1 : double(interactions_max) * double(pe.size()) / double(counts.interactions);
    record["options"] = bench::options_record(effective);
    record["options"]["mapped"] = arguments.memory.mapped;
    record["options"]["way"] = arguments.way;
    record["options"]["theta"] = options.theta;
    record["options"]["softening"] = options.softening;
    record["options"]["time_step"] = options.time_step;
    record["options"]["bucket"] = options.bucket;
    record["options"]["walks"] = arguments.ways.blocking ? 1 : arguments.ways.walks;
    record["options"]["cache"] = arguments.ways.cache_cells;
    bench::report(record, arguments.json);
  }
  pe.quiesce();  // answers to others may lie in buffers still
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::ebarnes

int main(int argc, char** argv) {
  using namespace headway::ebarnes;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
