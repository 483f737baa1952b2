// SPDX-License-Identifier: BSD-3-Clause
/// What `headway predict` found, as text and as a result file.
#pragma once

#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

#include "machine_prediction.hpp"

namespace headway::tools {

/// --method sim runs simulations of at most so many PEs.
inline constexpr std::size_t simulated_pes_max = 1024;

/// Dials at the smallest measured number of PEs.
struct DialResult {
  std::string dials;
  double baseline_seconds = 0;  // with these dials at 1 ns
  double frames = 0;            // of the PE that sent the most, in that run
  MeasuredRun measured;
  std::vector<double> predicted = {};            // seconds, by method
  std::optional<double> simulated_seconds = {};  // with --method sim
};

struct Prediction {
  std::vector<std::string> command;
  std::string transport = "local";          // of the measured runs
  std::vector<MeasuredRun> runs;            // without dials, by PEs
  std::optional<double> simulated_seconds;  // of the first of them, with --method sim
  std::vector<DialResult> dials;
  ProgramGrowth program;
  std::optional<model::Machine> machine;
  std::vector<MachinePrediction> machines;            // by PEs
  std::vector<MachinePrediction> alternatives;        // 1d, 2d, 3d for each of them
  std::vector<std::optional<std::size_t>> necessary;  // PEs from which the library derives 2d, 3d
};

std::string to_text(const Prediction& prediction);
bench::Json to_json(const Prediction& prediction);

}  // namespace headway::tools
