/// What a simulated network and its machines are like, and what goes wrong on them.
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

/// Times are nanoseconds of simulated time. The network is LogGP's (Alexandrov, Ionescu, Schauser, Scheiman, 1995).
struct Conditions {
  std::int64_t latency_ns = 2'000;  // L
  std::int64_t overhead_ns = 200;   // o, of a PE for each frame it posts and each it takes
  std::int64_t gap_ns = 0;          // g, between two frames of one PE
  double gap_per_byte_ns = 0.1;     // G

  std::int64_t delay_ns_max = 0;  // a frame takes up to so much longer, log-uniform: frames of different pairs overtake
  double refuse = 0;              // probability that a claim or a post is refused though there is room
  double past_caches = 0;         // probability of Endpoint::should_write_past_caches()
  double in_place = 1;            // probability that a frame may be written where it arrives, if it is not refused
  double jitter = 0;              // a call takes longer by up to this factor
  std::size_t pes_per_process = 1;  // as how many the PEs pretend to be threads of one process
  std::size_t inbox_frames = 1024;  // on their way to one PE; more are refused
  std::size_t by_value_bytes_max = by_value_bytes_most;  // payload and tail of frames that need no memory of the sender

  // On which hosts they pretend to be: of so many PEs, in turn; none: all on one.
  std::vector<std::size_t> pes_per_host = {};

  struct Slow {
    std::size_t pe;
    double factor;  // all that the PE does takes so many times as long
  };
  std::vector<Slow> slow = {};

  struct Stop {
    std::size_t pe;
    std::int64_t at_ns;
    std::int64_t for_ns;  // or `forever`
  };
  std::vector<Stop> stops = {};

  /// What is charged, but for what goes wrong.
  TransportCosts costs() const {
    return {
        .overhead_ns = 2 * double(overhead_ns), .gap_per_byte_ns = gap_per_byte_ns, .latency_ns = double(latency_ns)};
  }

  /// The first PE of each host.
  std::vector<std::size_t> host_firsts(std::size_t pes) const;

  /// "L=2us,o=200ns,g=0,G=0.1ns,delay=50us,refuse=0.01,past-caches=0.5,in-place=0.5,jitter=1,inbox=16,per-process=4,slow=3:100,stop=5@1ms+2ms",
  /// or "per-host=8:4": those that are named change, slow and stop may come several times, a stop without duration is
  /// for ever. Throws SettingError that names `what`, the value and what is allowed.
  void parse(std::string_view what, std::string_view text, std::size_t pes);
};

/// Conditions for a test: from calm to hostile, all of it drawn from `random`. PEs may be slow and stop, none for ever.
Conditions random_conditions(Random& random, std::size_t pes);

}  // namespace headway::sim
