// SPDX-License-Identifier: BSD-3-Clause
/// The processor's clock: the cheapest one to read, in ticks of an unknown length.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headway::base {

/// Whether all cores have one and it runs at one rate, whatever the cores do.
inline bool has_steady_cycles() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

/// Later instructions may be executed before.
inline std::uint64_t cycles() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

/// The processor's clock and another one at the same moment.
struct ClockPair {
  std::uint64_t ticks;
  std::int64_t ns;
  std::uint64_t uncertainty;  // in ticks; large if the system ran something else meanwhile
};

/// `now()` reads the other clock, in ns.
template <class Now>
ClockPair read_both_clocks(Now now) {
  const std::uint64_t before = cycles();
  const std::int64_t ns = now();
  const std::uint64_t after = cycles();
  return {before + (after - before) / 2, ns, after - before};
}

}  // namespace headway::base
