// SPDX-License-Identifier: BSD-3-Clause
/// The run time of a program with dials, from the trace of one run without.
#pragma once

#include <chrono>
#include <headway/base/dial_settings.hpp>
#include <headway/model/trace/graph.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"

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

/// A program that was started did not come to its end. The text says how it ended, with its last lines.
struct ProgramFailed : std::runtime_error {
  ProgramFailed(const std::string& what, int its_status) : std::runtime_error(what), status(its_status) {}
  int status;
};

struct TraceOptions {
  std::vector<Variable> environment = {};  // added to this process's
  std::size_t rounds = 1;                  // runs; the fastest one counts
  std::chrono::seconds limit{120};         // of one run
};

/// Runs `command` with these dials ("": none) and a trace. Throws ProgramFailed; SystemError for an unusable trace.
model::trace::Graph traced_run(const std::vector<std::string>& command, const std::string& dials,
                               const TraceOptions& options);

/// Seconds with these dials: the time of the traced run, plus the time by which dials make a replay longer.
double predict_from_trace(const model::trace::Graph& graph, const base::DialSettings& dials);

/// Runs `command` once for all cases. Predicted seconds by case.
std::vector<double> predict_from_trace(const std::vector<std::string>& command,
                                       std::span<const base::DialSettings> cases, const TraceOptions& options = {});

}  // namespace headway::tools
