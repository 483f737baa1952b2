// SPDX-License-Identifier: BSD-3-Clause
/// The run time of a measured run with dials, by formulas.
#pragma once

#include <array>
#include <cstddef>
#include <headway/base/dial_settings.hpp>
#include <string>

#include "run_counts.hpp"

namespace headway::tools {

/// The published formulas for the gap, with reads for the latency; and those for bursts and turns.
enum class Method { uniform, bursty, bursts };
inline constexpr std::array all_methods = {Method::uniform, Method::bursty, Method::bursts};
const char* name_of(Method method);

/// Seconds with these dials of a run that took `seconds` without, from its counts.
double predict_dials(Method method, const RunCounts& counts, double seconds, const base::DialSettings& dials);

/// The same dials at 1 ns instead of their values: such a run has the mechanisms of its dials, and their cost, without
/// their delays. G is 0.001 ns a byte.
std::string baseline_of(const base::DialSettings& dials);

}  // namespace headway::tools
