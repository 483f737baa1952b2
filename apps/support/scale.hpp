// SPDX-License-Identifier: BSD-3-Clause
/// Sizes of the programs of the study of 1998 (Martin, Vahdat, Culler, Anderson, "Effects of communication latency,
/// overhead, and bandwidth in a cluster architecture", ISCA 1997), as a fraction of the published ones.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <record/command_line.hpp>
#include <string>

namespace headway::apps {

/// Adds --scale F. `published` names the size at F = 1, of all PEs together, such as "32 M keys"; `scale` is the
/// default. Where an option with a size is given (CommandLine::given), the program uses that size instead.
inline void add_scale(bench::CommandLine& app, const std::string& published, double& scale) {
  app.add_number("--scale", "F", fmt::format("size in all as a fraction of the study's, {} [{}]", published, scale),
                 scale, 1e-9, 16);
}

/// The fraction `scale` of `published`, rounded, and at least `min`.
inline std::uint64_t scaled(double scale, double published, std::uint64_t min = 1) {
  return std::max(min, std::uint64_t(std::llround(scale * published)));
}

}  // namespace headway::apps
