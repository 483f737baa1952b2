// SPDX-License-Identifier: BSD-3-Clause
/// What `headway probe` prints.
#pragma once

#include <probe/result.hpp>
#include <span>
#include <string>

namespace headway::tools {

/// "thread" as "threads of one process".
std::string name_of_pair(const std::string& pair);

/// A value with its unit and its interval.
std::string shown(const model::Estimate& estimate, const char* unit);

std::string probe_table(const std::string& transport, const std::string& pair, const bench::ProbeResult& result);

/// Latency and bandwidth as the OSU micro-benchmarks print them.
std::string osu_blocks(const std::string& transport, const std::string& pair,
                       std::span<const bench::MeasuredSize> sizes);

}  // namespace headway::tools
