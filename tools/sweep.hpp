// SPDX-License-Identifier: BSD-3-Clause
/// A search for the fastest of some settings, by runs that take turns.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

#include "child.hpp"

namespace headway::tools {

/// One way to run the program. The first of a sweep is without settings: the derived defaults.
struct Candidate {
  std::vector<Variable> settings;
  std::vector<double> seconds = {};  // of its runs
  bool failed = false;

  /// "HEADWAY_BUFFER_BYTES=4096 HEADWAY_TOPOLOGY=2d", or "the defaults".
  std::string name() const;
};

/// Buffers of 1 to 256 KiB by topology by threshold, and the defaults first. Grids of two dimensions from 5 PEs on.
std::vector<Candidate> candidates(std::size_t pes);

/// Runs one candidate once: its seconds, or nothing where it failed.
using Measure = std::function<std::optional<double>(const Candidate& candidate)>;

struct Sweep {
  std::vector<Candidate> candidates;  // of all, with their runs
  std::size_t fastest = 0;            // of the others in the rounds; 0: all of them failed
  /// Of its time to the defaults', in so many pairs of neighbouring runs; none where one of the two failed.
  std::optional<bench::Spread> ratio = {};
  std::size_t pairs = 0;
  bool cut_short = false;  // there was no time for all runs
};

/// Each round runs those that are left once, in turns, and leaves the faster half; the last one is then measured
/// `pairs` times beside the defaults. A candidate that fails is left out. `candidates` starts with the defaults, and
/// these must not fail. When in_time() says no the sweep is over; what failed just then may have been ended because of
/// that, and is not held to have failed.
Sweep find_fastest(
    std::vector<Candidate> candidates, std::size_t pairs, const Measure& measure,
    const std::function<bool()>& in_time = [] { return true; });

/// So many runs that takes.
std::size_t runs_of_sweep(std::size_t candidates, std::size_t pairs);

}  // namespace headway::tools
