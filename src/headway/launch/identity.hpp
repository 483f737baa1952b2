// SPDX-License-Identifier: BSD-3-Clause
/// Identifies the program and the build of this process. All processes of a run must have the same build.
#pragma once

#include <string>

namespace headway::launch {

/// The path of the running program.
std::string program_path();

/// The linker's build id of the running program in hex, or a hash of its file if it has none.
std::string build_identity();

}  // namespace headway::launch
