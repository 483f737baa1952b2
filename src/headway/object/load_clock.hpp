// SPDX-License-Identifier: BSD-3-Clause
/// The clock that measures the loads of elements. The runtime reads it before and after each method.
#pragma once

#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/base/cycles.hpp>

namespace headway::object {

/// The processor's time stamp counter, if it runs at a constant rate and the engine's time advances with it; else the
/// engine's time. The time of a simulated network does not advance while a method runs.
class LoadClock {
 public:
  /// If `wanted`, compares the two clocks for 0.2 ms.
  LoadClock(am::Engine& engine, bool wanted);

  std::uint64_t read() const {
    if (counts_) [[likely]]
      return base::cycles();
    return std::uint64_t(engine_->now());
  }
  double seconds(std::uint64_t from, std::uint64_t to) const {
    return to > from ? double(to - from) * seconds_per_tick_ : 0;  // counters of two cores may differ
  }
  /// Whether it reads the processor's counter.
  bool counts() const { return counts_; }

 private:
  am::Engine* engine_;
  bool counts_ = false;
  double seconds_per_tick_ = 1e-9;
};

}  // namespace headway::object
