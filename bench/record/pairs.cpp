// SPDX-License-Identifier: BSD-3-Clause
#include "pairs.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headway::bench {

std::optional<std::pair<std::size_t, std::size_t>> median_bounds(std::size_t count) {
  constexpr double at_each_end = 0.025;
  // That value `position` is above the median is as likely as that at most `position` of the values are below it.
  double likely = 0;
  for (std::size_t position = 0; position < count; ++position) {
    const auto n = double(count), k = double(position);
    likely += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::numbers::ln2);
    if (likely <= at_each_end) continue;
    if (position == 0) return std::nullopt;
    return std::pair(position - 1, count - position);
  }
  return std::nullopt;
}

Json ratios_to_json(std::vector<double> ratios) {
  std::ranges::sort(ratios);
  Json json = to_json(spread_of(ratios));
  const auto bounds = median_bounds(ratios.size());
  json["low"] = bounds ? Json(ratios[bounds->first]) : Json();
  json["high"] = bounds ? Json(ratios[bounds->second]) : Json();
  json["pairs"] = ratios.size();
  return json;
}

}  // namespace headway::bench
