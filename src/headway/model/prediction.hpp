// SPDX-License-Identifier: BSD-3-Clause
/// Run times on a slower network, and speedup.
///
/// Source of all: Culler, RTPP 1998, and Martin et al., ISCA 1997. Times are in seconds, costs of messages in ns, as
/// programs measure them. All functions throw SettingError for arguments outside their range.
#pragma once

#include <span>

namespace headway::model {

/// T = T0 + 2 m do, in seconds. m: the most messages of any PE, requests and replies, each of which costs do when it is
/// sent and when it is handled. It predicts too little for programs in which PEs wait for one another in turn.
double time_with_overhead(double seconds, double messages_max, double added_overhead_ns);

/// T = T0 if g < I, else T0 + m (g - I), in seconds. Messages leave at equal intervals I. g: the gap itself, not what
/// is added to it. Of two models of the gap this is the lower one.
double time_with_uniform_gap(double seconds, double messages_max, double interval_ns, double gap_ns);

/// T = T0 + m dg, in seconds. All messages leave in bursts, so each one waits for the added gap.
double time_with_bursty_gap(double seconds, double messages_max, double added_gap_ns);

/// T = T0 + reads 2 dL, in seconds. reads: the most blocking requests of any PE.
double time_with_latency(double seconds, double reads_max, double added_latency_ns);

// The rest of the formulas for messages is this library's own, for programs that send in bursts and wait after each
// (docs/prediction.md).

/// The time that a gap adds to a burst of k messages: max((k - 1) max(g - i, 0), k g - p), at least 0, in ns. The
/// messages are i apart, and the last burst ended p before the end of this one. The PE waits for the last message,
/// unless the network is busy all the time. With one burst it is the uniform model; with k messages at once, far from
/// the next ones, the bursty one but for one message. g: the gap itself.
double gap_of_burst_ns(double messages, double interval_ns, double period_ns, double gap_ns);

/// The turns of a PE: it has sent messages, and then waits for some of others.
struct Turns {
  double exposed = 0;  // it has nothing else to do
  double hidden = 0;   // handlers work meanwhile,
  double work_ns = 0;  // for so long
  double reads = 0;    // of the exposed ones: waits for the answer to a request
};
/// T = T0 + max(exposed, 2 reads) dL + hidden max(dL - work, 0), in seconds. If all PEs have their turns at the same
/// time, a turn takes L. A read takes 2 L; meanwhile a PE that answers reads of others has a turn for each. Other PEs
/// that work in turn need up to twice the time.
double time_with_latency_of_turns(double seconds, const Turns& turns, double added_latency_ns);

/// What one PE spends.
struct PeSeconds {
  double compute = 0, communicate = 0, wait = 0;
};
/// T1 / max over PEs of (T_compute + T_comm + T_wait). At least one PE, with a sum above 0.
double speedup(double seconds_of_one_pe, std::span<const PeSeconds> pes);

/// T_compute = (work / p + extra) efficiency, in seconds. work: seconds of one PE; extra: seconds of work that only the
/// parallel program does, for each PE; efficiency: the time of an operation on p PEs over its time on one, below 1
/// where the smaller working set fits the caches. pes is 1 or more, efficiency above 0.
double compute_seconds(double work_seconds, double pes, double extra_seconds, double efficiency);

}  // namespace headway::model
