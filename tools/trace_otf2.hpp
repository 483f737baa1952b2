// SPDX-License-Identifier: BSD-3-Clause
/// A trace as an archive of OTF2, by Python's package `otf2`.
#pragma once

#include <cstdint>
#include <string>

#include "trace_folder.hpp"

namespace headway::tools {

/// SettingError if python3 or its package otf2 is missing: the line says how to install it. The same if `folder` exists
/// and is not empty.
void require_otf2(const std::string& folder);

/// Writes the archive `folder`/traces.otf2. Slices are regions, joined frames are sends and receives. Returns the
/// number of its events. SystemError if the script fails.
std::uint64_t write_otf2(const TraceFolder& trace, const std::string& folder);

}  // namespace headway::tools
