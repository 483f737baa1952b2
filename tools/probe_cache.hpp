// SPDX-License-Identifier: BSD-3-Clause
/// Results of `headway probe --save`, kept for each host, transport and build.
#pragma once

#include <ctime>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

/// Records of one transport, as `headway probe --json` writes them.
struct SavedProbe {
  std::string path;
  std::time_t saved_at = 0;
  std::vector<bench::Json> records;
};

/// Replaces what this host and build have of these transports and pairs, and the text of each transport for the library
/// (transport::probed_costs). A reader sees the old file or the new one. Returns the paths of the result files. Throws
/// SystemError.
std::vector<std::string> save_probe(const std::vector<std::string>& command, const std::vector<bench::Json>& records);

/// All that this host and build have, by transport. A file that is no result is left out.
std::vector<SavedProbe> saved_probes();

}  // namespace headway::tools
