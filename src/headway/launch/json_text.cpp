// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/launch/json_text.hpp>

namespace headway::launch {

std::string quoted(const std::string& text) {
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
