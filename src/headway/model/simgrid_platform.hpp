// SPDX-License-Identifier: BSD-3-Clause
/// Machines as platforms of SimGrid, for programs on its SMPI.
#pragma once

#include <cstddef>
#include <headway/model/loggp.hpp>
#include <headway/model/machine.hpp>
#include <string>

namespace headway::model {

/// The network that simulators take from a machine file: its LogGP. A file without has alpha and beta, and no latency:
/// then o = alpha / 2, G = beta, and g = L = 0, so that a message of n bytes takes alpha + beta n.
LogGP network_of(const Machine& machine);

inline constexpr std::size_t platform_pes_max = 1'000'000;

/// A platform file for SimGrid 3.32: hosts for `pes` ranks, `pes_per_host` each, around one switch. It also sets the
/// options of SMPI with which a message of n bytes takes 2 o + L + n G, one way, at any n, and computation takes no
/// time. SimGrid has no g. Messages within a host take as long as others, because machine files state one network.
/// Options of smpirun replace those of the file. SettingError for numbers out of range, and for G = 0.
std::string simgrid_platform(const Machine& machine, const LogGP& network, std::size_t pes, std::size_t pes_per_host);

/// The host of each rank, one a line, for `smpirun -hostfile`: consecutive ranks share a host.
std::string simgrid_hosts(const Machine& machine, std::size_t pes, std::size_t pes_per_host);

}  // namespace headway::model
