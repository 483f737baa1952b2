// SPDX-License-Identifier: BSD-3-Clause
#include "dial_prediction.hpp"

#include <algorithm>
#include <headway/model/prediction.hpp>
#include <headway/transport/count/counts.hpp>

namespace headway::tools {
namespace {

/// Frames that cost a PE its overhead: those that it sends and those that it gets.
double frames_handled(const PeRow& row) { return row.frames_sent + row.frames_received; }

double with_overhead(Method method, const RunCounts& counts, double seconds, double overhead_ns) {
  if (method != Method::bursts) {
    return model::time_with_overhead(seconds, counts.max(&PeRow::frames_sent), overhead_ns);
  }
  double most = 0;
  for (const PeRow& row : counts.rows) most = std::max(most, frames_handled(row));
  return model::time_with_overhead(seconds, most / 2, overhead_ns);
}

/// Between the gaps for which the run has added the delays up; a longer gap delays all frames.
double gap_delay_ns(const PeRow& row, double gap_ns) {
  double below_gap = 0, below = 0;
  for (std::size_t i = 0; i < row.gap_delay_ns.size(); ++i) {
    const double here = count::gap_ns_of(i);
    if (gap_ns < here) return below + (row.gap_delay_ns[i] - below) * (gap_ns - below_gap) / (here - below_gap);
    below_gap = here;
    below = row.gap_delay_ns[i];
  }
  return below + row.frames_sent * (gap_ns - below_gap);
}

/// Turns that end in a wait for all messages are exposed as often as the PE had nothing to do.
model::Turns turns_of(const PeRow& row) {
  const double exposed_of_all = std::min(row.turns_of_all, row.waits_of_all);
  return {.exposed = row.turns - row.turns_of_all + exposed_of_all,
          .hidden = row.turns_of_all - exposed_of_all,
          .work_ns = row.turns == 0 ? 0 : std::max(row.run_ns - row.waiting_ns, 0.0) / row.turns,
          .reads = row.reads};
}

double with_gap(Method method, const RunCounts& counts, double seconds, const base::DialSettings& dials) {
  double longest = seconds;
  for (const PeRow& row : counts.rows) {
    if (row.frames_sent == 0) continue;
    const double gap_ns = dials.gap_ns + dials.gap_per_byte_ns * row.bytes_sent / row.frames_sent;
    double with = 0;
    switch (method) {
      case Method::uniform:
        with = model::time_with_uniform_gap(seconds, row.frames_sent, seconds * 1e9 / row.frames_sent, gap_ns);
        break;
      case Method::bursty: with = model::time_with_bursty_gap(seconds, row.frames_sent, gap_ns); break;
      case Method::bursts: with = seconds + gap_delay_ns(row, gap_ns) * 1e-9;
    }
    longest = std::max(longest, with);
  }
  return longest;
}

}  // namespace

const char* name_of(Method method) {
  switch (method) {
    case Method::uniform: return "uniform";
    case Method::bursty: return "bursty";
    default: return "bursts";
  }
}

double predict_dials(Method method, const RunCounts& counts, double seconds, const base::DialSettings& dials) {
  double with = with_overhead(method, counts, seconds, dials.overhead_ns);
  with += counts.max(&PeRow::messages_in_frames) * dials.item_overhead_ns * 1e-9;
  with = with_gap(method, counts, with, dials);
  if (method != Method::bursts) return model::time_with_latency(with, counts.max(&PeRow::reads), dials.latency_ns);
  double longest = with;
  for (const PeRow& row : counts.rows) {
    longest = std::max(longest, model::time_with_latency_of_turns(with, turns_of(row), dials.latency_ns));
  }
  return longest;
}

std::string baseline_of(const base::DialSettings& dials) {
  std::string list;
  auto add = [&](double value, const char* text) {
    if (value != 0) list += (list.empty() ? "" : ",") + std::string(text);
  };
  add(dials.overhead_ns, "o=1ns");
  add(dials.item_overhead_ns, "item_o=1ns");
  add(dials.gap_ns, "g=1ns");
  add(dials.latency_ns, "L=1ns");
  add(dials.gap_per_byte_ns, "G=0.001ns");
  return list;
}

}  // namespace headway::tools
