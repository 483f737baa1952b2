// SPDX-License-Identifier: BSD-3-Clause
#include "trace_prediction.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <headway/base/error.hpp>
#include <headway/model/trace/replay.hpp>
#include <optional>
#include <system_error>

#include "outcome.hpp"

namespace headway::tools {
namespace {

// Kept of the program's output, which is shown only if the program fails.
constexpr std::size_t kept_bytes_max = 16384;

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  path_ = (error ? std::filesystem::path("/tmp") : folder) / "headway-trace-XXXXXX";
  if (::mkdtemp(path_.data()) == nullptr) base::throw_errno("mkdtemp of a folder for a trace");
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

model::trace::Graph traced_run(const std::vector<std::string>& command, const std::string& dials,
                               const TraceOptions& options) {
  std::optional<model::trace::Graph> fastest;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    const TemporaryFolder folder;
    std::vector<Variable> environment = options.environment;
    environment.push_back({"HEADWAY_TRACE", folder.path()});
    if (!dials.empty()) environment.push_back({"HEADWAY_DIAL", dials});
    const ChildResult ended = run_child(command, environment, options.limit, kept_bytes_max);
    if (ended.timed_out || ended.status != 0) {
      const std::string how = ended.timed_out
                                  ? fmt::format("did not end within {} s (--time-limit)", options.limit.count())
                                  : fmt::format("ended with {} ({})", ended.status, meaning(ended.status));
      throw ProgramFailed(fmt::format("the program{} {}:\n{}", dials.empty() ? "" : " with dials " + dials, how,
                                      tail(ended.errors, 10)),
                          ended.status != 0 ? ended.status : 1);
    }
    if (!std::filesystem::exists(folder.path() + "/" + fmt::format(model::trace::file_name_format, 0))) {
      throw ProgramFailed("the program wrote no trace: it is no program of Headway, or one of an earlier version\n", 1);
    }
    model::trace::Graph graph = model::trace::read_graph(folder.path());
    if (!fastest || graph.run_ns < fastest->run_ns) fastest = std::move(graph);
  }
  return std::move(*fastest);
}

double predict_from_trace(const model::trace::Graph& graph, const base::DialSettings& dials) {
  model::trace::Replay replay(graph);
  const double without = replay.run({});
  return 1e-9 * (graph.run_ns + replay.run(dials) - without);
}

std::vector<double> predict_from_trace(const std::vector<std::string>& command,
                                       std::span<const base::DialSettings> cases, const TraceOptions& options) {
  const model::trace::Graph graph = traced_run(command, "", options);
  std::vector<double> seconds;
  for (const base::DialSettings& dials : cases) seconds.push_back(predict_from_trace(graph, dials));
  return seconds;
}

}  // namespace headway::tools
