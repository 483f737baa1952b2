// SPDX-License-Identifier: BSD-3-Clause
/// The cases of a comparison that do the same work without Headway.
#pragma once

#include <headway/base/settings.hpp>
#include <string>
#include <vector>

#include "bench_plan.hpp"
#include "bench_request.hpp"

namespace headway::tools {

/// A case for each peer asked for. Throws SettingError for a peer that is not here or cannot do the work.
std::vector<BenchCase> peer_cases(const Request& request, const Work& work, const base::Settings& settings);

/// The peers of a benchmark that were built or are installed here, for people.
std::vector<std::string> peers_here(const Benchmark& benchmark);

/// Appends to a command line.
inline void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace headway::tools
