// SPDX-License-Identifier: BSD-3-Clause
/// The parameters of LogGP that follow from the times of several launches.
#pragma once

#include <headway/model/fit.hpp>
#include <optional>
#include <probe/samples.hpp>
#include <span>
#include <vector>

namespace headway::bench {

/// Messages of up to so many bytes are short: their overhead contains no long copy.
inline constexpr std::size_t short_bytes_max = 64;

/// Lines of G_all over s - 1. Their ends are those of all launches together, because a change of protocol has one size.
struct ProbeSegment {
  std::size_t first_bytes = 0, last_bytes = 0;
  model::Estimate gap;           // g, in ns
  model::Estimate gap_per_byte;  // G, in ns
  std::size_t points = 0, outliers = 0;
};

struct ProbeCost {
  std::size_t bytes = 0;
  bool aggregated = false;
  model::Estimate pack, handle;  // of one message, in ns
};

/// In ns. With 3 launches or more an estimate is the median over launches, and its interval holds the median of further
/// launches with 95 % (6 launches or more; else it is the range of the launches). With fewer it comes from the samples.
struct ProbeResult {
  std::size_t launches = 0;
  model::Estimate overhead_of_sender, overhead_of_receiver;  // of short messages
  model::Estimate latency;
  model::Estimate item;  // of the receiver, for each short message of a frame
  std::vector<ProbeSegment> segments;
  Spread line_ns;       // over launches: results compare at the same time of a line; 0: not known
  double residual = 0;  // median distance of a point from its line, as a part of it
  std::vector<ProbeCost> costs;

  /// Of short messages; and of the segment with most sizes.
  const model::Estimate& gap() const { return segments.front().gap; }
  const model::Estimate& gap_per_byte() const;
};

/// Throws SettingError without launches, and for launches that do not fit a line: too few samples, or of one size.
ProbeResult evaluate(std::span<const ProbeLaunch> launches);

/// {"value", "low", "high"}; with "includes_zero" or "below_zero" if the interval reaches 0 or lies below.
Json to_json(const model::Estimate& estimate);
/// The fields of a record: o_send_ns, o_recv_ns, g_ns, latency_ns, gap_per_byte_ns, item_ns, line_ns, residual,
/// segments, costs.
void add_probe_result(Json& record, const ProbeResult& result);

/// Measured times of one size, medians over launches.
struct MeasuredSize {
  std::size_t bytes = 0;
  double one_way_us = 0;          // PRTT(1, 0, s) without the way of the reply, which is short
  double megabytes_a_second = 0;  // s / G_all
};
/// The powers of two among the sizes, ascending.
std::vector<MeasuredSize> measured_sizes(std::span<const ProbeLaunch> launches);

}  // namespace headway::bench
