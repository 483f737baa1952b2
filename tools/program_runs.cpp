// SPDX-License-Identifier: BSD-3-Clause
#include "program_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <optional>

#include "outcome.hpp"
#include "progress.hpp"

namespace headway::tools {
namespace {

// Kept of the program's output, which is shown only if the program fails.
constexpr std::size_t kept_bytes_max = 16384;

/// The seconds of the record that the program wrote; of several records their sum.
double recorded_seconds(const std::string& path) {
  try {
    std::ifstream file(path);
    const bench::Json json = bench::Json::parse(file);
    if (!json.contains("records")) return json.at("seconds").at("median").get<double>();
    double sum = 0;
    for (const bench::Json& record : json.at("records")) sum += record.at("seconds").at("median").get<double>();
    return sum;
  } catch (const bench::Json::exception& error) {
    throw SystemError(fmt::format("the program wrote no record with its seconds to --json FILE: {}", error.what()));
  }
}

bool is_simulated(const Case& one) {
  return std::ranges::any_of(one.settings, [](const Variable& v) { return v.name == "HEADWAY_SIM"; });
}

}  // namespace

void run_to_end(const Program& program, const Case& one, const std::vector<Variable>& more,
                const std::vector<std::string>& words) {
  std::vector<Variable> settings = more;
  std::vector<std::string> command;
  if (program.launcher != nullptr) {
    command = program.launcher->command(one.pes);
    for (Variable& variable : program.launcher->environment()) settings.push_back(std::move(variable));
  } else if (one.pes != 0) {
    settings.push_back({"HEADWAY_PES", std::to_string(one.pes)});
  }
  command.insert(command.end(), program.command.begin(), program.command.end());
  command.insert(command.end(), words.begin(), words.end());
  if (!one.dials.empty()) settings.push_back({"HEADWAY_DIAL", one.dials});
  settings.insert(settings.end(), one.settings.begin(), one.settings.end());
  const ChildResult ended = run_child(command, settings, program.limit, kept_bytes_max);
  if (!ended.timed_out && ended.status == 0) return;
  const std::string how = ended.timed_out ? fmt::format("did not end within {} s (--time-limit)", program.limit.count())
                                          : fmt::format("ended with {} ({})", ended.status, meaning(ended.status));
  const std::string with = one.pes == 0 ? "" : fmt::format("with {} PEs ", one.pes);
  throw ProgramFailed(
      ended.status != 0 ? ended.status : 1,
      fmt::format("{}{}{}the program {}:\n{}", with, one.dials.empty() ? "" : "with dials " + one.dials + " ",
                  is_simulated(one) ? "in a simulation " : "", how, tail(ended.errors, 10)));
}

RunCounts run_once(const Program& program, const Case& one) {
  const TemporaryFile file;
  std::optional<TemporaryFile> record;
  std::vector<std::string> words;
  if (program.times_itself) words = {"--json", record.emplace().path()};
  run_to_end(program, one, {{"HEADWAY_COUNTS", file.path()}}, words);
  if (std::filesystem::is_empty(file.path())) {
    throw UsageError(fmt::format("'{}' wrote no counts: it is no Headway program, or it ended without its run",
                                 program.command.front()));
  }
  RunCounts counts = read_counts(file.path());
  if (record) counts.own_seconds = recorded_seconds(record->path());
  return counts;
}

void run_in_turns(const Program& program, std::vector<Case>& cases, std::size_t rounds) {
  Progress progress(rounds * cases.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Case& one : cases) {
      progress.step(fmt::format("{} PEs{}{}", one.pes, one.dials.empty() ? "" : ", " + one.dials,
                                is_simulated(one) ? ", simulated" : ""));
      one.runs.push_back(run_once(program, one));
    }
  }
}

MeasuredRun fastest_of(const std::vector<RunCounts>& runs) {
  std::vector<double> seconds;
  for (const RunCounts& run : runs) seconds.push_back(run.seconds());
  const bench::Spread spread = bench::spread_of(seconds);
  const auto fastest = std::ranges::min_element(runs, {}, &RunCounts::seconds);
  MeasuredRun result{*fastest, spread.min, spread, true};
  result.has_core_for_each_pe = result.counts.simulated || result.counts.pes <= base::available_cores();
  return result;
}

}  // namespace headway::tools
