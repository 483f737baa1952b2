// SPDX-License-Identifier: BSD-3-Clause
/// A trace in the format of Perfetto (https://perfetto.dev/docs/reference/trace-packet-proto), compressed by gzip.
#pragma once

#include <cstdint>
#include <string>

#include "trace_folder.hpp"

namespace headway::tools {

struct PerfettoCounts {
  std::uint64_t slices = 0, arrows = 0;
  std::uint64_t bytes = 0;  // before compression
};

/// A process for each one of the run, a thread for each PE, counters for each process. A frame is an instant `post` and
/// the slice of its handler, joined by an arrow. SystemError if the file cannot be written.
PerfettoCounts write_perfetto(const TraceFolder& folder, const std::string& path);

}  // namespace headway::tools
