// SPDX-License-Identifier: BSD-3-Clause
/// `headway tune`: the program with other settings of its aggregators, and what these would gain.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <headway/base/clock.hpp>
#include <iostream>
#include <optional>
#include <record/command_line.hpp>
#include <record/record.hpp>

#include "child.hpp"
#include "commands.hpp"
#include "outcome.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "settings_options.hpp"
#include "sweep.hpp"

namespace headway::tools {
namespace {

using bench::Json;

// A gain below this is no reason to set anything, however sure it is.
constexpr double gain_min = 0.03;

// Kept of the program's output, which `tune` shows only if the program fails.
constexpr std::size_t kept_bytes_max = 16384;

struct Request {
  std::vector<std::string> command;
  std::size_t pes = 1;
  std::size_t pairs = 9;
  std::chrono::seconds limit{120};  // of one run
  std::optional<std::chrono::seconds> sweep_limit = {};
  std::string json;
};

/// Starts the program again and again, for no longer than the request says. Time for which it was stopped, with this
/// process, does not count.
class Runs {
 public:
  explicit Runs(const Request& request) : request_(&request) {}

  /// Once: its seconds, or nothing where it failed.
  std::optional<double> time(const Candidate& candidate) {
    const std::int64_t begin = base::monotonic_ns();
    ended_ = run_child(request_->command, candidate.settings, std::min(request_->limit, left()), kept_bytes_max);
    const std::int64_t ns = base::monotonic_ns() - begin - ended_.stopped.count();
    taken_ns_ += ns;
    if (ended_.status != 0 || ended_.timed_out) return std::nullopt;
    return double(ns) * 1e-9;
  }
  /// Whether time is left for another run. If not, the limit of the sweep may have cut the last run.
  bool in_time() const { return left().count() > 0; }
  const ChildResult& ended() const { return ended_; }

 private:
  /// Rounded up.
  std::chrono::seconds left() const {
    if (!request_->sweep_limit) return std::chrono::seconds::max();
    return std::chrono::ceil<std::chrono::seconds>(*request_->sweep_limit - std::chrono::nanoseconds(taken_ns_));
  }

  const Request* request_;
  std::int64_t taken_ns_ = 0;
  ChildResult ended_;
};

/// Of fewer pairs than were asked for nothing is sure.
bool is_sure(const Sweep& sweep) {
  return sweep.ratio && !sweep.cut_short && sweep.ratio->median <= 1 - gain_min && sweep.ratio->max < 1;
}

/// Why there is no ratio to the defaults.
std::string no_comparison(const Sweep& sweep) {
  if (sweep.cut_short) return "nothing is known: the fastest was not compared with the defaults\n";
  if (sweep.candidates.front().failed) return "nothing is known: the program failed with its defaults\n";
  if (sweep.fastest == 0) return "keep the defaults: with all other settings the program failed\n";
  return fmt::format("keep the defaults: with the settings that were fastest at first the program failed later: {}\n",
                     sweep.candidates[sweep.fastest].name());
}

std::string verdict(const Sweep& sweep) {
  if (!sweep.ratio) return no_comparison(sweep);
  const std::string ratio = fmt::format("{:.2f} times the time of the defaults ({:.2f} to {:.2f}, {} pairs of runs)",
                                        sweep.ratio->median, sweep.ratio->min, sweep.ratio->max, sweep.pairs);
  if (is_sure(sweep)) {
    return fmt::format("gains {:.0f} %: {}\n{}\n", (1 - sweep.ratio->median) * 100,
                       sweep.candidates[sweep.fastest].name(), ratio);
  }
  if (sweep.cut_short) {
    return fmt::format("nothing is sure: the comparison is not complete\nso far the fastest, {}, took {}\n",
                       sweep.candidates[sweep.fastest].name(), ratio);
  }
  return fmt::format(
      "keep the defaults: no settings gain {:.0f} % in the median and something in every pair of runs\n"
      "the fastest took {}\n"
      "where the program gives its aggregators their options, or spends its time elsewhere, no setting can\n",
      gain_min * 100, ratio);
}

std::optional<bench::Spread> seconds_of(const Candidate& candidate) {
  if (candidate.seconds.empty()) return std::nullopt;
  return bench::spread_of(candidate.seconds);
}

std::string shown_seconds(const Candidate& candidate) {
  if (candidate.failed) return "failed";
  const auto seconds = seconds_of(candidate);
  return seconds ? fmt::format("{:.4f}", seconds->median) : "not run";
}

void print(const Sweep& sweep) {
  std::string table = fmt::format("{:>10}  {:>4}  {}\n", "seconds", "runs", "settings");
  for (const Candidate& candidate : sweep.candidates) {
    table += fmt::format("{:>10}  {:>4}  {}\n", shown_seconds(candidate), candidate.seconds.size(), candidate.name());
  }
  std::cout << table << verdict(sweep) << std::flush;
}

Json to_json(const std::vector<Variable>& settings) {
  Json object = Json::object();
  for (const Variable& setting : settings) object[setting.name] = setting.value;
  return object;
}

/// null where nothing was measured.
Json to_json(const std::optional<bench::Spread>& spread) { return spread ? bench::to_json(*spread) : Json(); }

Json result(const Request& request, const Sweep& sweep) {
  std::vector<Json> records;
  for (const Candidate& candidate : sweep.candidates) {
    records.push_back({{"bench", "tune"},
                       {"settings", to_json(candidate.settings)},
                       {"failed", candidate.failed},
                       {"repeat", candidate.seconds.size()},
                       {"seconds", to_json(seconds_of(candidate))}});
  }
  Json file = bench::result_file(request.command, records);
  file["tune"] = {
      {"settings", to_json(is_sure(sweep) ? sweep.candidates[sweep.fastest].settings : std::vector<Variable>())},
      {"ratio", to_json(sweep.ratio)},
      {"cut_short", sweep.cut_short}};
  return file;
}

/// Why the program as it is did not come to its end in order.
std::string failure_of(const Request& request, const Runs& runs) {
  const ChildResult& ended = runs.ended();
  if (!ended.timed_out) return fmt::format("it ended with {} ({})", ended.status, meaning(ended.status));
  if (!runs.in_time()) return fmt::format("it did not end within {} s (--sweep-limit)", request.sweep_limit->count());
  return fmt::format("it did not end within {} s (--time-limit)", request.limit.count());
}

int tune(const Request& request) {
  Runs runs(request);
  std::vector<Candidate> all = candidates(request.pes);
  const std::size_t planned = runs_of_sweep(all.size(), request.pairs);
  Progress progress(1 + planned);
  // Whether it runs at all, and its files are in memory.
  progress.step("the program as it is");
  if (!runs.time(all.front())) {
    progress.clear();
    const ChildResult& ended = runs.ended();
    std::cerr << fmt::format("headway tune: nothing to tune, {} as it is:\n{}", failure_of(request, runs),
                             tail(ended.errors, 10));
    return ended.status != 0 ? ended.status : 1;
  }
  std::size_t made = 0;
  const Sweep sweep = find_fastest(
      std::move(all), request.pairs,
      [&](const Candidate& candidate) {
        progress.step(candidate.name());
        ++made;
        return runs.time(candidate);
      },
      [&] { return runs.in_time(); });
  progress.clear();
  const bool kept = !sweep.candidates.front().failed;
  if (!kept) std::cerr << "headway tune: the program failed with its defaults, which it had not done before\n";
  if (sweep.cut_short) {
    std::cerr << fmt::format("headway tune: the {} s for the sweep were over (--sweep-limit) after {} of its {} runs\n",
                             request.sweep_limit->count(), made, planned);
  }
  if (request.json.empty())
    print(sweep);
  else
    bench::write_json(request.json, result(request, sweep));
  return kept && !sweep.cut_short ? 0 : 1;
}

}  // namespace

int tune_command(int argc, char** argv) {
  const std::string name = "headway tune";
  bench::CommandLine app(
      "Runs PROGRAM with other settings of its aggregators, in turns, and measures the fastest again beside the "
      "defaults. What a program gives its aggregators itself stays. Its whole run is timed, so it should last a second "
      "or so.",
      name);
  Request request;
  describe_program(app, "the program; its output is not shown",
                   "its arguments; options after PROGRAM are the program's");
  const SettingsOptions settings(app, false);
  app.add_count("--repeat", "R", "pairs of runs of the fastest and the defaults [9]", request.pairs, 1, 1000);
  app.add_count("--time-limit", "S", "seconds that one run may take [120]", request.limit, 1, 86'400);
  app.add_count("--sweep-limit", "S", "seconds that all runs together may take [no limit]", request.sweep_limit, 1,
                864'000);
  app.add_text("--json", "FILE", "write the result to FILE, or - for standard output, instead of a table",
               request.json);

  int status = 0;
  const auto line = parse_program_line(app, settings, argc, argv, status);
  if (!line) return status;
  request.command = line->command;
  request.pes = line->settings.pes;
  if (const auto removed = SettingsOptions::unset_aggregation(); !removed.empty()) {
    std::cerr << fmt::format("{}: {} of the environment does not count here\n", name, fmt::join(removed, ", "));
  }
  return tune(request);
}

}  // namespace headway::tools
