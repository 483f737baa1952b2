// SPDX-License-Identifier: BSD-3-Clause
/// The ways to send that headway-zerocopy knows, for it and for the command. A further one is a class in a header
/// beside regular.hpp, a name here and a line in zerocopy.cpp's measure_way().
#pragma once

#include <string>
#include <vector>

namespace headway::bench {

/// regular: a span among the arguments of an aggregator's send(), read in place; kept: copied by its handler. send,
/// post, direct: send_buffer(), that with on_posted(), and Source with get().
inline const std::vector<std::string> zerocopy_ways = {"regular", "kept", "send", "post", "direct"};

/// Content lies on the heap, or in memory that the PEs of a host have mapped before they send anything.
inline const std::vector<std::string> zerocopy_memories = {"heap", "pool"};

/// In records.
inline std::string zerocopy_mode(const std::string& way) {
  return way == "regular" || way == "kept" ? way : "zc-" + way;
}

}  // namespace headway::bench
