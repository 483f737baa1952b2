// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/transport/count/time_split.hpp>
#include <numeric>

namespace headway::count {

TimeSplit::TimeSplit(const transport::Endpoint& endpoint, const transport::SimulatedClock* simulated, Clock clock)
    : endpoint_(&endpoint),
      simulated_(simulated),
      clock_(clock == Clock::cycles && base::has_steady_cycles() ? Clock::cycles : Clock::run) {
  if (simulated_ != nullptr) {
    const transport::SimulatedClock::Times times = *simulated_->times();
    last_ = std::uint64_t(times.now_ns);
    last_computed_ = std::uint64_t(times.computed_ns);
  } else {
    last_ = ticks();
  }
}

void TimeSplit::pass_simulated(Spending past) {
  const transport::SimulatedClock::Times times = *simulated_->times();
  const std::uint64_t computed = std::uint64_t(times.computed_ns) - last_computed_;
  if (past == Spending::program || past == Spending::handlers) past = Spending::communication;
  sums_[std::size_t(computes_)] += computed;
  sums_[std::size_t(past)] += std::uint64_t(times.now_ns) - last_ - computed;
  last_ += std::uint64_t(times.now_ns) - last_;
  last_computed_ += computed;
}

void TimeSplit::to_ns(const Sums& sums, std::uint64_t run_ns, std::uint64_t (&ns)[spendings]) {
  const std::uint64_t ticks = std::accumulate(sums.begin(), sums.end(), std::uint64_t(0));
  std::uint64_t others = 0;
  for (std::size_t i = 1; i < spendings; ++i) {
    const double part = ticks == 0 ? 0 : double(run_ns) * (double(sums[i]) / double(ticks));
    ns[i] = ticks == run_ns ? sums[i] : std::min(std::uint64_t(part), run_ns - others);
    others += ns[i];
  }
  ns[0] = run_ns - others;
}

}  // namespace headway::count
