// SPDX-License-Identifier: BSD-3-Clause
/// Run time, frames, buffers and route of a program at any number of PEs of a machine, from runs with few PEs.
#pragma once

#include <cstddef>
#include <headway/model/machine.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "growth.hpp"
#include "run_counts.hpp"

namespace headway::tools {

/// Some runs of as many PEs: counts and seconds of the fastest.
struct MeasuredRun {
  RunCounts counts;
  double seconds = 0;
  bench::Spread of_all = {};
  bool has_core_for_each_pe = true;
};

/// How the program's numbers grow, for each PE; means over PEs, where not stated.
struct ProgramGrowth {
  std::size_t cores = 1;     // of this machine
  bool is_direct = false;    // each message in a frame of its own
  double message_bytes = 0;  // mean
  bool fixed_size = false;   // of all messages
  double imbalance = 1;      // the PE with the most frames, over the mean
  double hops = 1;           // of a message in the last measured run, by the route model
  double turns_of_wait = 1;  // that follow one another in a wait, for each hop
  std::vector<double> pes;   // measured
  std::vector<Sample> sent, receivers, flushes, control_frames, turns, waves, reads, compute;

  // `flushes`: how often all buffers are posted, so that route_load() gives the measured frames. `turns`: the first
  // ones of waits, without waits for all messages. `waves`: of quiescence; a leaf of its tree sends one control message
  // for each.
  Growth sent_growth() const { return fit_growth(sent); }
};

/// `runs` are in ascending order of PEs, at least 2 each. UsageError without runs.
ProgramGrowth growth_of(std::span<const MeasuredRun> runs);

struct MachinePrediction {
  std::size_t pes = 0;
  std::string topology;  // that the library derives there, or the one of HEADWAY_TOPOLOGY
  double buffer_bytes = 0;
  double next_pes = 0;                    // to which a PE sends frames
  double messages = 0;                    // of a PE, to others
  double frames = 0, bytes = 0;           // sent by the busiest PE, with control frames
  double open_buffer_bytes = 0;           // of a PE, at most
  double frame_memory_bytes = 0;          // the budget
  double table_bytes = 0;                 // of the library, that grow with the PEs of the run
  std::optional<double> compute_seconds;  // at this machine's speed; none where only simulations were measured
  double communication_seconds = 0;
  std::optional<double> latency_seconds;         // none for a machine without L
  std::optional<double> simulated_seconds = {};  // the whole run, with --method sim
  double seconds() const { return compute_seconds.value_or(0) + communication_seconds + latency_seconds.value_or(0); }
};

/// `topology`: empty for the library's own decision.
MachinePrediction predict_machine(const ProgramGrowth& program, const model::Machine& machine, std::size_t pes,
                                  std::size_t budget_bytes, const std::string& topology = {});

/// The fewest PEs from which the library derives a grid of so many dimensions or more, without schemes of hosts: below,
/// the budget leaves each buffer of fewer dimensions enough bytes. Empty if there are none up to 2^24.
std::optional<std::size_t> first_pes_with(unsigned dimensions, const ProgramGrowth& program,
                                          const model::Machine& machine, std::size_t budget_bytes);

/// Frames of a measured run by the route model, over the measured ones, minus 1: from runs with fewer PEs.
std::optional<double> error_of_frames(std::span<const MeasuredRun> runs);

}  // namespace headway::tools
