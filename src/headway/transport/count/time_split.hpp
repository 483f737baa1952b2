// SPDX-License-Identifier: BSD-3-Clause
/// The time of a PE, divided by its activity.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/base/cycles.hpp>
#include <headway/transport/count/counts.hpp>
#include <headway/transport/endpoint.hpp>
#include <headway/transport/simulated_clock.hpp>

namespace headway::count {

enum class Spending : std::uint8_t { program, handlers, communication, waiting };

/// One timer with a present state: each change adds the time since the last one to a sum, so that the sums together
/// are the time since the begin.
///
/// On a simulated clock the charged computation is that of program and handlers, exactly; calls of the transport, which
/// cost time there as well, are communication in these two states.
class TimeSplit {
 public:
  using Sums = std::array<std::uint64_t, spendings>;  // in ticks

  enum class Clock : std::uint8_t { cycles, run };
  /// `simulated` may be nullptr; it is used instead of `clock` else.
  TimeSplit(const transport::Endpoint& endpoint, const transport::SimulatedClock* simulated, Clock clock);

  Spending state() const { return state_; }
  void enter(Spending next) { pass(state_, next); }
  /// The time since the last change belongs to `past`, instead of to the state.
  void pass(Spending past, Spending next) {
    if (simulated_ == nullptr) [[likely]] {
      const std::uint64_t at = ticks();
      // The clocks of two cores may differ by a few ticks.
      if (at > last_) sums_[std::size_t(past)] += at - last_, last_ = at;
    } else {
      pass_simulated(past);
    }
    state_ = next;
    if (next != Spending::communication) computes_ = next == Spending::handlers ? next : Spending::program;
  }
  /// As enter() in real time, without a look at the clock: the time since the last change belongs to `next` as well.
  void become(Spending next) { state_ = next; }
  /// Until now.
  const Sums& sums() {
    enter(state_);
    return sums_;
  }
  /// Sums as parts of `run_ns`, the time since the begin: together exactly that.
  static void to_ns(const Sums& sums, std::uint64_t run_ns, std::uint64_t (&ns)[spendings]);

 private:
  std::uint64_t ticks() const { return clock_ == Clock::cycles ? base::cycles() : std::uint64_t(endpoint_->now()); }
  void pass_simulated(Spending past);

  const transport::Endpoint* endpoint_;
  const transport::SimulatedClock* simulated_;
  Clock clock_;
  Spending state_ = Spending::program;
  Spending computes_ = Spending::program;  // what charged computation belongs to
  std::uint64_t last_ = 0, last_computed_ = 0;
  Sums sums_{};
};

}  // namespace headway::count
