// SPDX-License-Identifier: BSD-3-Clause
/// The phases of a program on one PE, and what their time was spent on.
#pragma once

#include <headway/transport/count/hardware.hpp>
#include <headway/transport/count/time_split.hpp>
#include <string_view>
#include <vector>

namespace headway::count {

/// A phase counts separately in each phase that it lies in. Sums include those of phases inside.
class Phases {
 public:
  /// In a simulation no counters of the processor are read.
  Phases(TimeSplit& split, bool simulated) : split_(&split), simulated_(simulated) {}

  void begin(std::string_view name);
  void end();
  /// All that have ended, each after the one that it lies in, as parts of `run_ns`.
  std::vector<PhaseCounts> counts(std::uint64_t run_ns);
  /// The errno of the kernel that refused the processor's counters, or 0.
  int hardware_errno() const { return hardware_errno_; }

 private:
  struct Open {
    std::size_t index;
    TimeSplit::Sums sums;
    HardwareCounts hardware;
  };
  std::size_t find_or_add(std::string_view name);

  TimeSplit* split_;
  bool simulated_;
  Hardware hardware_;
  int hardware_errno_ = 0;
  std::vector<PhaseCounts> phases_;
  std::vector<TimeSplit::Sums> sums_;  // of each
  std::vector<Open> open_;             // the innermost last
};

}  // namespace headway::count
