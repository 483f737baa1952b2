// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/aggregate/parts_format.hpp>
#include <headway/base/counted.hpp>

namespace headway::aggregate {

void refuse_short_message(std::size_t bytes, std::size_t least) {
  throw FormatError(
      fmt::format("a message has {}; its arguments need at least {}", base::counted(bytes, "byte"), least));
}

void refuse_long_message(std::size_t bytes, std::size_t used) {
  throw FormatError(fmt::format("a message has {}; its arguments use {}", base::counted(bytes, "byte"), used));
}

void refuse_view_count(std::uint64_t count, std::size_t most) {
  throw FormatError(
      fmt::format("a view's count is {}; its message has room for {}", count, base::counted(most, "element")));
}

}  // namespace headway::aggregate
