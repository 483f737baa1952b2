// SPDX-License-Identifier: BSD-3-Clause
/// Latency, rate and bandwidth of the MPIs of this machine, beside a probe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

#include "child.hpp"
#include "core_pairs.hpp"

namespace headway::tools {

/// A library between two processes of this host.
struct ProbedPeer {
  std::string name;           // headway, openmpi, mpich
  std::string missing;        // why it is not measured, or empty
  std::string one_way, rate;  // of its programs: the arguments, or the executables
  std::vector<std::string> launch;
  std::vector<Variable> environment;
  // One value for each round. The rate is that of both directions together.
  std::vector<double> one_way_us = {}, messages_per_second = {}, gigabytes_per_second = {};
};

/// Headway, Open MPI and MPICH; those that are not installed or not built have the reason in `missing`.
std::vector<ProbedPeer> probed_peers();

/// Runs each peer's programs once, on these cores if they are given. A program that fails or does not end makes its
/// peer a missing one. `step` is called before each peer.
void measure_peers(std::vector<ProbedPeer>& peers, const std::optional<CorePair>& cores, std::chrono::seconds limit,
                   const std::function<void(const std::string&)>& step);

/// Three lines of figures, with a column for each peer, and a line for each that is missing.
std::string peer_table(const std::vector<ProbedPeer>& peers);

/// A record for each peer: its spreads over rounds, or "missing".
std::vector<bench::Json> peer_records(const std::vector<ProbedPeer>& peers);

}  // namespace headway::tools
