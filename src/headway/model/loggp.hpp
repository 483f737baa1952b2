// SPDX-License-Identifier: BSD-3-Clause
/// Times of messages in LogGP, and the formulas that measure its parameters.
///
/// Sources: LogP (Culler et al., 1993), LogGP (Alexandrov, Ionescu, Schauser, Scheiman, 1995), and Culler, RTPP 1998.
/// All functions throw SettingError for arguments outside their range.
#pragma once

#include <headway/model/alpha_beta.hpp>

namespace headway::model {

/// All are 0 or more.
struct LogGP {
  double latency_ns = 0;       // L
  double overhead_ns = 0;      // o: processor time of the sender, and the same of the receiver
  double gap_ns = 0;           // g: between two messages of one PE, 1 / rate
  double gap_per_byte_ns = 0;  // G
};

/// A message of up to one byte, until its handler begins: 2 o + L, in ns (LogP).
double short_message_ns(const LogGP& network);
/// Request and reply: 2 (2 o + L), in ns (Culler, RTPP 1998).
double round_trip_ns(const LogGP& network);
/// A message of `bytes`: 2 o + (k - 1) G + L, in ns (LogGP). bytes is 1 or more.
double bulk_message_ns(const LogGP& network, double bytes);
/// From the begin of one message of `bytes` to the begin of the next one, where the network limits the rate:
/// G_all = g + (k - 1) G, in ns (LogGP). bytes is 1 or more.
double interval_ns(const LogGP& network, double bytes);
/// `messages` of `bytes` from one PE to another, until the last handler begins, in ns: the first N - 1 take
/// max(o, g) + (k - 1) G each, the last one bulk_message_ns() (LogGP). messages is 1 or more.
double burst_ns(const LogGP& network, double messages, double bytes);
/// A message of `bytes` in segments of up to `segment_bytes`, each a message; the last one may be shorter. Until the
/// handler of the last segment begins, in ns (LogGP). Both are 1 or more.
double segmented_message_ns(const LogGP& network, double bytes, double segment_bytes);

/// Cost of a frame to the processors of both sides, and of a byte: alpha = 2 o, beta = G. In this model alpha is the
/// time that is lost, so L is no part of it.
AlphaBeta alpha_beta_of(const LogGP& network);

// PRTT(n, d, s) of Culler, RTPP 1998: the time of n messages of s bytes with a delay d after each, until one reply has
// arrived.

/// PRTT(n, d, s) by the model, in ns: (n - 1) max(o + d, max(o, g) + (s - 1) G) + round trip of the last message.
double parametrized_round_trip_ns(const LogGP& network, double messages, double delay_ns, double bytes);
/// G_all = g + (s - 1) G = (PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1), in ns. A negative difference comes from noise: it
/// is returned, so that a fit sees it. messages is 2 or more.
double measured_interval_ns(double messages, double of_all_ns, double of_one_ns);
/// o = (PRTT(n, d, s) - PRTT(1, 0, s)) / (n - 1) - d, for d > G_all, in ns. May be negative by noise.
double measured_overhead_ns(double messages, double delay_ns, double of_all_ns, double of_one_ns);
/// L = PRTT(1, 0, 1) / 2 - o of the sender - o of the receiver, in ns. May be negative by noise.
double measured_latency_ns(double of_one_ns, double overhead_of_sender_ns, double overhead_of_receiver_ns);

}  // namespace headway::model
