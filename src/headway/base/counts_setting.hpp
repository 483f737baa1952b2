// SPDX-License-Identifier: BSD-3-Clause
/// HEADWAY_COUNTS: the file to which a run writes its counts.
#pragma once

#include <string>

namespace headway::base {

/// Empty if the variable is not set. SettingError if it is set to nothing.
std::string counts_file();

}  // namespace headway::base
