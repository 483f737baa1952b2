// SPDX-License-Identifier: BSD-3-Clause
/// Times in nanoseconds. Layers above the transport use Endpoint::now() instead of monotonic_ns().
#pragma once

#include <time.h>

#include <cstdint>

namespace headway::base {

inline std::int64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return std::int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

inline std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

/// Processor time of this thread.
inline std::int64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace headway::base
