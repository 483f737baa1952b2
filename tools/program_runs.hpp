// SPDX-License-Identifier: BSD-3-Clause
/// Runs of a program with counts, for the commands that predict.
#pragma once

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"
#include "machine_prediction.hpp"
#include "run_counts.hpp"
#include "smpi_launcher.hpp"

namespace headway::tools {

/// The program did not come to its end; what() says how in its first line, and shows the end of its output.
class ProgramFailed : public std::runtime_error {
 public:
  ProgramFailed(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

struct Program {
  std::vector<std::string> command;
  std::chrono::seconds limit{120};         // of one run
  bool times_itself = false;               // its time is that of its record (--json), not that of the run
  const SmpiLauncher* launcher = nullptr;  // if it runs on SMPI
};

/// One kind of run.
struct Case {
  std::size_t pes = 0;                  // 0: as the environment says
  std::string dials = {};               // HEADWAY_DIAL; empty: none
  std::vector<Variable> settings = {};  // more of the environment
  std::vector<RunCounts> runs = {};     // results, by round
};

/// Runs the program once, with `more` in its environment and these words after its arguments. Throws ProgramFailed.
void run_to_end(const Program& program, const Case& one, const std::vector<Variable>& more,
                const std::vector<std::string>& words = {});

/// The same with counts. Throws ProgramFailed, SystemError without the record of a program that times itself, and
/// UsageError if it wrote no counts, as a program without Headway.
RunCounts run_once(const Program& program, const Case& one);

/// Each case once a round, in turns, since the machine may change its speed. Shows progress on a terminal.
void run_in_turns(const Program& program, std::vector<Case>& cases, std::size_t rounds);

/// Time and counts of the fastest run, since load of other programs only slows a run down.
MeasuredRun fastest_of(const std::vector<RunCounts>& runs);

}  // namespace headway::tools
