// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <headway/model/argument.hpp>
#include <headway/model/loggp.hpp>

namespace headway::model {

namespace {

void require(const LogGP& network) {
  require_at_least("latency L (ns)", network.latency_ns, 0);
  require_at_least("overhead o (ns)", network.overhead_ns, 0);
  require_at_least("gap g (ns)", network.gap_ns, 0);
  require_at_least("gap per byte G (ns)", network.gap_per_byte_ns, 0);
}

void require_bytes(double bytes) { require_at_least("bytes of a message", bytes, 1); }

/// From one message to the next, where processor or network limits the rate.
double pace_ns(const LogGP& network, double bytes) {
  return std::max(network.overhead_ns, network.gap_ns) + (bytes - 1) * network.gap_per_byte_ns;
}

}  // namespace

double short_message_ns(const LogGP& network) {
  require(network);
  return 2 * network.overhead_ns + network.latency_ns;
}

double round_trip_ns(const LogGP& network) { return 2 * short_message_ns(network); }

double bulk_message_ns(const LogGP& network, double bytes) {
  require_bytes(bytes);
  return short_message_ns(network) + (bytes - 1) * network.gap_per_byte_ns;
}

double interval_ns(const LogGP& network, double bytes) {
  require(network);
  require_bytes(bytes);
  return network.gap_ns + (bytes - 1) * network.gap_per_byte_ns;
}

double burst_ns(const LogGP& network, double messages, double bytes) {
  require_at_least("number of messages", messages, 1);
  return (messages - 1) * pace_ns(network, bytes) + bulk_message_ns(network, bytes);
}

double segmented_message_ns(const LogGP& network, double bytes, double segment_bytes) {
  require_bytes(bytes);
  require_at_least("bytes of a segment", segment_bytes, 1);
  const double full = std::ceil(bytes / segment_bytes) - 1;
  return full * pace_ns(network, segment_bytes) + bulk_message_ns(network, bytes - full * segment_bytes);
}

AlphaBeta alpha_beta_of(const LogGP& network) {
  require(network);
  return {2 * network.overhead_ns, network.gap_per_byte_ns};
}

double parametrized_round_trip_ns(const LogGP& network, double messages, double delay_ns, double bytes) {
  require_at_least("number of messages", messages, 1);
  require_at_least("delay (ns)", delay_ns, 0);
  return (messages - 1) * std::max(network.overhead_ns + delay_ns, pace_ns(network, bytes)) +
         bulk_message_ns(network, bytes) + short_message_ns(network);
}

double measured_interval_ns(double messages, double of_all_ns, double of_one_ns) {
  require_at_least("number of messages", messages, 2);
  require_at_least("PRTT(n, 0, s) (ns)", of_all_ns, 0);
  require_at_least("PRTT(1, 0, s) (ns)", of_one_ns, 0);
  return (of_all_ns - of_one_ns) / (messages - 1);
}

double measured_overhead_ns(double messages, double delay_ns, double of_all_ns, double of_one_ns) {
  require_at_least("delay (ns)", delay_ns, 0);
  return measured_interval_ns(messages, of_all_ns, of_one_ns) - delay_ns;
}

double measured_latency_ns(double of_one_ns, double overhead_of_sender_ns, double overhead_of_receiver_ns) {
  require_at_least("PRTT(1, 0, 1) (ns)", of_one_ns, 0);
  require_at_least("overhead of the sender (ns)", overhead_of_sender_ns, 0);
  require_at_least("overhead of the receiver (ns)", overhead_of_receiver_ns, 0);
  return of_one_ns / 2 - overhead_of_sender_ns - overhead_of_receiver_ns;
}

}  // namespace headway::model
