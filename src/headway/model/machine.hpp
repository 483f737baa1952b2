// SPDX-License-Identifier: BSD-3-Clause
/// Machines as text: the published parameters of their networks.
///
/// A machine file has one `key = value` a line; `#` begins a comment. Times have a unit, ns, us, ms or s. Values are as
/// their source prints them.
///
///   name      = summit               letters, digits, '-' and '_'; required
///   title     = ...                  for people
///   source    = ...                  the publication; required
///   alpha     = 150 ns               cost of a message; needs beta
///   beta      = 0.15 ns/B            cost of a byte
///   o         = 2.9 us               LogGP: overhead of the sender, and of the receiver; needs g, L and bandwidth
///   g         = 5.8 us               LogGP: gap
///   L         = 5.0 us               LogGP: latency
///   bandwidth = 38 MB/s              LogGP: 1 / G; 1 MB is 10^6 bytes
///   cores     = 42                   of a node
///
/// A file has alpha and beta, or o, g, L and bandwidth, or all six.
#pragma once

#include <cstddef>
#include <headway/model/alpha_beta.hpp>
#include <headway/model/loggp.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headway::model {

struct Machine {
  std::string name, title, source;
  std::optional<AlphaBeta> alpha_beta;  // as printed
  std::optional<LogGP> loggp;           // as printed
  std::optional<std::size_t> cores;     // of a node
};

/// alpha and beta as printed, else by alpha_beta_of(): alpha = 2 o, beta = G.
AlphaBeta costs_of(const Machine& machine);

/// SettingError "FILE:LINE: ..." with the value and the allowed ones, for unknown keys, keys that come twice, values
/// without or with another unit, values out of range, and keys that are missing.
Machine parse_machine(std::string_view file, std::string_view text);

/// Reads a file. SystemError if the system refuses it.
Machine read_machine(const std::string& path);

/// The machines of this repository's folder machines/, by name. The library holds their texts.
std::vector<Machine> known_machines();

/// A known machine, or a file if `name` has a '/' or a '.'. SettingError with all names for one that is unknown.
Machine find_machine(const std::string& name);

}  // namespace headway::model
