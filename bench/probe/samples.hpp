// SPDX-License-Identifier: BSD-3-Clause
/// What a probe measures, and the parameters of LogGP that follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/model/fit.hpp>
#include <record/record.hpp>
#include <span>
#include <vector>

namespace headway::bench {

/// The times of messages of one size, in ns; medians of some repetitions.
struct ProbeSample {
  std::size_t bytes = 0;
  std::uint64_t messages = 0;  // of a burst, n
  double one_ns = 0;           // PRTT(1, 0, s)
  double burst_ns = 0;         // PRTT(n, 0, s)
  double delayed_ns = 0;       // PRTT(n, d, s)
  double delay_ns = 0;         // d, longer than the interval of a burst
  double own_ns = 0;           // processor time of one round trip: it sends, computes, takes the reply
};

Json to_json(std::span<const ProbeSample> samples);
/// Throws FormatError for anything that to_json() does not write.
std::vector<ProbeSample> probe_samples_of(const Json& json);

/// Times in ns, and ns a byte.
struct ProbeResult {
  model::Estimate overhead_of_sender, overhead_of_receiver;  // of messages of up to 64 bytes: longer ones are copied
  model::Estimate latency;
  model::SegmentedFit intervals;  // of bytes - 1: the intercept is g, the slope is G
};

/// Of the samples of one or several launches. Throws SettingError for too few.
ProbeResult evaluate(std::span<const ProbeSample> samples);

/// The fields of a record of `headway probe`: o_send_ns, o_recv_ns, g_ns, latency_ns, gap_per_byte_ns, residual, segments.
void add_probe_result(Json& record, const ProbeResult& result);

/// A table for people.
std::string describe(const ProbeResult& result);

}  // namespace headway::bench
