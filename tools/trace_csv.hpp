// SPDX-License-Identifier: BSD-3-Clause
/// A trace as text with a row for each record.
#pragma once

#include <string>

#include "trace_folder.hpp"

namespace headway::tools {

/// The columns of docs/trace.md, in their order. "-" is standard output. SystemError if the file cannot be written.
void write_csv(const TraceFolder& folder, const std::string& path);

}  // namespace headway::tools
