// SPDX-License-Identifier: BSD-3-Clause
/// The results that `headway probe --save` keeps of a transport, as the library reads them: a short text beside the
/// result file. The library reads it only with HEADWAY_COSTS=probed, in one process of a run.
///
///     headway costs 1
///     process 155.2 0.024 58 45.1 54.2       pair, o, G, L, shortest and longest time of a cache line; all in ns
#pragma once

#include <headway/transport/frame_costs.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headway::transport {

/// $XDG_CACHE_HOME/headway, or ~/.cache/headway. Empty if neither variable is an absolute path.
std::string probe_directory();

/// "probe-HOST-BUILD-": the first part of the names of kept files of this host and build. A transport follows.
std::string probe_file_prefix();

/// The text of a transport. Throws SettingError if there is no directory for it.
std::string probed_costs_path(const std::string& transport);

/// The costs of a frame between two PEs. Of pairs of processes there may be two: on cores with and without a shared
/// cache.
struct ProbedPair {
  std::string name;  // thread, process, process_apart, host
  FrameCosts costs;
  double line_ns_least = 0, line_ns_most = 0;  // of all launches; 0: not known
};

std::string to_text(const std::vector<ProbedPair>& pairs);

/// Throws SettingError for a text that is none of to_text(), with its first wrong line.
std::vector<ProbedPair> read_probed_costs(const std::string& text);

/// The costs of a pair (thread, process, host) that a run with HEADWAY_COSTS=probed uses. Of two pairs of processes it
/// is the one without a shared cache, because most pairs of a large run share none. Throws SettingError if there are no
/// results of the pair. Not used, with the reason as `ignored`, if the machine changed its speed during the
/// measurement.
struct ChosenCosts {
  FrameCosts costs;
  std::string ignored;
};
ChosenCosts probed_costs(const std::string& transport, const std::string& pair);

}  // namespace headway::transport
