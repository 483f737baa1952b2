// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/model/argument.hpp>
#include <headway/model/prediction.hpp>

namespace headway::model {

namespace {

constexpr double second_per_ns = 1e-9;

/// T0 + count * ns, checked.
double added(double seconds, const char* what, double count, double ns) {
  require_at_least("run time T0 (s)", seconds, 0);
  require_at_least(what, count, 0);
  return seconds + count * ns * second_per_ns;
}

}  // namespace

double time_with_overhead(double seconds, double messages_max, double added_overhead_ns) {
  require_at_least("added overhead (ns)", added_overhead_ns, 0);
  return added(seconds, "messages of a PE", messages_max, 2 * added_overhead_ns);
}

double time_with_uniform_gap(double seconds, double messages_max, double interval_ns, double gap_ns) {
  require_at_least("interval between messages (ns)", interval_ns, 0);
  require_at_least("gap (ns)", gap_ns, 0);
  return added(seconds, "messages of a PE", messages_max, std::max(gap_ns - interval_ns, 0.0));
}

double time_with_bursty_gap(double seconds, double messages_max, double added_gap_ns) {
  require_at_least("added gap (ns)", added_gap_ns, 0);
  return added(seconds, "messages of a PE", messages_max, added_gap_ns);
}

double time_with_latency(double seconds, double reads_max, double added_latency_ns) {
  require_at_least("added latency (ns)", added_latency_ns, 0);
  return added(seconds, "reads of a PE", reads_max, 2 * added_latency_ns);
}

double gap_of_burst_ns(double messages, double interval_ns, double period_ns, double gap_ns) {
  require_at_least("messages of a burst", messages, 0);
  require_at_least("interval within a burst (ns)", interval_ns, 0);
  require_at_least("period of bursts (ns)", period_ns, 0);
  require_at_least("gap (ns)", gap_ns, 0);
  const double last_leaves_later = std::max(messages - 1, 0.0) * std::max(gap_ns - interval_ns, 0.0);
  return std::max({last_leaves_later, messages * gap_ns - period_ns, 0.0});
}

double time_with_latency_of_turns(double seconds, const Turns& turns, double added_latency_ns) {
  require_at_least("added latency (ns)", added_latency_ns, 0);
  require_at_least("reads of a PE", turns.reads, 0);
  require_at_least("work of a turn (ns)", turns.work_ns, 0);
  require_at_least("exposed turns of a PE", turns.exposed, 0);
  const double with_exposed =
      added(seconds, "exposed turns of a PE", std::max(turns.exposed, 2 * turns.reads), added_latency_ns);
  return added(with_exposed, "hidden turns of a PE", turns.hidden, std::max(added_latency_ns - turns.work_ns, 0.0));
}

double speedup(double seconds_of_one_pe, std::span<const PeSeconds> pes) {
  require_at_least("run time of one PE (s)", seconds_of_one_pe, 0);
  require_at_least("number of PEs", double(pes.size()), 1);
  double longest = 0;
  for (const PeSeconds& pe : pes) {
    require_at_least("computation of a PE (s)", pe.compute, 0);
    require_at_least("communication of a PE (s)", pe.communicate, 0);
    require_at_least("waiting of a PE (s)", pe.wait, 0);
    longest = std::max(longest, pe.compute + pe.communicate + pe.wait);
  }
  require_positive("time of the slowest PE (s)", longest);
  return seconds_of_one_pe / longest;
}

double compute_seconds(double work_seconds, double pes, double extra_seconds, double efficiency) {
  require_at_least("work (s)", work_seconds, 0);
  require_at_least("number of PEs", pes, 1);
  require_at_least("extra work (s)", extra_seconds, 0);
  require_positive("efficiency", efficiency);
  return (work_seconds / pes + extra_seconds) * efficiency;
}

}  // namespace headway::model
