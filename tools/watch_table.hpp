// SPDX-License-Identifier: BSD-3-Clause
/// Draws a view of `headway watch` as a table.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "watch_view.hpp"

namespace headway::tools {

struct WindowSize {
  std::size_t columns = std::numeric_limits<std::size_t>::max(), lines = std::numeric_limits<std::size_t>::max();
};

/// The lines of the view with `notes` below, none longer and not more than fit the window. Columns that do not fit are
/// left out, the least important first. Of too many PEs it shows those that wait most and least.
std::vector<std::string> draw(const View& view, const WindowSize& size, const std::vector<std::string>& notes = {});

/// "1.23M": three digits, and k, M, G or T for powers of 1000.
std::string short_number(double number);
/// "1.2 MiB".
std::string short_bytes(std::uint64_t bytes);

}  // namespace headway::tools
