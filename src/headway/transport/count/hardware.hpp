// SPDX-License-Identifier: BSD-3-Clause
/// Counters of the processor for one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace headway::count {

/// Cycles, instructions and cache misses outside of the kernel.
inline constexpr std::size_t hardware_counters = 3;
using HardwareCounts = std::array<std::uint64_t, hardware_counters>;
inline constexpr std::uint64_t not_counted = ~std::uint64_t(0);

/// Of the thread that opens it.
class Hardware {
 public:
  Hardware() = default;
  Hardware(const Hardware&) = delete;
  Hardware& operator=(const Hardware&) = delete;
  ~Hardware();

  /// Returns 0, or the errno of the kernel, which then counts nothing.
  int open();
  /// not_counted for those that the kernel does not count. One system call.
  HardwareCounts read() const;

 private:
  std::array<int, hardware_counters> files_ = {-1, -1, -1};  // the first leads the others
};

}  // namespace headway::count
