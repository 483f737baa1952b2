// SPDX-License-Identifier: BSD-3-Clause
/// `headway predict`: the run time of a program at other numbers of PEs, on other machines and with dials, from runs
/// with few PEs here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/local/local.hpp>
#include <iostream>
#include <limits>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <sstream>

#include "commands.hpp"
#include "dial_prediction.hpp"
#include "machine_prediction.hpp"
#include "predict_report.hpp"
#include "program.hpp"
#include "program_runs.hpp"
#include "progress.hpp"

namespace headway::tools {
namespace {

constexpr std::size_t predicted_pes_max = std::size_t(1) << 24;
const std::vector<std::string> methods = {"formula", "sim"};
constexpr const char* dials_default = "o=20us/g=20us/L=20us";

struct Request {
  Program program;
  std::vector<std::size_t> measured = {2, 4, 8};
  std::vector<std::size_t> pes;  // to predict
  std::optional<model::Machine> machine;
  std::vector<std::string> dials;
  std::size_t rounds = 3;
  std::string method = "formula";
  std::string json;
};

/// Settings for a simulated network, with computation at this machine's speed.
std::vector<Variable> simulated(const model::LogGP& network) {
  return {{"HEADWAY_TRANSPORT", "sim"},
          {"HEADWAY_SIM", fmt::format("o={}ns,g={}ns,L={}ns,G={}ns,compute=1", network.overhead_ns, network.gap_ns,
                                      network.latency_ns, network.gap_per_byte_ns)}};
}

/// Without L the network is one of no latency.
model::LogGP network_of(const model::Machine& machine) {
  if (machine.loggp) return *machine.loggp;
  return {.overhead_ns = machine.alpha_beta->alpha_ns / 2, .gap_per_byte_ns = machine.alpha_beta->beta_ns_per_byte};
}

/// The fastest of several simulations, in seconds.
double simulate(const Request& request, std::size_t pes, const std::string& dials, const model::LogGP& network) {
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t round = 0; round < request.rounds; ++round)
    least = std::min(least, run_once(request.program, {pes, dials, simulated(network)}).seconds());
  return least;
}

/// Adds what simulations say: of the measured runs with dials, and of the machine.
void add_simulations(const Request& request, Prediction& result) {
  Progress progress(1 + result.dials.size() + result.machines.size());
  const std::size_t smallest = request.measured.front();
  const model::LogGP here{.latency_ns = local::costs.latency_ns,
                          .overhead_ns = local::costs.overhead_ns / 2,
                          .gap_per_byte_ns = local::costs.gap_per_byte_ns};
  progress.step(fmt::format("simulation of {} PEs", smallest));
  result.simulated_seconds = simulate(request, smallest, "", here);
  for (DialResult& dial : result.dials) {
    progress.step(fmt::format("simulation of {} PEs, {}", smallest, dial.dials));
    dial.simulated_seconds = simulate(request, smallest, dial.dials, here);
  }
  for (MachinePrediction& prediction : result.machines) {
    if (prediction.pes > simulated_pes_max) continue;
    progress.step(fmt::format("simulation of {} PEs of {}", prediction.pes, request.machine->name));
    prediction.simulated_seconds = simulate(request, prediction.pes, "", network_of(*request.machine));
  }
}

/// Settings that would change the runs themselves, or their files.
void refuse_settings() {
  for (const char* variable : {"HEADWAY_PES", "HEADWAY_COUNTS", "HEADWAY_DIAL"}) {
    if (std::getenv(variable) == nullptr) continue;
    throw SettingError(
        fmt::format("{} is set; headway predict sets it itself: use --measure, --dial, or unset it", variable));
  }
}

int predict(const Request& request) {
  std::vector<Case> cases;
  for (const std::size_t pes : request.measured) cases.push_back({pes, ""});
  const std::size_t smallest = request.measured.front();
  for (const std::string& dials : request.dials) {
    const std::string baseline = baseline_of(base::DialSettings::parse("--dial", dials));
    if (std::ranges::none_of(cases, [&](const Case& one) { return one.dials == baseline; }))
      cases.push_back({smallest, baseline});
    cases.push_back({smallest, dials});
  }
  try {
    run_in_turns(request.program, cases, request.rounds);
  } catch (const ProgramFailed& failed) {
    std::cerr << "headway predict: " << failed.what() << std::flush;
    return failed.status();
  } catch (const UsageError& error) {
    std::cerr << fmt::format("headway predict: {}\n", error.what());
    return exit_status::unusable_arguments;
  }
  auto find = [&](const std::string& dials) -> const Case& {
    return *std::ranges::find_if(cases, [&](const Case& one) { return one.pes == smallest && one.dials == dials; });
  };
  Prediction result;
  result.command = request.program.command;
  result.machine = request.machine;
  if (const char* const transport = std::getenv("HEADWAY_TRANSPORT")) result.transport = transport;
  for (const Case& one : cases) {
    if (one.dials.empty()) result.runs.push_back(fastest_of(one.runs));
  }
  for (const std::string& dials : request.dials) {
    const base::DialSettings settings = base::DialSettings::parse("--dial", dials);
    const MeasuredRun baseline = fastest_of(find(baseline_of(settings)).runs);
    DialResult& dial = result.dials.emplace_back();
    dial.dials = dials;
    dial.baseline_seconds = baseline.seconds;
    dial.measured = fastest_of(find(dials).runs);
    for (const Method method : all_methods)
      dial.predicted.push_back(predict_dials(method, baseline.counts, baseline.seconds, settings));
    dial.frames = baseline.counts.max(&PeRow::frames_sent);
  }
  result.program = growth_of(result.runs);
  if (request.machine) {
    const auto budget = std::size_t(result.runs.back().counts.budget_bytes);
    for (const std::size_t pes : request.pes) {
      result.machines.push_back(predict_machine(result.program, *request.machine, pes, budget));
      if (result.program.is_direct) continue;
      for (const char* topology : {"1d", "2d", "3d"})
        result.alternatives.push_back(predict_machine(result.program, *request.machine, pes, budget, topology));
    }
    for (const unsigned dimensions : {2u, 3u})
      result.necessary.push_back(first_pes_with(dimensions, result.program, *request.machine, budget));
  }
  if (request.method == "sim") {
    try {
      add_simulations(request, result);
    } catch (const ProgramFailed& failed) {
      std::cerr << "headway predict: " << failed.what() << std::flush;
      return failed.status();
    }
  }
  if (request.json.empty())
    std::cout << to_text(result) << std::flush;
  else
    bench::write_json(request.json, to_json(result));
  return 0;
}

std::vector<std::string> parse_dials(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text + "/");
  for (std::string one; std::getline(stream, one, '/');) {
    if (baseline_of(base::DialSettings::parse("--dial", one)).empty())
      throw SettingError(fmt::format("--dial: '{}' is not allowed; allowed are dials above 0, such as o=5us", one));
    all.push_back(one);
  }
  return all;
}

}  // namespace

int predict_command(int argc, char** argv) {
  const std::string name = "headway predict";
  bench::CommandLine app(
      "Runs PROGRAM with few PEs, counts what each PE sends, and predicts its run time, frames and buffers: with dials "
      "here, and with more PEs of a machine. It states how far each method was off on measured runs. --pes, --machine "
      "and --dial may also follow the program; after -- all is the program's.",
      name);
  Request request;
  std::string dials = dials_default;
  describe_program(app, "the program; its output is not shown", "its arguments");
  app.add_value("--pes", "LIST", "numbers of PEs to predict, such as 16,64,1024; needs --machine",
                [&](const std::string& text) { request.pes = parse_pes("--pes", text, 2, predicted_pes_max); });
  app.add_value("--machine", "NAME|FILE", "the machine: one of this repository's machines/, or a file like these",
                [&](const std::string& text) { request.machine = parse_machine(text); });
  app.add_text("--dial", "LIST",
               "dials to predict and to measure, as in HEADWAY_DIAL, and several such lists with / in between, or none "
               "[o=20us/g=20us/L=20us]",
               dials);
  app.add_value("--measure", "LIST", "numbers of PEs to run the program with [2,4,8]",
                [&](const std::string& text) { request.measured = parse_pes("--measure", text, 2, base::pes_max); });
  app.add_choice("--method", "NAME",
                 "formula, or sim: also by simulations, with the computation measured, up to 1024 PEs [formula]",
                 request.method, methods);
  app.add_count("--repeat", "R", "runs of each case, in turns; the fastest counts [3]", request.rounds, 1, 1000);
  app.add_count("--time-limit", "S", "seconds that one run may take [120]", request.program.limit, 1, 86'400);
  app.add_text("--json", "FILE", "write the result to FILE, or - for standard output, instead of tables", request.json);

  int status = 0;
  std::vector<char*> arguments = options_first(argc, argv, {"--pes", "--machine", "--dial"});
  const auto command = parse_program(app, int(arguments.size()), arguments.data(), status);
  if (!command) return status;
  request.program.command = *command;
  try {
    refuse_settings();
    if (request.method == "sim") {
      if (!base::has_simulation)
        throw SettingError("--method: 'sim' is not allowed; this build has no sim transport (Boost.Context)");
      for (const char* variable : {"HEADWAY_TRANSPORT", "HEADWAY_SIM"}) {
        if (std::getenv(variable) != nullptr)
          throw SettingError(fmt::format("--method: 'sim' sets {} itself; unset it", variable));
      }
    }
    if (dials != "none") request.dials = parse_dials(dials);
    bench::require_writable("--json", request.json);
    if (request.machine && request.pes.empty())
      throw SettingError("--machine: it needs --pes, the numbers of PEs there");
    if (!request.machine && !request.pes.empty())
      throw SettingError("--pes: it needs --machine, the machine of these PEs");
  } catch (const SettingError& error) {
    std::cerr << fmt::format("{}: {}\n", name, error.what());
    return exit_status::unusable_arguments;
  }
  return predict(request);
}

}  // namespace headway::tools
