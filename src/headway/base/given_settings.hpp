// SPDX-License-Identifier: BSD-3-Clause
/// The settings of this process as text, for processes that compare their settings.
#pragma once

#include <string>
#include <vector>

namespace headway::base {

/// "HEADWAY_PES=4", ..., sorted; without paths, and without the variables of launchers.
std::vector<std::string> given_settings();

}  // namespace headway::base
