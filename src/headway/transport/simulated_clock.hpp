// SPDX-License-Identifier: BSD-3-Clause
/// Endpoints with a simulated clock.
#pragma once

#include <cstdint>
#include <optional>

namespace headway::transport {

/// The clock of one simulated PE. An Endpoint that has one inherits from it; other endpoints run in real time.
class SimulatedClock {
 public:
  SimulatedClock() = default;
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;

  /// The PE computes for `ns`, 0 or more: its clock advances, by more if the PE is slow, and other PEs run. Frames
  /// arrive meanwhile, and wait for the PE. Only from the PE's thread.
  virtual void charge(std::int64_t ns) = 0;

  struct Times {
    std::int64_t now_ns;
    std::int64_t computed_ns;  // the part of it that the PE computed: charged by the program, or measured
  };
  /// Reading them costs no simulated time. Empty if this endpoint lies over one in real time.
  virtual std::optional<Times> times() const = 0;

 protected:
  ~SimulatedClock() = default;
};

}  // namespace headway::transport
