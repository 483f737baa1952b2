// SPDX-License-Identifier: BSD-3-Clause
#include "time_left.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace headway::bench {

std::string time_left(double done, double of, double seconds) {
  if (!(done > 0) || !(seconds >= 1)) return "";
  const double left = seconds * std::max(of - done, 0.0) / done;
  if (left < 99.5) return fmt::format(", {:.0f} s left", left);
  if (left < 99.5 * 60) return fmt::format(", {:.0f} min left", left / 60);
  return fmt::format(", {:.0f} h left", left / 3600);
}

}  // namespace headway::bench
