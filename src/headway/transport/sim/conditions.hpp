// SPDX-License-Identifier: BSD-3-Clause
/// Properties and faults of a simulated network and its machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/random.hpp>
#include <headway/transport/endpoint.hpp>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace headway::sim {

inline constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max();

/// Times are nanoseconds of simulated time. The network model is LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995).
struct Conditions {
  std::int64_t latency_ns = 2'000;  // L
  std::int64_t overhead_ns = 200;   // o, of a PE for each frame it posts and each it takes
  std::int64_t gap_ns = 0;          // g, between two frames of one PE
  double gap_per_byte_ns = 0.1;     // G

  std::int64_t delay_ns_max =
      0;                   // largest random extra delay of a frame, log-uniform: frames of different pairs overtake
  double refuse = 0;       // probability that a possible claim or post is refused
  double past_caches = 0;  // probability of Endpoint::should_write_past_caches()
  double in_place = 1;     // probability that try_begin_in_place() is permitted
  double jitter = 0;       // a call takes up to 1 + jitter times as long
  double compute = 0;      // computation outside of the transport takes its time on the thread's clock, times this
  std::size_t pes_per_process = 1;  // PEs of each process; the simulation itself has one process
  std::size_t inbox_frames = 1024;  // in flight to one PE; more are refused
  std::size_t by_value_bytes_max =
      transport::by_value_bytes_most;  // payload and tail of frames that need no memory of the sender

  // PEs of each host, repeated from the begin if there are more hosts; empty: one host.
  std::vector<std::size_t> pes_per_host = {};

  struct Slow {
    std::size_t pe;
    double factor;  // by which all calls of the PE take longer
  };
  std::vector<Slow> slow = {};

  struct Stop {
    std::size_t pe;
    std::int64_t at_ns;
    std::int64_t for_ns;  // or `forever`
  };
  std::vector<Stop> stops = {};

  /// Costs without faults.
  transport::TransportCosts costs() const {
    return {
        .overhead_ns = 2 * double(overhead_ns), .gap_per_byte_ns = gap_per_byte_ns, .latency_ns = double(latency_ns)};
  }

  /// The first PE of each host.
  std::vector<std::size_t> host_firsts(std::size_t pes) const;

  /// Sets the conditions in `text`, a list such as "L=2us,o=200ns,g=0,G=0.1ns,delay=50us,refuse=0.01,past-caches=0.5,
  /// in-place=0.5,jitter=1,compute=1,inbox=16,per-process=4,per-host=8:4,slow=3:100,stop=5@1ms+2ms", without spaces. It
  /// may contain slow and stop several times; a stop without a duration lasts for ever. Throws SettingError with
  /// `what`, the value and the allowed values.
  void parse(std::string_view what, std::string_view text, std::size_t pes);
};

/// Conditions for a test, from calm to hostile, drawn from `random`. PEs may be slow, and may stop for a while.
Conditions random_conditions(Random& random, std::size_t pes);

}  // namespace headway::sim
