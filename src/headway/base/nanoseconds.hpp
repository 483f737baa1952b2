// SPDX-License-Identifier: BSD-3-Clause
/// Times with a unit, as text, in the lists of delays of networks.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

namespace headway::base {

/// In nanoseconds: "2us", "200ns", "1.5ms", "1s", "0". Nothing for any other text, and for more than 10^15 ns.
inline std::optional<double> parse_nanoseconds(std::string_view text) {
  if (text == "0") return 0.0;
  constexpr std::pair<std::string_view, double> units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  for (const auto& [unit, scale] : units) {
    if (!text.ends_with(unit)) continue;
    const char* const last = text.data() + text.size() - unit.size();
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), last, number);
    if (error == std::errc() && end == last && number >= 0 && number * scale <= 1e15) return number * scale;
  }
  return std::nullopt;
}

}  // namespace headway::base
