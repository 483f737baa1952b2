// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <headway/aggregate/defaults.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/model/alpha_beta.hpp>
#include <numbers>
#include <numeric>

namespace headway::aggregate {
namespace {

// Larger buffers mean fewer frames, and their lines have left the writer's own cache when they are read. But all open
// buffers of a PE should stay in its cache. Measured: docs/performance.md.
struct BufferBytes {
  std::size_t most, open;  // bytes of one buffer, and of all open ones
};
constexpr BufferBytes cached_buffers = {256_KiB, 512_KiB}, cached_buffers_of_small = {64_KiB, 256_KiB};
// A network copies the bytes anyway, and each frame costs time in its library and in the system.
constexpr BufferBytes copied_buffers = {256_KiB, 1_MiB};
constexpr std::size_t small_message_bytes = 8, default_buffer_bytes_min = 4_KiB;

// Cost of the aggregator, sending and delivering together: docs/performance.md, messages of 8 and 1000 bytes.
constexpr double message_ns = 1, copy_ns_per_byte = 0.025;
// Added cost of a byte if open buffers do not stay in the cache: copies run at 163 GB/s in a core's own cache, at 60
// from the next one, at 22 from memory.
constexpr double cache_miss_ns_per_byte = 0.02;
constexpr std::chrono::nanoseconds default_timeout = std::chrono::milliseconds(1);
constexpr double default_threshold = 0.9, default_cutoff = 0.1, default_fixed_cutoff = 0.5;

// A part of a buffer decides which messages gather: a few small ones must fit its cutoff.
constexpr std::size_t part_bytes_least = 2_KiB;

void require(bool holds, const char* option, double value, const char* allowed) {
  if (!holds) throw SettingError(fmt::format("aggregator option {} = {}: allowed is {}", option, value, allowed));
}

/// Buffers that a PE may have open, of the PE with the most: all PEs must come to the same sizes.
struct Peers {
  std::size_t large;      // of the size that options name
  std::size_t small = 0;  // part_bytes() of it, for PEs of the same host
  std::size_t pes_of_host = 1;

  std::size_t in_all() const { return large + (small + pes_of_host - 1) / pes_of_host; }  // of large ones
  std::size_t bytes(std::size_t buffer_bytes) const {
    return large * buffer_bytes + (small == 0 ? 0 : small * part_bytes(buffer_bytes, pes_of_host));
  }
};

Peers peers_of(const Surroundings& s, Topology topology) {
  const std::vector<std::size_t> extents = route_extents(s.pes, topology, s.pes_per_process, s.hosts);
  const std::size_t all = std::accumulate(extents.begin(), extents.end(), std::size_t(0));
  if (!is_over_hosts(s.pes, topology, s.hosts)) return {all};
  const HostSizes host = host_sizes(s.pes, s.hosts);
  const bool together = topology.scheme == Scheme::hh;
  // Without this PE's own host at each level: no hop leads to it.
  const std::size_t within = (together ? 2 : 1) * host.most, between = all - within - topology.dimensions;
  // With hh and one dimension a PE has its share of the buffers for other hosts; with more dimensions it may need any.
  const bool has_share = together && topology.dimensions == 1;
  return {has_share ? (between + host.least - 1) / host.least : between, within, host.most};
}

std::size_t peers(const Surroundings& s, Topology topology) { return peers_of(s, topology).in_all(); }

/// The largest size of each: together they take half the budget.
std::size_t share(const Surroundings& s, Topology topology) {
  const Peers peers = peers_of(s, topology);
  const std::size_t all = s.budget_bytes / 2;
  std::size_t bytes = all / peers.in_all();
  // small ones are not as small as their share where that is too little
  while (peers.small != 0 && peers.bytes(bytes) > all && bytes > base::buffer_bytes_min) bytes -= bytes / 8;
  return bytes;
}

/// The nearest power of two, at least the smallest default. Without a logarithm: all PEs must get the same value.
std::size_t rounded(double bytes) {
  return std::clamp(std::bit_floor(std::size_t(std::min(bytes, double(base::buffer_bytes_max)) * std::numbers::sqrt2)),
                    default_buffer_bytes_min, base::buffer_bytes_max);
}

double software_ns_per_byte(const Surroundings& s) {
  return copy_ns_per_byte + (s.message_bytes == 0 ? 0 : message_ns / double(s.message_bytes));
}

/// Cost of a frame on a hop, and of a byte: of the wire or of the aggregator, the larger one.
model::AlphaBeta hop_cost(const Surroundings& s) {
  return {s.costs.overhead_ns, std::max(s.costs.gap_per_byte_ns, software_ns_per_byte(s))};
}

/// The size that pays even if open buffers do not stay in the cache: with larger ones, frames cost less than the cache
/// misses, or less than a ninth of their bytes.
std::size_t wanted_bytes(const Surroundings& s) {
  return rounded(
      std::min(model::bytes_of_half_rate({s.costs.overhead_ns, cache_miss_ns_per_byte}),
               model::bytes_of_90_percent(s.costs.overhead_ns, s.costs.gap_per_byte_ns, software_ns_per_byte(s))));
}

/// With smaller buffers a frame costs more than its bytes. Only then can one more hop, which moves the bytes once more,
/// cost less than the frames that its larger buffers save.
std::size_t least_bytes_of_hop(const Surroundings& s) { return rounded(model::bytes_of_half_rate(hop_cost(s))); }

/// A frame costs less than a tenth of a larger message of fixed size, which gains nothing from a buffer.
double packed_bytes_max(const Surroundings& s) {
  return double(rounded(model::bytes_of_90_percent(s.costs.overhead_ns, s.costs.gap_per_byte_ns, copy_ns_per_byte)));
}

/// The fewest hops with large enough buffers.
Topology derived_grid(const Surroundings& s) {
  const std::size_t least = least_bytes_of_hop(s);
  unsigned dimensions = 1;
  while (dimensions < dimensions_max && share(s, grid(dimensions)) < least &&
         peers(s, grid(dimensions + 1)) < peers(s, grid(dimensions))) {
    ++dimensions;
  }
  return grid(dimensions);
}

std::size_t buffer_bytes_of(const AggregatorOptions& given, const Surroundings& s, Topology topology);

/// Cost of a byte for another host on all its hops, in full buffers of their size.
double byte_ns_of_route(const AggregatorOptions& given, const Surroundings& s, Topology topology) {
  const std::size_t buffer_bytes = buffer_bytes_of(given, s, topology);
  const double between = topology.dimensions * model::byte_ns(hop_cost(s), double(buffer_bytes));
  if (!is_over_hosts(s.pes, topology, s.hosts)) return between;
  const HostSizes host = host_sizes(s.pes, s.hosts);
  Surroundings here = s;
  here.costs = s.costs_within_host;
  const double within = model::byte_ns(hop_cost(here), double(part_bytes(buffer_bytes, host.most)));
  if (topology.scheme == Scheme::whs) return between + within;
  // With fewer other hosts than PEs of this host, some PEs send for all, and the others wait.
  const double at_once = double(std::min(host.most, s.hosts.size() - 1));
  return (between + within) * double(host.most) / at_once + within;
}

/// A scheme of hosts, if its larger buffers save more than the hops within hosts cost.
Topology derived(const AggregatorOptions& given, const Surroundings& s) {
  Topology best = derived_grid(s);
  if (!is_over_hosts(s.pes, grid(1, Scheme::whs), s.hosts)) return best;
  double best_ns = byte_ns_of_route(given, s, best);
  for (const Scheme scheme : {Scheme::whs, Scheme::hh}) {
    for (unsigned dimensions = 1; is_allowed(grid(dimensions, scheme)); ++dimensions) {
      const double ns = byte_ns_of_route(given, s, grid(dimensions, scheme));
      if (ns >= best_ns) continue;
      best = grid(dimensions, scheme);
      best_ns = ns;
    }
  }
  return best;
}

Topology topology_of(const AggregatorOptions& given, const Surroundings& s) {
  if (given.topology != derived_topology) {
    require(is_allowed(given.topology), "topology", given.topology.dimensions,
            "direct(), grid(1) to grid(8), or one of processes or hosts from grid(1) to grid(7), with hh to grid(6)");
    return given.topology;
  }
  return s.settings.topology ? parse_topology(*s.settings.topology) : derived(given, s);
}

std::size_t buffer_bytes_of(const AggregatorOptions& given, const Surroundings& s, Topology topology) {
  const bool small = s.message_bytes != 0 && s.message_bytes <= small_message_bytes;
  const BufferBytes& cached = s.costs.copied ? copied_buffers : small ? cached_buffers_of_small : cached_buffers;
  const std::size_t wanted = wanted_bytes(s);
  std::size_t bytes =
      std::clamp(std::bit_floor(cached.open / peers(s, topology)), wanted, std::max(wanted, cached.most));
  bytes = std::max(std::min(bytes, s.costs.eager_bytes), base::buffer_bytes_min);
  if (given.buffer_bytes != derived_bytes) {
    require(given.buffer_bytes >= base::buffer_bytes_min && given.buffer_bytes <= base::buffer_bytes_max,
            "buffer_bytes", double(given.buffer_bytes), "256 B to 256 MiB");
    bytes = given.buffer_bytes;
  } else if (s.settings.buffer_bytes) {
    bytes = *s.settings.buffer_bytes;
  }
  return std::max(std::min(bytes, share(s, topology)), base::buffer_bytes_min);
}

/// Sets threshold and cutoff. A setting yields to a given value that it contradicts.
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
    const double fixed_cutoff = std::min(default_fixed_cutoff, packed_bytes_max(s) / double(options.buffer_bytes));
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

std::size_t part_bytes(std::size_t buffer_bytes, std::size_t pes) {
  return std::max({buffer_bytes / pes, std::min(part_bytes_least, buffer_bytes / 2), base::buffer_bytes_min});
}

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
