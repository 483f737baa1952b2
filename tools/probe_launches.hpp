// SPDX-License-Identifier: BSD-3-Clause
/// The pairs of PEs that `headway probe` measures, and the launches of headway-probe that measure them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <probe/samples.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"
#include "core_pairs.hpp"

namespace headway::tools {

struct ProbeRequest {
  std::vector<std::string> transports;  // empty: all that are available, without sim
  std::vector<std::string> pairs;       // empty: all that the transport has
  std::string hosts, agent;             // two names with a comma; and the option of `headway run`
  std::string dial, sim;                // HEADWAY_DIAL, HEADWAY_SIM
  std::string command;                  // a line of shell that starts headway-probe on two PEs; or empty
  std::size_t launches = 6, points = 40, bytes_max = std::size_t(64) << 10, messages = 32, repeats = 7;
  std::uint64_t seed = 1;
  std::chrono::seconds limit{120};  // of one launch
};

/// Two PEs over one transport.
struct ProbeTarget {
  std::string transport;
  std::string pair;  // thread, process, host, command
  std::vector<std::string> command;
  std::vector<Variable> environment;
  std::optional<CorePair> cores = {};  // empty: not known, or on two hosts
};

/// Processes of this host that share memory are two targets if the host has pairs of cores with and without a shared
/// cache. Throws SettingError for a transport or a pair that is not available here, with the reason.
std::vector<ProbeTarget> probe_targets(const ProbeRequest& request);

/// A launch that ended without samples: its status becomes the command's.
struct LaunchFailed : std::runtime_error {
  LaunchFailed(const std::string& message, int launch_status) : std::runtime_error(message), status(launch_status) {}
  int status;
};

/// Starts headway-probe once. `number` is part of the seed, so that launches have different sizes.
bench::ProbeLaunch launch_probe(const ProbeTarget& target, const ProbeRequest& request, std::size_t number);

}  // namespace headway::tools
