#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <headway/aggregate/defaults.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <numeric>

namespace headway::aggregate {
namespace {

// Larger buffers have fewer frames, and what is read has left the cache next to its writer's core; but all open ones of
// a PE should stay in its cache. Measured: docs/performance.md.
struct BufferBytes {
  std::size_t most, open;  // of one, and of all that may be open
};
constexpr BufferBytes default_buffers = {256_KiB, 512_KiB}, default_buffers_of_small = {64_KiB, 256_KiB};
constexpr std::size_t small_message_bytes = 8, default_buffer_bytes_min = 4_KiB;
constexpr std::chrono::nanoseconds default_timeout = std::chrono::milliseconds(1);
constexpr double default_threshold = 0.9, default_cutoff = 0.1, default_fixed_cutoff = 0.5;
constexpr double packed_bytes_max = 32_KiB;  // larger messages of fixed size gain nothing by being packed

void require(bool holds, const char* option, double value, const char* allowed) {
  if (!holds) throw SettingError(fmt::format("aggregator option {} = {}: allowed is {}", option, value, allowed));
}

/// Buffers that a PE may have open, of the PE with the most: all PEs must come to the same sizes.
std::size_t peers(const Surroundings& s, Topology topology) {
  const std::vector<std::size_t> extents = route_extents(s.pes, topology, s.pes_per_process);
  return std::accumulate(extents.begin(), extents.end(), std::size_t(0));
}

/// What each of them may take: together half the budget.
std::size_t share(const Surroundings& s, Topology topology) { return s.budget_bytes / (2 * peers(s, topology)); }

/// The fewest hops with which buffers may be as large as the smallest that pays.
Topology derived(const Surroundings& s) {
  unsigned dimensions = 1;
  while (dimensions < dimensions_max && share(s, grid(dimensions)) < default_buffer_bytes_min &&
         peers(s, grid(dimensions + 1)) < peers(s, grid(dimensions))) {
    ++dimensions;
  }
  return grid(dimensions);
}

Topology topology_of(const AggregatorOptions& given, const Surroundings& s) {
  if (given.topology != derived_topology) {
    require(is_allowed(given.topology), "topology", given.topology.dimensions,
            "direct(), grid(1) to grid(8), or one of processes from grid(1) to grid(7)");
    return given.topology;
  }
  return s.settings.topology ? parse_topology(*s.settings.topology) : derived(s);
}

std::size_t buffer_bytes_of(const AggregatorOptions& given, const Surroundings& s, Topology topology) {
  const bool small = s.message_bytes != 0 && s.message_bytes <= small_message_bytes;
  const BufferBytes& defaults = small ? default_buffers_of_small : default_buffers;
  std::size_t bytes =
      std::clamp(std::bit_floor(defaults.open / peers(s, topology)), default_buffer_bytes_min, defaults.most);
  if (given.buffer_bytes != derived_bytes) {
    require(given.buffer_bytes >= buffer_bytes_min && given.buffer_bytes <= buffer_bytes_max, "buffer_bytes",
            double(given.buffer_bytes), "256 B to 256 MiB");
    bytes = given.buffer_bytes;
  } else if (s.settings.buffer_bytes) {
    bytes = *s.settings.buffer_bytes;
  }
  return std::max(std::min(bytes, share(s, topology)), buffer_bytes_min);
}

/// Sets threshold and cutoff. What settings say yields to what is given where both together cannot be.
void set_fractions(AggregatorOptions& options, const AggregatorOptions& given, const Surroundings& s) {
  auto check = [](double fraction, const char* name) {
    require(fraction == derived_fraction || (fraction >= 0 && fraction <= 1), name, fraction, "0 to 1");
  };
  check(given.threshold, "threshold");
  check(given.cutoff, "cutoff");
  const bool variable = s.message_bytes == 0;
  const double threshold_most = variable && given.cutoff != derived_fraction ? 1 - given.cutoff : 1;
  if (given.threshold == derived_fraction) {
    options.threshold = std::min(s.settings.threshold.value_or(variable ? default_threshold : 1), threshold_most);
  }
  if (given.cutoff == derived_fraction) {
    const double fixed_cutoff = std::min(default_fixed_cutoff, packed_bytes_max / double(options.buffer_bytes));
    const double cutoff = s.settings.cutoff.value_or(variable ? default_cutoff : fixed_cutoff);
    options.cutoff = variable ? std::min(cutoff, 1 - options.threshold) : cutoff;
  }
  if (variable && options.threshold + options.cutoff > 1 + 1e-9) {
    throw SettingError(
        fmt::format("aggregator options threshold = {} and cutoff = {}: for messages of variable size "
                    "their sum must be at most 1",
                    options.threshold, options.cutoff));
  }
}

}  // namespace

AggregatorOptions resolve(const AggregatorOptions& given, const Surroundings& surroundings) {
  AggregatorOptions options = given;
  options.topology = topology_of(given, surroundings);
  options.buffer_bytes = buffer_bytes_of(given, surroundings, options.topology);
  set_fractions(options, given, surroundings);
  if (given.timeout == derived_timeout) options.timeout = surroundings.settings.timeout.value_or(default_timeout);
  require(options.timeout.count() >= 0, "timeout", double(options.timeout.count()) * 1e-9, "0 or more (seconds)");
  return options;
}

}  // namespace headway::aggregate
