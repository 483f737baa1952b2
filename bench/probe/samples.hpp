// SPDX-License-Identifier: BSD-3-Clause
/// The times that one launch of headway-probe measures. All are in ns, and lower quartiles of some repetitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <record/record.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::bench {

/// Of messages of one size. PRTT(n, d, s) is that of Culler, RTPP 1998: `model/loggp.hpp`.
struct ProbeSample {
  std::size_t bytes = 0;       // s
  std::uint64_t messages = 0;  // of a burst, n
  double one_ns = 0;           // PRTT(1, 0, s)
  double burst_ns = 0;         // PRTT(n, 0, s)
  double delay_ns = 0;         // d, longer than the interval of a burst; 0: not measured
  double delayed_ns = 0;       // PRTT(n, d, s)
  double receive_ns = 0;       // of the call of progress() that handles the reply, beyond one that finds nothing
};

/// Processor time of the library for one message of one size.
struct CostSample {
  std::size_t bytes = 0;
  bool aggregated = false;  // with other messages in one frame; else alone, with the cost of its frame
  double pack_ns = 0, handle_ns = 0;
};

struct ProbeLaunch {
  double line_ns = 0;  // before it, the way of a cache line between the two cores; 0: not known
  std::vector<ProbeSample> samples;
  std::vector<CostSample> costs;
};

Json to_json(const ProbeLaunch& launch);
/// Throws FormatError for a text that to_json() does not write.
ProbeLaunch probe_launch_of(const Json& json);

/// A line for each sample, with a first line that names the columns.
std::string csv_head();
struct LaunchName {
  std::string transport, pair;
  std::string cores;  // "0-2 shared cache"; empty: not known
  std::size_t number = 0;
};
std::string csv_of(const LaunchName& name, const ProbeLaunch& launch);

}  // namespace headway::bench
