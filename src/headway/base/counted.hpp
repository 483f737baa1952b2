// SPDX-License-Identifier: BSD-3-Clause
/// Numbers with their nouns, for messages to users.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace headway::base {

/// `one` if n is 1, else `other`: "is" or "are".
template <std::integral Number>
constexpr std::string_view by_number(Number n, std::string_view one, std::string_view other) {
  return n == 1 ? one : other;
}

/// "1 index", "2 indices".
template <std::integral Number>
std::string counted(Number n, std::string_view one, std::string_view other) {
  return std::to_string(n).append(" ").append(by_number(n, one, other));
}
/// "1 message", "0 messages", "1 process", "2 processes".
template <std::integral Number>
std::string counted(Number n, std::string_view noun) {
  return counted(n, noun, std::string(noun).append(noun.ends_with('s') ? "es" : "s"));
}

}  // namespace headway::base
