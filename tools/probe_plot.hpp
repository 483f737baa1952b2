// SPDX-License-Identifier: BSD-3-Clause
/// A drawing of the measured times of `headway probe`.
#pragma once

#include <probe/result.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::tools {

struct PlottedPair {
  std::string name;
  std::span<const bench::ProbeLaunch> launches;  // of the caller
  const bench::ProbeResult* result = nullptr;    // of these launches
};

/// An SVG document: times over sizes, both axes logarithmic. For each pair dots of the interval between messages in a
/// row, the fitted lines g + (s - 1) G, and a dashed line of the time one way. Colours follow the reader's scheme,
/// light or dark. Intervals that are not positive are left out.
std::string plot_of(std::span<const PlottedPair> pairs);

}  // namespace headway::tools
