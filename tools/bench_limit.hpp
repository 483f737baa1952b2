// SPDX-License-Identifier: BSD-3-Clause
/// Cases of headway-limit, the hand-written loops: the mode `limit` of other benchmarks, which their cases are given as
/// fractions of, and the benchmark `limit`.
#pragma once

#include <headway/base/settings.hpp>
#include <string>
#include <vector>

#include "bench_plan.hpp"
#include "bench_request.hpp"

namespace headway::tools {

/// What `mode`, limit or limit-N, does for one benchmark's comparison. Throws SettingError, in the name of --mode,
/// where headway-limit cannot do the like.
BenchCase limit_of_table(const Request& request, const std::string& mode, const Work& work,
                         const base::Settings& settings);
/// For searches: as many messages of `work.bytes` to random PEs as the graph has edges, up to a bound.
BenchCase limit_of_edges(const Request& request, const std::string& mode, const Work& work,
                         const base::Settings& settings);
BenchCase limit_of_messages(const Request& request, const std::string& mode, const Work& work,
                            const base::Settings& settings);

/// The same for zerocopy: the loop that `mode` names, or of limit all of them.
std::vector<BenchCase> limits_of_trips(const Request& request, const std::string& mode, const Work& work,
                                       const base::Settings& settings);

/// Throws SettingError where a mode for which is_limit() holds has another number of buffers than headway-limit takes.
void check_limit_mode(const std::string& mode);

/// All cases of `headway bench limit`.
std::vector<BenchGroup> limit_groups(const Request& request, const base::Settings& settings);

}  // namespace headway::tools
