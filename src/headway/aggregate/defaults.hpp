/// What an aggregator's options are where the program does not give them.
#pragma once

#include <cstddef>
#include <headway/aggregate/options.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/endpoint.hpp>

namespace headway::aggregate {

/// What the defaults depend on; the same on all PEs.
struct Surroundings {
  std::size_t pes = 1;
  std::size_t pes_per_process = 1;
  HostFirsts hosts = {};
  std::size_t budget_bytes = 0;   // of one PE
  std::size_t message_bytes = 0;  // of every message, padding included; 0: they differ
  TransportCosts costs;
  TransportCosts costs_within_host = costs;
  AggregationSettings settings = {};
};

/// The options in effect: what is given, else what the settings say, else what is derived. Throws SettingError for what
/// cannot be.
AggregatorOptions resolve(const AggregatorOptions& given, const Surroundings& surroundings);

/// Of a buffer of which `pes` PEs have one each in place of a common one, or as small: their share, but not too small
/// for messages, and so that at least two fill the common one.
std::size_t part_bytes(std::size_t buffer_bytes, std::size_t pes);

}  // namespace headway::aggregate
