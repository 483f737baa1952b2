// SPDX-License-Identifier: BSD-3-Clause
/// Shallow water on an adaptive mesh. Each PE has a piece of a Morton curve through the cells. Ghost cells travel by
/// halo exchanges. Each change of the mesh needs a new plan.
#include <cstdio>
#include <headway/headway.hpp>
#include <options.hpp>
#include <string>

#include "on_pes.hpp"
#include "report.hpp"
#include "simulation.hpp"

namespace headway::amr {
namespace {

struct Arguments {
  Options options;
  bool serial = true;
  AggregatorOptions aggregator;
  std::string json;  // a file, "-", or empty for lines on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Shallow water on an adaptive mesh, on Headway; verified.", "headway-amr");
  add_options(app, arguments.options);
  app.add_flag("--no-serial", "do not compare with one PE alone, as is done for up to 4 million cells times steps",
               [&] { arguments.serial = false; });
  bench::add_aggregator_options(app, arguments.aggregator);
  app.add_json(arguments.json);
  return app.parse(argc, argv, [&] { check(arguments.options); });
}

int measure(Pe& pe, const Arguments& arguments) {
  HeadwayPes pes(pe, arguments.aggregator);
  const Outcome outcome = simulate(pes, arguments.options);
  const std::vector<Times> times = pes.all_gather(outcome.times);
  const double seconds = bench::max_over_pes(pe, outcome.seconds);
  const std::uint64_t pushed = pes.sum(outcome.pushed), cell_steps = pes.sum(outcome.cell_steps);
  const bool serial = arguments.serial && cell_steps <= serial_cell_steps_max;
  std::uint64_t errors = outcome.errors + !outcome.is_conserved(arguments.options.steps);
  if (serial && pe.id() == 0) errors += serial_hash(arguments.options) != outcome.hash;
  errors = pes.sum(errors);
  if (pe.id() == 0) {
    const AggregatorStatistics statistics = pes.messages().statistics();
    bench::Json record = bench::make_record(
        bench::make_case(pe, "amr", pes.messages().options(), sizeof(State), pushed), seconds, errors == 0);
    bench::add_frames(record, bench::growth({}, statistics));
    add_outcome(record, arguments.options, outcome, times, cell_steps);
    record["errors"] = errors;
    record["options"] = bench::options_record(pes.messages().options());
    record["options"]["beside_one_pe"] = serial;
    if (arguments.json.empty()) {
      const std::string text = describe(record);
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    } else {
      bench::report(record, arguments.json);
    }
  }
  pe.quiesce();
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::amr

int main(int argc, char** argv) {
  using namespace headway::amr;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
