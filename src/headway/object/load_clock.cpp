// SPDX-License-Identifier: BSD-3-Clause
#include <headway/object/load_clock.hpp>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace headway::object {

#if defined(__x86_64__)
namespace {

bool counts_at_one_rate() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x8000'0007, &a, &b, &c, &d) != 0 && (d & 1U << 8) != 0;  // invariant TSC
}

/// Both clocks at one moment. `width` is the uncertainty in ticks.
struct Both {
  explicit Both(const am::Engine& engine) {
    const std::uint64_t before = __builtin_ia32_rdtsc();
    ns = engine.now();
    const std::uint64_t after = __builtin_ia32_rdtsc();
    ticks = before + (after - before) / 2;
    width = after - before;
  }
  std::uint64_t ticks, width;
  std::int64_t ns;
};

}  // namespace

LoadClock::LoadClock(am::Engine& engine, bool wanted) : engine_(&engine) {
  if (!wanted || !counts_at_one_rate()) return;
  constexpr std::uint64_t span_ticks = 100'000;
  std::uint64_t narrowest = std::numeric_limits<std::uint64_t>::max();
  for (int round = 0; round < 5; ++round) {  // the operating system may preempt the PE between two reads; the round
                                             // with the smallest width counts
    const Both first(engine);
    while (__builtin_ia32_rdtsc() - first.ticks < span_ticks) __builtin_ia32_pause();
    const Both last(engine);
    if (last.ns == first.ns) return;  // the engine's time is simulated
    if (first.width + last.width >= narrowest) continue;
    narrowest = first.width + last.width;
    seconds_per_tick_ = double(last.ns - first.ns) * 1e-9 / double(last.ticks - first.ticks);
  }
  counts_ = true;
}
#else
LoadClock::LoadClock(am::Engine& engine, bool) : engine_(&engine) {}
#endif

}  // namespace headway::object
