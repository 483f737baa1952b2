// SPDX-License-Identifier: BSD-3-Clause
/// The text of trace_otf2.py, which CMake puts into the command.
#pragma once

namespace headway::tools {

const char* otf2_script();

}  // namespace headway::tools
