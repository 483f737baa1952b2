// SPDX-License-Identifier: BSD-3-Clause
/// `headway sensitivity`: how much longer a program runs with each dial, beside predictions of the models.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <headway/base/dial_settings.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/local/local.hpp>
#include <iostream>
#include <optional>
#include <record/command_line.hpp>

#include "commands.hpp"
#include "dial_prediction.hpp"
#include "dial_sweep.hpp"
#include "outcome.hpp"
#include "program.hpp"
#include "program_runs.hpp"
#include "progress.hpp"
#include "sensitivity_result.hpp"
#include "trace_prediction.hpp"

namespace headway::tools {
namespace {

const std::vector<std::string> places = {"local", "sim", "smpi"};
const std::vector<std::string> simulated_or_not = {"none", "sim"};
const std::vector<std::string> clocks = {"run", "program"};
constexpr const char* dials_default = "o=0..100us,g=0..100us,L=0..100us,G=0..10ns";

struct Request {
  Program program;
  std::vector<DialSweep> sweeps;
  std::vector<std::size_t> pes;
  std::string on = "local";
  std::string network;  // HEADWAY_SIM of simulated runs
  std::string beside = "none", clock = "run";
  std::optional<model::Machine> machine;  // of --on smpi
  std::size_t rounds = 5;
  bool skips_trace = false;
  std::string json, page;
};

std::vector<Variable> simulation_of(const std::string& network) {
  return {{"HEADWAY_TRANSPORT", "sim"}, {"HEADWAY_SIM", network}};
}

/// The simulated network that is like this machine's local transport, with computation.
std::string local_network() {
  return fmt::format("o={}ns,L={}ns,G={}ns,compute=1", local::costs.overhead_ns / 2, local::costs.latency_ns,
                     local::costs.gap_per_byte_ns);
}

/// Times of one case over those of another, by round.
bench::Spread ratios(const Case& over, const Case& under) {
  std::vector<double> all;
  for (std::size_t round = 0; round < over.runs.size(); ++round)
    all.push_back(over.runs[round].seconds() / under.runs[round].seconds());
  return bench::spread_of(all);
}

bench::Spread seconds_of(const Case& one) {
  std::vector<double> all;
  for (const RunCounts& run : one.runs) all.push_back(run.seconds());
  return bench::spread_of(all);
}

MeasuredRun median_of(const Case& one) {
  MeasuredRun run = fastest_of(one.runs);
  run.of_all = seconds_of(one);
  run.seconds = run.of_all.median;
  return run;
}

/// Dials of a sweep at almost 0: such runs have the mechanism of the dial, and its cost, without its delay.
std::string baseline_dials(const DialSweep& sweep) {
  return baseline_of(base::DialSettings::parse("--dial", sweep.dials(sweep.values.back())));
}

/// The cases of a panel: without dials, then for each sweep its baseline and its values.
std::vector<Case> cases_of(const Request& request, std::size_t pes, const std::vector<Variable>& settings) {
  std::vector<Case> cases = {{.pes = pes, .settings = settings}};
  for (const DialSweep& sweep : request.sweeps) {
    cases.push_back({.pes = pes, .dials = baseline_dials(sweep), .settings = settings});
    for (const double value : sweep.values)
      cases.push_back({.pes = pes, .dials = sweep.dials(value), .settings = settings});
  }
  return cases;
}

void add_formulas(const SweepCurve& curve, SweepPoint& point) {
  const base::DialSettings dials = base::DialSettings::parse("--dial", curve.sweep.dials(point.value));
  const MeasuredRun& base = curve.baseline;
  for (const Method method : {Method::bursts, Method::uniform, Method::bursty}) {
    const std::string name = method == Method::bursts ? "formula" : name_of(method);
    point.predicted.push_back({name, predict_dials(method, base.counts, base.seconds, dials) / base.seconds});
  }
}

Panel panel_of(const Request& request, const std::vector<Case>& cases) {
  Panel panel{cases.front().pes, median_of(cases.front()), {}};
  auto next = cases.begin() + 1;
  for (const DialSweep& sweep : request.sweeps) {
    const Case& baseline = *next++;
    SweepCurve& curve = panel.curves.emplace_back(SweepCurve{sweep, median_of(baseline), {}});
    for (const double value : sweep.values) {
      const Case& dialled = *next++;
      SweepPoint& point = curve.points.emplace_back(SweepPoint{value, seconds_of(dialled), ratios(dialled, baseline)});
      add_formulas(curve, point);
    }
    curve.fit = fit_of(sweep, curve.points);
  }
  return panel;
}

/// Adds slowdowns by a replay of one traced run, a baseline. The trace covers the whole run.
void add_traces(const Request& request, const std::vector<Variable>& settings, Panel& panel) {
  Progress progress(panel.curves.size());
  for (SweepCurve& curve : panel.curves) {
    progress.step(fmt::format("trace of {} PEs, {}", panel.pes, curve.sweep.name));
    const model::trace::Graph graph =
        traced_run(request.program, {.pes = panel.pes, .dials = baseline_dials(curve.sweep), .settings = settings});
    for (SweepPoint& point : curve.points) {
      const base::DialSettings dials = base::DialSettings::parse("--dial", curve.sweep.dials(point.value));
      const double added = predict_from_trace(graph, dials) - 1e-9 * graph.run_ns;
      point.predicted.insert(point.predicted.begin() + 1, {"trace", 1 + added / curve.baseline.seconds});
    }
  }
}

/// Adds the slowdowns of simulations of this machine. They are the same each time, but for measured computation.
void add_simulations(const Request& request, Panel& panel) {
  std::vector<Case> cases = cases_of(request, panel.pes, simulation_of(local_network()));
  run_in_turns(request.program, cases, 1);
  const Panel simulated = panel_of(request, cases);
  for (std::size_t i = 0; i < panel.curves.size(); ++i) {
    for (std::size_t k = 0; k < panel.curves[i].points.size(); ++k) {
      const double slowdown = simulated.curves[i].points[k].slowdown.median;
      panel.curves[i].points[k].predicted.push_back({"sim", slowdown});
    }
  }
}

void write_page(const std::string& path, const std::string& page) {
  std::ofstream file(path, std::ios::binary);
  file << page << std::flush;
  if (!file) throw SystemError(fmt::format("{}: cannot be written", path));
}

int measure(const Request& request) {
  Sensitivity result{request.program.command, request.on, request.network, request.rounds, {}};
  if (request.machine) result.network = request.machine->name;
  const std::vector<Variable> settings = request.on == "sim" ? simulation_of(request.network) : std::vector<Variable>{};
  for (const std::size_t pes : request.pes) {
    std::vector<Case> cases = cases_of(request, pes, settings);
    run_in_turns(request.program, cases, request.rounds);
    result.panels.push_back(panel_of(request, cases));
    if (!request.skips_trace) add_traces(request, settings, result.panels.back());
    if (request.beside == "sim") add_simulations(request, result.panels.back());
  }
  if (!request.page.empty()) write_page(request.page, to_page(result));
  if (!request.json.empty())
    bench::write_json(request.json, to_json(result));
  else
    std::cout << to_text(result) << std::flush;
  return 0;
}

/// Settings that would change the runs themselves, or their files.
void refuse_settings() {
  for (const char* variable : {"HEADWAY_PES", "HEADWAY_COUNTS", "HEADWAY_DIAL", "HEADWAY_TRACE"}) {
    if (std::getenv(variable) == nullptr) continue;
    throw SettingError(
        fmt::format("{} is set; headway sensitivity sets it itself: use --pes, --dial, or unset it", variable));
  }
}

}  // namespace

int sensitivity_command(int argc, char** argv) {
  const std::string name = "headway sensitivity";
  bench::CommandLine app(
      "Runs PROGRAM with dials that add overhead (o), gap (g), latency (L) or time for each byte (G) to its frames. "
      "Prints how much longer it takes, what the models predict, and which change of the program would help. --dial "
      "and "
      "--pes may also follow the program; after -- all is the program's.",
      name);
  Request request;
  std::string dials = dials_default;
  describe_program(app, "the program; its output is not shown", "its arguments");
  app.add_text("--dial", "LIST",
               fmt::format("ranges of dials, NAME=FROM..TO[:VALUES], each one alone [{}]", dials_default), dials);
  app.add_value("--pes", "LIST", "numbers of PEs to run with, 2 or more each [cores, at least 2]",
                [&](const std::string& text) { request.pes = parse_pes("--pes", text, 2, base::pes_max); });
  app.add_choice("--on", "NAME",
                 "local: in real time; sim: simulated, with computation charged; smpi: PROGRAM was built for SimGrid's "
                 "SMPI, and smpirun starts it [local]",
                 request.on, places);
  app.add_text("--network", "LIST",
               "of --on sim, as HEADWAY_SIM, such as machine=now,compute=1 [machine=now,compute=1]", request.network);
  app.add_value("--machine", "NAME|FILE",
                "of --on smpi: one of this repository's machines/, or a file like these [now]",
                [&](const std::string& text) { request.machine = parse_machine(text); });
  app.add_choice("--time", "NAME",
                 "run: of the whole run; program: the seconds of its record, for programs with --json FILE [run]",
                 request.clock, clocks);
  app.add_choice("--beside", "NAME", "sim: simulations of the local transport beside measured runs [none]",
                 request.beside, simulated_or_not);
  app.add_flag("--no-trace", "do not trace a run for predictions; traces take memory for each frame",
               request.skips_trace);
  app.add_count("--repeat", "R", "rounds; a round has each case once, and medians count [5; of --on sim 1]",
                request.rounds, 1, 1000);
  app.add_count("--time-limit", "S", "seconds that one run may take [120]", request.program.limit, 1, 86'400);
  app.add_text("-o,--output", "FILE", "write a page of HTML with plots, too", request.page);
  app.add_text("--json", "FILE", "write the result to FILE, or - for standard output, instead of tables", request.json);

  int status = 0;
  std::vector<char*> arguments = options_first(argc, argv, {"--pes", "--dial", "--on"});
  const auto command = parse_program(app, int(arguments.size()), arguments.data(), status);
  if (!command) return status;
  request.program.command = *command;
  try {
    refuse_settings();
    request.sweeps = parse_dial_sweeps("--dial", dials);
    const bool simulates = request.on == "sim" || request.beside == "sim";
    if (simulates && !base::has_simulation)
      throw SettingError("--on: 'sim' is not allowed; this build has no sim transport (Boost.Context)");
    if (request.on == "sim" && request.beside == "sim")
      throw SettingError("--beside: 'sim' stands beside measured runs: use it with --on local");
    if (request.on != "smpi" && request.machine)
      throw SettingError("--machine: it is that of SMPI: use it with --on smpi");
    if (request.on == "smpi" && request.beside == "sim")
      throw SettingError("--beside: 'sim' runs PROGRAM itself, which was built for SMPI: use it with --on local");
    if (request.on != "sim" && app.given("--network"))
      throw SettingError("--network: it is that of simulated runs: use it with --on sim");
    for (const char* variable : {"HEADWAY_TRANSPORT", "HEADWAY_SIM"}) {
      if (simulates && std::getenv(variable) != nullptr)
        throw SettingError(fmt::format("{} is set; simulated runs set it themselves: unset it", variable));
    }
    if (request.on == "sim" && request.network.empty()) request.network = "machine=now,compute=1";
    if (request.on != "local" && !app.given("--repeat")) request.rounds = 1;
    if (request.on == "smpi" && !request.machine) request.machine = parse_machine("now");
    request.program.times_itself = request.clock == "program";
    if (request.pes.empty()) request.pes = {std::max<std::size_t>(base::available_cores(), 2)};
    bench::require_writable("--json", request.json);
    bench::require_writable("-o", request.page);
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", name, error.what());
    return exit_status::unusable_arguments;
  }
  try {
    std::optional<SmpiLauncher> launcher;
    if (request.on == "smpi") request.program.launcher = &launcher.emplace(*request.machine);
    return measure(request);
  } catch (const ProgramFailed& failed) {
    std::cerr << fmt::format("{}: {}", name, failed.what()) << std::flush;
    return failed.status();
  } catch (const UsageError& error) {
    std::cerr << fmt::format("{}: {}\n", name, error.what());
    return exit_status::unusable_arguments;
  }
}

}  // namespace headway::tools
