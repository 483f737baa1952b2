// SPDX-License-Identifier: BSD-3-Clause
/// What `headway probe` prints.
#pragma once

#include <probe/result.hpp>
#include <span>
#include <string>

#include "probe_launches.hpp"

namespace headway::tools {

/// "threads of one process", with its cores where they are known.
std::string name_of_pair(const ProbeTarget& target);

/// A value with its unit and its interval.
std::string shown(const model::Estimate& estimate, const char* unit);

/// `dials`: HEADWAY_DIAL of the launches; empty: none.
std::string probe_table(const ProbeTarget& target, const bench::ProbeResult& result, const std::string& dials);

/// Latency and bandwidth as the OSU micro-benchmarks print them.
std::string osu_blocks(const ProbeTarget& target, std::span<const bench::MeasuredSize> sizes);

}  // namespace headway::tools
