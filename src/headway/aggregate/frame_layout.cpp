// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <headway/aggregate/defaults.hpp>
#include <headway/aggregate/frame_layout.hpp>
#include <headway/aggregate/reassembly.hpp>
#include <headway/base/bytes.hpp>

namespace headway::aggregate {
namespace {

// First and smallest size of buffers that adapt.
constexpr std::size_t first_buffer_bytes = 4_KiB, least_buffer_bytes = 1_KiB;
// The largest frames of messages sent alone, and of parts, are shares of the budget, up to SizeConstants.
constexpr std::size_t alone_share = 4, alone_share_between_hosts = 16, part_share = 16;

std::uint16_t hash16(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ std::uint8_t(c)) * 0x100000001b3;
  return std::uint16_t(hash ^ hash >> 16 ^ hash >> 32 ^ hash >> 48);
}

/// The size of the buffers that a PE fills alone: its own buffers with pp, and those for PEs of its host on a route
/// over hosts.
std::size_t own_buffer_bytes(am::Engine& engine, const Route& route, const AggregatorOptions& options) {
  const transport::HostMap& hosts = engine.endpoint().host_map();
  const bool has_own_buffers = options.topology.scheme == Scheme::pp && route.is_over_processes();
  if (!has_own_buffers && !route.is_over_hosts()) return options.buffer_bytes;
  return part_bytes(options.buffer_bytes,
                    route.is_over_hosts() ? host_sizes(engine.size(), hosts.host_firsts).most : hosts.pes_per_process);
}

SizeLimits limits_of(bool adapts, std::size_t frame_bytes, std::size_t outside, std::size_t per_message_most) {
  if (!adapts) return {frame_bytes, frame_bytes, frame_bytes};
  constexpr std::size_t messages_least = 4;
  const std::size_t least = std::bit_ceil(outside + messages_least * per_message_most);
  SizeLimits limits;
  limits.most = frame_bytes;
  limits.least = std::min(std::max(least, least_buffer_bytes), frame_bytes);
  limits.first = std::clamp(first_buffer_bytes, limits.least, frame_bytes);
  return limits;
}

}  // namespace

FrameLayout::FrameLayout(am::Engine& engine, const Route& route, const AggregatorOptions& options,
                         const MessageShape& shape, SizeRules rules)
    : fixed_bytes(shape.fixed_bytes),
      alignment(shape.alignment),
      padding(padding_for(shape.alignment)),
      threshold(options.threshold),
      frame_bytes(own_buffer_bytes(engine, route, options)),
      by_value_bytes_max(padding == 0 ? std::min(engine.endpoint().by_value_bytes_max(), transport::by_value_bytes_most)
                                      : 0),
      in_place_bytes_max(padding == 0 ? transport::in_place_bytes_most : 0) {
  const unsigned levels = route.levels();
  const bool variable = fixed_bytes == 0;
  const std::size_t budget = engine.store().budget_bytes();
  const auto share_of = [&](std::size_t share, std::size_t most) {
    return std::max(std::min(most, budget / share), std::size_t(base::buffer_bytes_min));
  };
  const base::SizeConstants& constants = engine.sizes();
  alone_frame_bytes = share_of(alone_share, constants.alone_frame_bytes_max);
  alone_frame_bytes_between_hosts = share_of(alone_share_between_hosts, constants.alone_frame_bytes_max_between_hosts);
  part_frame_bytes = share_of(part_share, constants.part_frame_bytes_max);
  part_bytes_max = part_frame_bytes - transport::frame_overhead - padding - sizeof(PartHeader);

  // The receiver reassembles ordered parts by source.
  const bool needs_source = shape.wants_source || (options.ordered && variable);
  const unsigned source_bytes = needs_source && levels > 1 ? base::bytes_for_values(engine.size()) : 0;
  unsigned entry_bytes_most = 0;
  std::size_t capacity_least = frame_bytes;
  for (unsigned level = 0; level < levels; ++level) {
    entries.push_back({variable ? unsigned(sizeof(Length)) : 0, route.key_bytes(level), source_bytes});
    entry_bytes_most = std::max(entry_bytes_most, entries.back().bytes());
    if (!variable) capacity_least = std::min(capacity_least, capacity(level, frame_bytes));
  }
  for (unsigned level = 0; level < levels; ++level) {
    const bool larger = route.is_over_hosts() && route.is_between_hosts(level);
    sizes.push_back(limits_of(rules.adapts_sizes, larger ? options.buffer_bytes : frame_bytes,
                              transport::frame_overhead + padding + entry_slack, fixed_bytes + entry_bytes_most));
  }
  for (std::uint32_t slot = 0; slot < route.slots(); ++slot) {
    const Entry& e = entries[route.level(slot)];
    slot_entries.push_back({e.bytes(), std::uint8_t(e.shift()), std::uint8_t(8 * e.length_bytes),
                            std::uint8_t(8 * (e.length_bytes + e.key_bytes)), e.source_bytes != 0});
  }

  const std::size_t content = frame_bytes - transport::frame_overhead - padding;
  const auto cutoff_bytes = std::size_t(options.cutoff * double(frame_bytes));
  if (options.topology.dimensions == 0) {
    alone_from = 0;
  } else if (variable) {
    const std::size_t outside = entry_bytes_most + entry_slack + alignment;
    alone_from = content <= outside ? 0 : std::min({cutoff_bytes, content - outside, length_max}) + 1;
  } else {
    const bool fits = capacity_least >= rules.messages_least && fixed_bytes <= cutoff_bytes;
    alone_from = fits ? ~std::size_t(0) : 0;
  }
  signature = hash16(fmt::format("{} {} {} {} {} {} {} {} {}", shape.type, to_string(options.topology), fixed_bytes,
                                 source_bytes, options.ordered, options.name, options.buffer_bytes, alone_from,
                                 filled(frame_bytes)));
}

std::size_t FrameLayout::capacity(unsigned level, std::size_t bytes) const {
  const unsigned entry_bytes = entries[level].bytes();
  const std::size_t outside = transport::frame_overhead + padding + (entry_bytes != 0 ? entry_slack : 0);
  const std::size_t usable = std::max(filled(bytes), outside) - outside;
  const std::size_t most = std::max(bytes, outside) - outside;
  // a threshold below one message: each message is posted at once
  const std::size_t per_message = fixed_bytes + entry_bytes;
  return std::max(usable / per_message, std::min<std::size_t>(most / per_message, 1));
}

}  // namespace headway::aggregate
