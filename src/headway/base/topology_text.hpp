// SPDX-License-Identifier: BSD-3-Clause
/// The text of a topology in options and settings.
#pragma once

#include <optional>
#include <string_view>

namespace headway::base {

/// A scheme has a code and, beside it, a readable name. Both may be followed by a number of dimensions, as in "wps-2d".
struct SchemeName {
  std::string_view code;
  std::string_view readable;  // empty: none
  unsigned dimensions_max;
};
inline constexpr SchemeName scheme_names[] = {
    {.code = "wps", .readable = "pe-to-process", .dimensions_max = 7},
    {.code = "pp", .readable = "process-to-process", .dimensions_max = 7},
    {.code = "whs", .readable = "pe-to-host", .dimensions_max = 7},
    {.code = "hh", .readable = "host-to-host", .dimensions_max = 6},
};

/// For errors and help.
inline constexpr std::string_view topologies_allowed =
    "direct, 1d, 2d, ... 8d, ww (or pe-to-pe; the same as 1d), wps (or pe-to-process), wps-2d, ... wps-7d,"
    " pp (or process-to-process), ..., whs (or pe-to-host), ..., hh (or host-to-host), ... hh-6d";

struct TopologyText {
  std::string_view code;  // of `scheme_names`; empty: a grid of PEs
  unsigned dimensions;    // 0: direct
};
/// Nothing for a text that is not allowed.
std::optional<TopologyText> read_topology(std::string_view text);

}  // namespace headway::base
