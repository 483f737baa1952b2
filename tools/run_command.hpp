// SPDX-License-Identifier: BSD-3-Clause
/// The command, run as users start it. For its tests.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "child.hpp"

namespace headway::tools {

inline ChildResult headway(std::vector<std::string> arguments, const std::vector<Variable>& environment = {}) {
  arguments.insert(arguments.begin(), HEADWAY_COMMAND);
  return run_child(arguments, environment, std::chrono::seconds(300));
}

}  // namespace headway::tools
