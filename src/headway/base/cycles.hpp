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

}  // namespace headway::base
