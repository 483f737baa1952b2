// SPDX-License-Identifier: BSD-3-Clause
/// Pairs of cores with and without a shared cache.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headway::tools {

struct CorePair {
  int first = 0, second = 0;  // processors, as the system numbers them
  bool shares_cache = false;  // the last level
};

struct CorePairs {
  std::optional<CorePair> sharing, apart;
};

/// The first pair of each kind among `processors`; threads of one core are no pair. Empty where the system tells
/// nothing about its caches.
CorePairs core_pairs(const std::vector<int>& processors, const std::string& system = "/sys/devices/system/cpu");

/// While it exists, this thread and the processes that it starts run on these two processors. Throws SystemError.
class RunOn {
 public:
  explicit RunOn(const CorePair& pair);
  ~RunOn();
  RunOn(const RunOn&) = delete;
  RunOn& operator=(const RunOn&) = delete;

 private:
  std::vector<int> before_;
};

/// The time of a cache line from one of the cores to the other, in ns: two threads write one word in turns. 0 if they
/// get no further within 0.1 s.
double line_ns(const CorePair& pair);

}  // namespace headway::tools
