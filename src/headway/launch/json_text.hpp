// SPDX-License-Identifier: BSD-3-Clause
/// Texts in the JSON files of a run.
#pragma once

#include <string>

namespace headway::launch {

/// Text in JSON, with its quotes.
std::string quoted(const std::string& text);

}  // namespace headway::launch
