// SPDX-License-Identifier: BSD-3-Clause
/// Texts in the JSON files of a run.
#pragma once

#include <fmt/format.h>

#include <string>

namespace headway::launch {

/// Text in JSON, with its quotes.
inline std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < ' ')
      result += fmt::format("\\u{:04x}", int(c));
    else
      result += c;
  }
  return result + '"';
}

}  // namespace headway::launch
