// SPDX-License-Identifier: BSD-3-Clause
/// Monotonic time in nanoseconds. Layers above the transport use Endpoint::now() instead.
#pragma once

#include <time.h>

#include <cstdint>

namespace headway::base {

inline std::int64_t monotonic_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

}  // namespace headway::base
