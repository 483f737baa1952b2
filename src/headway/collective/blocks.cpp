// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/format_error.hpp>
#include <headway/collective/blocks.hpp>

namespace headway::collective {

void fail_value_count(std::uint64_t count) {
  throw FormatError(fmt::format("a block of {} arrived, expected 1 value", base::counted(count, "value")));
}

void fail_block_length(std::uint64_t count, std::uint64_t expected) {
  throw FormatError(fmt::format("a segment of a block of {} arrived, expected a segment of a block of {}",
                                base::counted(count, "element"), expected));
}

void fail_segment_length(std::uint64_t bytes, std::uint64_t expected) {
  throw FormatError(fmt::format("a segment of a block has {}, expected {}", base::counted(bytes, "byte"), expected));
}

void require_block_for_each(const TeamRef& team, Kind kind, std::size_t blocks) {
  if (blocks == team.size()) return;
  throw UsageError(fmt::format("{}() on PE {}: {} given, expected {}, one for each member of {}", name_of(kind),
                               team.pe().id().value, base::counted(blocks, "block"), team.size(),
                               team.state()->name()));
}

void require_equal_blocks(const TeamRef& team, Kind kind, std::size_t elements) {
  if (elements % team.size() == 0) return;
  throw UsageError(
      fmt::format("{}() on PE {}: {} cannot be cut into {} of equal length, expected a multiple of {} for {}",
                  name_of(kind), team.pe().id().value, base::counted(elements, "element"),
                  base::counted(team.size(), "block"), team.size(), team.state()->name()));
}

}  // namespace headway::collective
