// SPDX-License-Identifier: BSD-3-Clause
#include "trace_prediction.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <headway/base/error.hpp>
#include <headway/model/trace/replay.hpp>
#include <optional>
#include <system_error>

namespace headway::tools {
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

model::trace::Graph traced_run(const Program& program, const Case& one, std::size_t rounds) {
  std::optional<model::trace::Graph> fastest;
  for (std::size_t round = 0; round < rounds; ++round) {
    const TemporaryFolder folder;
    run_to_end(program, one, {{"HEADWAY_TRACE", folder.path()}});
    if (!std::filesystem::exists(folder.path() + "/" + fmt::format(model::trace::file_name_format, 0))) {
      throw UsageError(fmt::format("'{}' wrote no trace: it is no Headway program, or it ended without its run",
                                   program.command.front()));
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

}  // namespace headway::tools
