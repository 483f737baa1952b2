// SPDX-License-Identifier: BSD-3-Clause
/// The cost of messages by number and bytes, and the sizes of buffers that follow from it.
#pragma once

namespace headway::model {

/// C(n) = alpha + beta n, the cost of one message of n bytes ("Aggregation (variable-size TRAM, 2020)", chapter 4).
struct AlphaBeta {
  double alpha_ns = 0;          // 0 or more
  double beta_ns_per_byte = 0;  // 0 or more
};

/// C(n) in ns. SettingError for a negative number or one that is not finite, here and in all functions below.
double message_ns(const AlphaBeta& cost, double bytes);

/// N messages of n bytes, one after the other: N C(n), in ns. Source: as AlphaBeta.
double messages_ns(const AlphaBeta& cost, double messages, double bytes_of_each);

/// The cost of a byte in messages of `bytes`: C(n) / n = alpha / n + beta, in ns. `bytes` is above 0.
double byte_ns(const AlphaBeta& cost, double bytes);

/// n_1/2 = alpha / beta: messages of that size reach half of the rate 1 / beta (Hockney, "The communication challenge
/// for MPP", 1994). In bytes; beta is above 0.
double bytes_of_half_rate(const AlphaBeta& cost);

/// The size at which messages reach that part of the rate 1 / beta: beta n / C(n) = e, so n = alpha e / (beta (1 - e)).
/// In bytes; 0 <= efficiency < 1, beta is above 0.
double bytes_of_efficiency(const AlphaBeta& cost, double efficiency);

/// b90 = 9 o / max(G, c/s): with buffers of that size frames take a tenth of the time ("Aggregation (variable-size
/// TRAM, 2020)", anchors of the model). o: processor time of a frame, ns; G: time of the network for a byte, ns; c/s:
/// time of the software for a byte, which is its time for a message over the message's bytes, ns. In bytes; one of
/// the two times for a byte is above 0.
double bytes_of_90_percent(double overhead_ns, double gap_per_byte_ns, double software_ns_per_byte);

}  // namespace headway::model
