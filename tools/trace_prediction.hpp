// SPDX-License-Identifier: BSD-3-Clause
/// The run time of a program with dials, from the trace of one run without.
#pragma once

#include <headway/base/dial_settings.hpp>
#include <headway/model/trace/graph.hpp>
#include <string>

#include "program_runs.hpp"

namespace headway::tools {

/// A folder in the folder for temporary files, removed with its content at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Runs the program as `one` says, with a trace; of `rounds` runs the fastest one counts. Throws as run_to_end();
/// SystemError for an unusable trace, UsageError if there is none.
model::trace::Graph traced_run(const Program& program, const Case& one, std::size_t rounds = 1);

/// Seconds with these dials: the time of the traced run, plus the time by which dials make a replay longer.
double predict_from_trace(const model::trace::Graph& graph, const base::DialSettings& dials);

}  // namespace headway::tools
