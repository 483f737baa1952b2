// SPDX-License-Identifier: BSD-3-Clause
/// Options of the command line and fields of the record, for programs on any communication.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <string>
#include <utility>
#include <vector>

#include "simulation.hpp"

namespace headway::amr {

inline constexpr unsigned coarsest_level_max = 11;

inline void add_options(bench::CommandLine& app, Options& options, const std::string& prefix = "") {
  app.add_count("--level", "N", prefix + "2^N x 2^N cells of the largest size [5]", options.level, 0,
                coarsest_level_max);
  app.add_count("--levels", "N", prefix + "times that a cell can be divided [3]", options.levels, 0, level_max);
  app.add_count("--steps", "N", prefix + "time steps [100]", options.steps, 1, 1'000'000);
  app.add_count("--refine-every", "N", prefix + "steps between changes of the mesh [5]", options.refine_every, 1,
                1'000'000);
  app.add_flag("--check-every-mesh", prefix + "check all neighbours and ghosts after each change of the mesh",
               options.check_every_mesh);
  app.add_flag("--spoil", prefix + "raise cells before the last step, to test the check", options.spoil);
}

/// Throws SettingError for options that do not fit each other.
inline void check(const Options& options) {
  if (options.level + options.levels <= level_max) return;
  throw SettingError(
      fmt::format("--levels: '{}' is not allowed; allowed with --level {} is a whole number from 0 to {}",
                  options.levels, options.level, level_max - options.level));
}

/// The fields of the result. `times` has those of all PEs.
inline void add_outcome(bench::Json& record, const Options& options, const Outcome& outcome,
                        const std::vector<Times>& times, std::uint64_t cell_steps) {
  record["level"] = options.level;
  record["levels"] = options.levels;
  record["steps"] = options.steps;
  record["refine_every"] = options.refine_every;
  record["cells"] = outcome.cells;
  record["cell_steps"] = cell_steps;
  record["meshes"] = outcome.meshes;
  record["hash"] = fmt::format("{:016x}", outcome.hash);
  record["mass"] = outcome.volume;
  record["mass_lost"] = outcome.lost;
  record["simulated_seconds"] = outcome.simulated;
  const std::pair<const char*, double Times::*> parts[] = {
      {"finite_difference", &Times::difference}, {"time_step", &Times::time_step}, {"push_boundary", &Times::push},
      {"neighbours", &Times::neighbours},        {"setup", &Times::setup},         {"refinement", &Times::refinement},
      {"load_balance", &Times::balance}};
  for (const auto& [name, part] : parts) {
    std::vector<double> milliseconds;
    milliseconds.reserve(times.size());
    for (const Times& one : times) milliseconds.push_back(one.*part * 1e3);
    record["times_ms"][name] = bench::to_json(bench::spread_of(milliseconds));
  }
}

/// For people.
inline std::string describe(const bench::Json& record) {
  std::string text = fmt::format(
      "amr {}: {}, {}, {}, {}, {:.3f} ms{}, mass {:.17g}, hash {}, {}\n", record["mode"].get<std::string>(),
      base::counted(record["pes"].get<std::size_t>(), "PE"), base::counted(record["cells"].get<std::size_t>(), "cell"),
      base::counted(record["steps"].get<std::size_t>(), "step"),
      base::counted(record["meshes"].get<std::size_t>(), "change") + " of the mesh",
      record["seconds"]["median"].get<double>() * 1e3, record.contains("simulated_time") ? " of simulated time" : "",
      record["mass"].get<double>(), record["hash"].get<std::string>(),
      record["verified"].get<bool>() ? "verified" : "WRONG");
  for (const auto& [name, spread] : record["times_ms"].items()) {
    text += fmt::format("  {:<18}{:10.3f} {:10.3f} {:10.3f} ms (min, median, max of PEs)\n", name,
                        spread["min"].get<double>(), spread["median"].get<double>(), spread["max"].get<double>());
  }
  return text;
}

}  // namespace headway::amr
