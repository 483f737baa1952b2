// SPDX-License-Identifier: BSD-3-Clause
/// How a program that was started ended, for people.
#pragma once

#include <cstddef>
#include <headway/base/error.hpp>
#include <string>

namespace headway::tools {

/// The meaning of a program's exit status.
inline const char* meaning(int status) {
  switch (status) {
    case exit_status::unusable_arguments: return "unusable arguments";
    case exit_status::unusable_settings: return "unusable settings";
    case exit_status::failed: return "a PE died or a handler threw";
    case exit_status::stalled: return "stalled";
    case exit_status::undelivered: return "messages left undelivered";
    case 127: return "it could not be started";
    default: return status > 128 ? "ended by a signal" : "failed";
  }
}

/// The last lines of a program's output, at most `lines_max`.
inline std::string tail(const std::string& text, std::size_t lines_max) {
  std::size_t begin = text.size();
  for (std::size_t lines = 0; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && begin < text.size() && ++lines >= lines_max) break;
  }
  return text.substr(begin);
}

}  // namespace headway::tools
