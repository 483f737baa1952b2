// SPDX-License-Identifier: BSD-3-Clause
/// How the run time of a traced run grows with each parameter of the network.
#pragma once

#include <headway/model/trace/replay.hpp>
#include <optional>
#include <span>

namespace headway::model::trace {

/// A parameter of LogGP, or the cost of an item.
struct Parameter {
  const char* name;                   // as in HEADWAY_DIAL
  double base::DialSettings::*value;  // in ns, or ns a byte
  double Path::*count;                // on the path: the slope
  double most;                        // the largest allowed value
};
std::span<const Parameter> parameters();
base::DialSettings dial(const Parameter& parameter, double value);

/// The value at which the run time leaves the line of the longest path without dials: where another path takes over.
/// The two lines are cut. Empty if it stays within 0.1 % of that line up to `most`.
std::optional<double> critical_value(Replay& replay, const Parameter& parameter);

/// The value with which the run takes `factor` times as long, within 0.1 % of the value. Empty if `most` takes less.
std::optional<double> value_of_factor(Replay& replay, const Parameter& parameter, double factor);

}  // namespace headway::model::trace
