// SPDX-License-Identifier: BSD-3-Clause
/// HEADWAY_COUNTS and HEADWAY_TRACE: where a run writes its counts and its trace.
#pragma once

#include <string>

namespace headway::base {

/// Empty if the variable is not set. SettingError if it is set to nothing.
std::string counts_file();

/// The folder of the traces; empty if HEADWAY_TRACE is not set. SettingError if it is set to nothing.
std::string trace_folder();

}  // namespace headway::base
