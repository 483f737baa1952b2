// SPDX-License-Identifier: BSD-3-Clause
/// What `headway sensitivity` found: slowdowns of a program against dials, and what follows from them.
#pragma once

#include <cstddef>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

#include "dial_sweep.hpp"
#include "machine_prediction.hpp"

namespace headway::tools {

/// Seconds at one value of a dial, over those without it, by method: 1 is no change.
struct PredictedSlowdown {
  std::string method;  // formula, uniform, bursty, trace, sim
  double slowdown = 1;
};

struct SweepPoint {
  double value = 0;             // as in DialSweep::values
  bench::Spread seconds = {};   // of all rounds
  bench::Spread slowdown = {};  // over the run without delays of the same round
  std::vector<PredictedSlowdown> predicted = {};
  const PredictedSlowdown* by(std::string_view method) const;
};

/// A line through the points of a sweep.
struct SweepFit {
  double slope = 0;  // slowdown for each us, of G for each ns a byte
  double r2 = 1;     // 1: all points are on the line
};

/// One dial at one number of PEs.
struct SweepCurve {
  DialSweep sweep;
  MeasuredRun baseline;            // with that dial at almost 0; its counts
  std::vector<SweepPoint> points;  // by value
  SweepFit fit = {};
  double largest() const { return points.back().slowdown.median; }
};

/// All dials at one number of PEs.
struct Panel {
  std::size_t pes = 0;
  MeasuredRun plain;  // without dials
  std::vector<SweepCurve> curves;
};

struct Sensitivity {
  std::vector<std::string> command;
  std::string on = "local";
  std::string network;  // of simulated runs, as HEADWAY_SIM has it
  std::size_t rounds = 0;
  std::vector<Panel> panels;  // by PEs
};

/// Least squares through (0, 1).
SweepFit fit_of(const DialSweep& sweep, const std::vector<SweepPoint>& points);

/// Largest error of a method over the points that have it, as a fraction of the measured slowdown.
std::optional<double> largest_error(const SweepCurve& curve, std::string_view method);

/// In words, most important first: to which dials the run is sensitive, which changes would help and why. Each sentence
/// names its evidence.
std::vector<std::string> conclusions(const Panel& panel);

std::string to_text(const Sensitivity& result);
bench::Json to_json(const Sensitivity& result);
/// One page of HTML that needs no other file: conclusions, a plot for each dial, and tables.
std::string to_page(const Sensitivity& result);

}  // namespace headway::tools
