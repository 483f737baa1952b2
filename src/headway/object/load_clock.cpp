// SPDX-License-Identifier: BSD-3-Clause
#include <headway/object/load_clock.hpp>
#include <limits>

namespace headway::object {

#if defined(__x86_64__)
LoadClock::LoadClock(am::Engine& engine, bool wanted) : engine_(&engine) {
  if (!wanted || !base::has_steady_cycles()) return;
  constexpr std::uint64_t span_ticks = 100'000;
  const auto now = [&engine] { return engine.now(); };
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int round = 0; round < 5; ++round) {  // the round with the least uncertainty counts
    const base::ClockPair first = base::read_both_clocks(now);
    while (base::cycles() - first.ticks < span_ticks) __builtin_ia32_pause();
    const base::ClockPair last = base::read_both_clocks(now);
    if (last.ns == first.ns) return;  // the engine's time is simulated
    if (first.uncertainty + last.uncertainty >= least) continue;
    least = first.uncertainty + last.uncertainty;
    seconds_per_tick_ = double(last.ns - first.ns) * 1e-9 / double(last.ticks - first.ticks);
  }
  counts_ = true;
}
#else
LoadClock::LoadClock(am::Engine& engine, bool) : engine_(&engine) {}
#endif

}  // namespace headway::object
