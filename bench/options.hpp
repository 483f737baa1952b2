// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the benchmark programs on Headway: the aggregator's options on the command line, and its statistics in a
/// record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/headway.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <span>
#include <string>

namespace headway::bench {

/// Adds --mode, --buffer-bytes, --threshold, --cutoff, --timeout, --patient and --ordered, stored to `options`. A
/// member keeps its meaning of "derived" where its option is not given. Refuses values that no aggregator could take;
/// the aggregator itself refuses values that do not suit the message type.
void add_aggregator_options(CommandLine& app, AggregatorOptions& options);

/// The same for a GlobalMemory, and --messages-only.
void add_global_options(CommandLine& app, GlobalOptions& options);

/// The counters' growth from `before` to `after`, on one PE. `buffer_bytes` weighs the fill.
FrameCounts growth(const AggregatorStatistics& before, const AggregatorStatistics& after);

/// Of several aggregators together.
FrameCounts growth(std::span<const AggregatorStatistics> before, std::span<const AggregatorStatistics> after);

/// The frames of both; fills are weighed by frames. Peak bytes are summed: both may have had their peak at once.
FrameCounts joined(const FrameCounts& a, const FrameCounts& b);

// Collective.

/// All PEs' counts as one; the peak is the largest of any PE.
FrameCounts sum_over_pes(Pe& pe, const FrameCounts& counts);
std::uint64_t sum_over_pes(Pe& pe, std::uint64_t value);
double max_over_pes(Pe& pe, double value);

/// The options that an aggregator settled on, as a record's "options".
Json options_record(const AggregatorOptions& effective);

/// The fields of a record that this run decides.
Case make_case(Pe& pe, const char* bench, const AggregatorOptions& options, std::size_t message_bytes,
               std::uint64_t messages);

/// The record to `json` (a file, "-"), or without it one line for people.
void report(const Json& record, const std::string& json);

}  // namespace headway::bench
