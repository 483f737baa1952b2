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
#include <iostream>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <sstream>

#include "child.hpp"
#include "commands.hpp"
#include "dial_prediction.hpp"
#include "machine_prediction.hpp"
#include "outcome.hpp"
#include "predict_report.hpp"
#include "program.hpp"
#include "progress.hpp"

namespace headway::tools {
namespace {

// Kept of the program's output, which is shown only if the program fails.
constexpr std::size_t kept_bytes_max = 16384;
constexpr std::size_t predicted_pes_max = std::size_t(1) << 24;
constexpr const char* dials_default = "o=20us/g=20us/L=20us";

struct Request {
  std::vector<std::string> command;
  std::vector<std::size_t> measured = {2, 4, 8};
  std::vector<std::size_t> pes;  // to predict
  std::optional<model::Machine> machine;
  std::vector<std::string> dials;
  std::size_t rounds = 3;
  std::chrono::seconds limit{120};
  std::string json;
};

/// The program did not come to its end.
struct ProgramFailed {
  int status;
};

/// Runs the program once.
RunCounts run_once(const Request& request, std::size_t pes, const std::string& dials) {
  const TemporaryFile file;
  std::vector<Variable> settings = {{"HEADWAY_PES", std::to_string(pes)}, {"HEADWAY_COUNTS", file.path()}};
  if (!dials.empty()) settings.push_back({"HEADWAY_DIAL", dials});
  const ChildResult ended = run_child(request.command, settings, request.limit, kept_bytes_max);
  if (ended.timed_out || ended.status != 0) {
    const std::string how = ended.timed_out
                                ? fmt::format("did not end within {} s (--time-limit)", request.limit.count())
                                : fmt::format("ended with {} ({})", ended.status, meaning(ended.status));
    std::cerr << fmt::format("headway predict: with {} PEs{} the program {}:\n{}", pes,
                             dials.empty() ? "" : " and dials " + dials, how, tail(ended.errors, 10));
    throw ProgramFailed{ended.status != 0 ? ended.status : 1};
  }
  return read_counts(file.path());
}

/// The runs of one case: the median one's counts.
MeasuredRun median_of(std::vector<RunCounts> runs) {
  std::vector<double> seconds;
  for (const RunCounts& run : runs) seconds.push_back(run.seconds());
  const bench::Spread spread = bench::spread_of(seconds);
  std::ranges::sort(runs, {}, &RunCounts::seconds);
  MeasuredRun result{runs[runs.size() / 2], spread.median, spread.min, spread.max, true};
  result.has_core_for_each_pe = result.counts.simulated || result.counts.pes <= base::available_cores();
  return result;
}

struct Case {
  std::size_t pes;
  std::string dials;  // empty: none
  std::vector<RunCounts> runs = {};
};

/// All cases in turns, round after round, since the machine may change its speed.
void run_in_turns(const Request& request, std::vector<Case>& cases) {
  Progress progress(request.rounds * cases.size());
  for (std::size_t round = 0; round < request.rounds; ++round) {
    for (Case& one : cases) {
      progress.step(fmt::format("{} PEs{}", one.pes, one.dials.empty() ? "" : ", " + one.dials));
      one.runs.push_back(run_once(request, one.pes, one.dials));
    }
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
    run_in_turns(request, cases);
  } catch (const ProgramFailed& failed) {
    return failed.status;
  }
  auto find = [&](const std::string& dials) -> const Case& {
    return *std::ranges::find_if(cases, [&](const Case& one) { return one.pes == smallest && one.dials == dials; });
  };
  Prediction result{request.command, {}, {}, {}, request.machine, {}, {}, {}};
  for (const Case& one : cases) {
    if (one.dials.empty()) result.runs.push_back(median_of(one.runs));
  }
  for (const std::string& dials : request.dials) {
    const base::DialSettings settings = base::DialSettings::parse("--dial", dials);
    const MeasuredRun baseline = median_of(find(baseline_of(settings)).runs);
    DialResult& dial = result.dials.emplace_back();
    dial.dials = dials;
    dial.baseline_seconds = baseline.seconds;
    dial.measured = median_of(find(dials).runs);
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
  if (request.json.empty())
    std::cout << to_text(result) << std::flush;
  else
    bench::write_json(request.json, to_json(result));
  return 0;
}

std::vector<std::size_t> parse_pes(const std::string& what, const std::string& text, std::size_t least,
                                   std::size_t most) {
  std::vector<std::size_t> pes;
  for (const std::string& part : bench::parse_list(what, text))
    pes.push_back(bench::parse_count(what, part, least, most));
  std::ranges::sort(pes);
  if (std::ranges::adjacent_find(pes) != pes.end())
    throw SettingError(fmt::format("{}: '{}' is not allowed; each number of PEs may occur once", what, text));
  return pes;
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

/// Options that may also follow the program: moved before it.
std::vector<char*> options_first(int argc, char** argv) {
  constexpr std::array<std::string_view, 3> names = {"--pes", "--machine", "--dial"};
  std::vector<char*> first(argv, argv + std::min(argc, 1)), rest;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text == "--") {
      rest.insert(rest.end(), argv + i, argv + argc);
      break;
    }
    const bool is_one = std::ranges::find(names, text.substr(0, text.find('='))) != names.end();
    (is_one ? first : rest).push_back(argv[i]);
    if (is_one && text.find('=') == text.npos && i + 1 < argc) first.push_back(argv[++i]);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
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
                [&](const std::string& text) {
                  try {
                    request.machine = model::find_machine(text);
                  } catch (const SystemError& error) {
                    throw SettingError(error.what());
                  }
                });
  app.add_text("--dial", "LIST",
               "dials to predict and to measure, as in HEADWAY_DIAL, and several such lists with / in between, or none "
               "[o=20us/g=20us/L=20us]",
               dials);
  app.add_value("--measure", "LIST", "numbers of PEs to run the program with [2,4,8]",
                [&](const std::string& text) { request.measured = parse_pes("--measure", text, 2, base::pes_max); });
  app.add_count("--repeat", "R", "runs of each case, in turns; medians count [3]", request.rounds, 1, 1000);
  app.add_count("--time-limit", "S", "seconds that one run may take [120]", request.limit, 1, 86'400);
  app.add_text("--json", "FILE", "write the result to FILE, or - for standard output, instead of tables", request.json);

  int status = 0;
  std::vector<char*> arguments = options_first(argc, argv);
  const auto command = parse_program(app, int(arguments.size()), arguments.data(), status);
  if (!command) return status;
  request.command = *command;
  try {
    refuse_settings();
    if (dials != "none") request.dials = parse_dials(dials);
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
