// SPDX-License-Identifier: BSD-3-Clause
/// Whether aggregation pays: the model of "Aggregation (variable-size TRAM, 2020)", chapter 4, equations 4.1 to 4.13.
///
/// A PE generates Q messages per ns of S bytes on average. A frame costs alpha, a byte beta. A message that waits for t
/// costs c(t). Frames that are posted every T hold Q T messages, which wait for T / 2 on average:
///
///   each message alone, in T    alpha Q T + beta Q S T
///   one frame, in T             alpha     + beta Q S T + Q T c(T / 2)
///
/// T is the timeout tau, or the time b f_t / (Q S) in which a buffer of b bytes fills to its threshold f_t, if that is
/// shorter. beta has no effect on the difference.
///
/// All functions throw SettingError for arguments outside their range. Times are in ns.
#pragma once

#include <cstddef>
#include <optional>

namespace headway::model {

/// The messages of a PE for one next PE.
struct MessageStream {
  double per_ns = 0;  // Q, above 0
  double bytes = 0;   // S, above 0: the mean
};

/// A buffer of an aggregator. It is posted at b f_t bytes.
struct Buffer {
  double bytes = 0;      // b, above 0
  double threshold = 1;  // f_t, above 0, at most 1; 1 for messages of fixed size
};
double effective_bytes(const Buffer& buffer);  // b f_t

/// c(t) = kappa t: kappa is the price of one ns of delay of one message, in ns. The application knows it; 0 or more.
struct LinearDelay {
  double kappa = 0;
  double operator()(double delay_ns) const { return kappa * delay_ns; }
};

/// Messages sent alone for `period_ns`: alpha Q T + beta Q S T. The left side of the comparison behind inequality 4.4.
double alone_ns(double alpha_ns, double beta_ns_per_byte, const MessageStream& stream, double period_ns);
/// The same messages in one frame: alpha + beta Q S T + Q T c(T / 2). `delay_cost_ns` is c(T / 2), for one message.
double gathered_ns(double alpha_ns, double beta_ns_per_byte, const MessageStream& stream, double period_ns,
                   double delay_cost_ns);

/// The bytes that a buffer needs for the timeout to post it before it is full: b = Q S tau / f_t, the condition of
/// inequality 4.4.
double bytes_for_timeout(const MessageStream& stream, double threshold, double timeout_ns);
/// The time in which a buffer fills: tau' = b f_t / (Q S), in inequality 4.9.
double fill_ns(const MessageStream& stream, const Buffer& buffer);
/// The time between two frames: the shorter one of timeout and fill_ns().
double period_ns(const MessageStream& stream, const Buffer& buffer, double timeout_ns);

/// Inequality 4.4, buffers posted by the timeout: alpha (Q tau - 1) - Q tau c(tau / 2), in ns for each timeout. Above
/// 0: aggregation pays. `delay_cost_ns` is c(tau / 2).
double timeout_margin_ns(double alpha_ns, const MessageStream& stream, double timeout_ns, double delay_cost_ns);
/// Inequality 4.9, buffers posted full: alpha (1 - S / (b f_t)) - c(b f_t / (2 Q S)), in ns for each message. Above 0:
/// aggregation pays. `delay_cost_ns` is c(fill_ns() / 2).
double fill_margin_ns(double alpha_ns, const MessageStream& stream, const Buffer& buffer, double delay_cost_ns);
/// Inequality 4.13, which is 4.9 with c(t) = kappa t: 2 Q S alpha / kappa - (b f_t)^2 / (b f_t - S), in bytes. Above 0:
/// aggregation pays. kappa is above 0 and b f_t above S.
double linear_margin_bytes(double alpha_ns, const MessageStream& stream, const Buffer& buffer, LinearDelay delay);
/// What follows from 4.13 for any S: 2 Q S alpha / kappa - b f_t, in bytes. Below 0: aggregation does not pay. Above 0
/// says nothing, for it is at least linear_margin_bytes().
double linear_bound_bytes(double alpha_ns, const MessageStream& stream, const Buffer& buffer, LinearDelay delay);

/// The same with any c, as a function of the delay in ns.
template <typename DelayCost>
double timeout_margin_ns_with(double alpha_ns, const MessageStream& stream, double timeout_ns, const DelayCost& cost) {
  return timeout_margin_ns(alpha_ns, stream, timeout_ns, cost(timeout_ns / 2));
}
template <typename DelayCost>
double fill_margin_ns_with(double alpha_ns, const MessageStream& stream, const Buffer& buffer, const DelayCost& cost) {
  return fill_margin_ns(alpha_ns, stream, buffer, cost(fill_ns(stream, buffer) / 2));
}

/// The values of b f_t for which inequality 4.13 holds are those between the roots of x^2 - A x + A S = 0, with
/// A = 2 Q S alpha / kappa. Nothing if A < 4 S, which means best_messages() < 2.
struct ByteRange {
  double low, high;
};
std::optional<ByteRange> worthwhile_bytes(double alpha_ns, const MessageStream& stream, LinearDelay delay);

// Frames every T cost alpha / T + kappa Q T / 2 for each ns. The least is at T = sqrt(2 alpha / (kappa Q)); kappa and Q
// are above 0. Source: the derivative of the second line above with c(t) = kappa t (docs/decisions/0016).

/// The best time between two frames, in ns.
double best_period_ns(double alpha_ns, double messages_per_ns, LinearDelay delay);
/// The best number of messages in a frame, Q T. Aggregation pays for some T exactly if it is above 2.
double best_messages(double alpha_ns, double messages_per_ns, LinearDelay delay);
/// 2 alpha / kappa, in ns: a longer period does not pay at any Q. It bounds a useful timeout.
double longest_delay_ns(double alpha_ns, LinearDelay delay);

/// Fewer messages than that within the timeout are better sent alone ("Aggregation (variable-size TRAM, 2020)", anchors
/// of the model: about two).
inline constexpr std::size_t messages_to_gather_least = 2;

}  // namespace headway::model
