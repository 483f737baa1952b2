// SPDX-License-Identifier: BSD-3-Clause
/// `headway slopes`: the longest path of one traced run, and how the run time grows with o, g, L and G.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <headway/base/error.hpp>
#include <iostream>
#include <record/command_line.hpp>
#include <sstream>

#include "commands.hpp"
#include "dial_prediction.hpp"
#include "program.hpp"
#include "slopes_report.hpp"
#include "trace_prediction.hpp"

namespace headway::tools {
namespace {

using model::trace::Graph;

struct Request {
  Program program;
  bool is_folder = false;
  std::vector<std::string> dials;
  bool measures = false;
  std::size_t rounds = 1;
  std::string json;
};

/// A dialled run has the cost of the dials' mechanism, as copies of frames. So its prediction starts from a trace with
/// the same dials at 1 ns.
void measure(const Request& request, const base::DialSettings& dials, DialledTime& one) {
  const Graph graph = traced_run(request.program, {.dials = baseline_of(dials)}, request.rounds);
  model::trace::Replay replay(graph);
  const double without = replay.run({});
  one.path = replay.path(dials);
  one.predicted_seconds = 1e-9 * (graph.run_ns + one.path.total_ns(dials) - without);
  one.measured_seconds = 1e-9 * traced_run(request.program, {.dials = one.dials}, request.rounds).run_ns;
}

Slopes slopes_of(const Request& request, const Graph& graph) {
  Slopes result;
  result.command = request.program.command;
  result.transport = graph.header.transport;
  result.dials = graph.header.dials;
  result.pes = graph.programs.size();
  result.frames = graph.frames.size();
  result.simulated = graph.header.clock == model::trace::Clock::simulated;
  model::trace::Replay replay(graph);
  result.traced_seconds = 1e-9 * graph.run_ns;
  result.path = replay.path({});
  const double without = result.path.total_ns({});
  result.replayed_seconds = 1e-9 * without;
  result.forced = replay.forced();
  for (const model::trace::Parameter& parameter : model::trace::parameters()) {
    result.slopes.push_back({&parameter, result.path.*parameter.count, critical_value(replay, parameter),
                             value_of_factor(replay, parameter, 1.01), value_of_factor(replay, parameter, 1.05)});
  }
  for (const std::string& dials : request.dials) {
    const base::DialSettings settings = base::DialSettings::parse("--dial", dials);
    DialledTime& one = result.dialled.emplace_back();
    one.dials = dials;
    if (request.measures) {
      measure(request, settings, one);
    } else {
      one.path = replay.path(settings);
      one.predicted_seconds = 1e-9 * (graph.run_ns + one.path.total_ns(settings) - without);
    }
  }
  return result;
}

int show_slopes(const Request& request) {
  try {
    const Graph graph = request.is_folder ? model::trace::read_graph(request.program.command.front())
                                          : traced_run(request.program, {}, request.rounds);
    const Slopes result = slopes_of(request, graph);
    if (request.json.empty())
      std::cout << to_text(result) << std::flush;
    else
      bench::write_json(request.json, to_json(result));
    return 0;
  } catch (const ProgramFailed& failed) {
    std::cerr << "headway slopes: " << failed.what() << std::flush;
    return failed.status();
  } catch (const UsageError& error) {
    std::cerr << fmt::format("headway slopes: {}\n", error.what());
    return exit_status::unusable_arguments;
  }
}

std::vector<std::string> parse_dials(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text + "/");
  for (std::string one; std::getline(stream, one, '/');) {
    if (base::DialSettings::parse("--dial", one).random)
      throw SettingError(fmt::format("--dial: '{}' is not allowed; a replay has no random delays", one));
    all.push_back(one);
  }
  return all;
}

void refuse_settings(bool measures) {
  if (std::getenv("HEADWAY_TRACE") != nullptr)
    throw SettingError("HEADWAY_TRACE is set; headway slopes sets it itself: unset it, or name its folder as DIR");
  if (measures && std::getenv("HEADWAY_DIAL") != nullptr)
    throw SettingError("HEADWAY_DIAL is set; --measure sets it itself: unset it");
}

}  // namespace

int slopes_command(int argc, char** argv) {
  const std::string name = "headway slopes";
  bench::CommandLine app(
      "Runs PROGRAM once with a trace and finds the longest path through its messages and handlers: by how much the "
      "run time grows with o, g, L and G, from which value on another path is longer, and by how much each may grow "
      "before the run takes 1 % longer. In place of PROGRAM it takes the folder of a trace (headway run --trace).",
      name);
  Request request;
  std::string dials;
  describe_program(app, "the program, whose output is not shown; or a folder with traces", "its arguments");
  app.add_text("--dial", "LIST",
               "dials to predict, as in HEADWAY_DIAL, and several such lists with / in between, such as o=1us/L=20us",
               dials);
  app.add_flag("--measure", "also run the program with each of --dial, and print the error", request.measures);
  app.add_count("--repeat", "R", "runs of each case; the fastest counts [1]", request.rounds, 1, 1000);
  app.add_count("--time-limit", "S", "seconds that one run may take [120]", request.program.limit, 1, 86'400);
  app.add_text("--json", "FILE", "write the result to FILE, or - for standard output, instead of tables", request.json);
  int status = 0;
  const auto command = parse_program(app, argc, argv, status, Folders::allowed);
  if (!command) return status;
  request.program.command = *command;
  request.is_folder = std::filesystem::is_directory(command->front());
  try {
    if (!dials.empty()) request.dials = parse_dials(dials);
    if (request.is_folder && command->size() > 1)
      throw SettingError(fmt::format("'{}' is the folder of a trace, which takes no arguments", command->front()));
    if (request.is_folder && request.measures)
      throw SettingError("--measure: it needs a program to run, and not the folder of a trace");
    if (request.measures && request.dials.empty()) throw SettingError("--measure: it needs --dial, the dials to run");
    if (!request.is_folder) refuse_settings(request.measures);
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", name, error.what());
    return exit_status::unusable_arguments;
  }
  return show_slopes(request);
}

}  // namespace headway::tools
