// SPDX-License-Identifier: BSD-3-Clause
/// Counts of copies of packed messages, and of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headway::aggregate {

struct CopyCounts {
  std::uint64_t messages = 0, bytes = 0;

  void add(std::uint64_t more_messages, std::size_t more_bytes) {
    messages += more_messages;
    bytes += more_bytes;
  }
};

}  // namespace headway::aggregate
