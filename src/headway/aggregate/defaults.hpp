// SPDX-License-Identifier: BSD-3-Clause
/// The options of an aggregator that the program does not give.
#pragma once

#include <cstddef>
#include <headway/aggregate/options.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/endpoint.hpp>

namespace headway::aggregate {

/// The inputs of the derived defaults; the same on all PEs.
struct Surroundings {
  std::size_t pes = 1;
  std::size_t pes_per_process = 1;
  HostFirsts hosts = {};
  std::size_t budget_bytes = 0;   // of one PE
  std::size_t message_bytes = 0;  // of every message, padding included; 0: they differ
  transport::TransportCosts costs;
  transport::TransportCosts costs_within_host = costs;
  base::AggregationSettings settings = {};
};

/// The options in effect: the given value, else that of the settings, else the derived one. SettingError for invalid
/// values.
AggregatorOptions resolve(const AggregatorOptions& given, const Surroundings& surroundings);

/// The size of a PE's own buffer where `pes` PEs fill a common one of `buffer_bytes`: its share, at least 2 KiB and at
/// most half of it.
std::size_t part_bytes(std::size_t buffer_bytes, std::size_t pes);

}  // namespace headway::aggregate
