// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/model/alpha_beta.hpp>
#include <headway/model/argument.hpp>

namespace headway::model {

namespace {

void require(const AlphaBeta& cost) {
  require_at_least("alpha (ns)", cost.alpha_ns, 0);
  require_at_least("beta (ns/byte)", cost.beta_ns_per_byte, 0);
}

}  // namespace

double message_ns(const AlphaBeta& cost, double bytes) {
  require(cost);
  require_at_least("bytes of a message", bytes, 0);
  return cost.alpha_ns + cost.beta_ns_per_byte * bytes;
}

double messages_ns(const AlphaBeta& cost, double messages, double bytes_of_each) {
  require_at_least("number of messages", messages, 0);
  return messages * message_ns(cost, bytes_of_each);
}

double byte_ns(const AlphaBeta& cost, double bytes) {
  require(cost);
  require_positive("bytes of a message", bytes);
  return cost.alpha_ns / bytes + cost.beta_ns_per_byte;
}

double bytes_of_half_rate(const AlphaBeta& cost) {
  require(cost);
  require_positive("beta (ns/byte)", cost.beta_ns_per_byte);
  return cost.alpha_ns / cost.beta_ns_per_byte;
}

double bytes_of_efficiency(const AlphaBeta& cost, double efficiency) {
  require_between("efficiency", efficiency, 0, 1 - 1e-9);
  return bytes_of_half_rate(cost) * efficiency / (1 - efficiency);
}

double bytes_of_90_percent(double overhead_ns, double gap_per_byte_ns, double software_ns_per_byte) {
  require_at_least("overhead of a frame (ns)", overhead_ns, 0);
  require_at_least("gap per byte (ns)", gap_per_byte_ns, 0);
  require_at_least("software per byte (ns)", software_ns_per_byte, 0);
  const double byte_ns = std::max(gap_per_byte_ns, software_ns_per_byte);
  require_positive("larger time for a byte (ns)", byte_ns);
  return 9 * overhead_ns / byte_ns;
}

}  // namespace headway::model
