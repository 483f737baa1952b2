// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <headway/model/aggregation.hpp>
#include <headway/model/alpha_beta.hpp>
#include <headway/model/argument.hpp>

namespace headway::model {

namespace {

void require(const MessageStream& stream) {
  require_positive("messages per ns (Q)", stream.per_ns);
  require_positive("mean bytes of a message (S)", stream.bytes);
}

/// 2 Q S alpha / kappa
double pace_bytes(double alpha_ns, const MessageStream& stream, LinearDelay delay) {
  require(stream);
  require_at_least("alpha (ns)", alpha_ns, 0);
  require_positive("price of delay (kappa)", delay.kappa);
  return 2 * stream.per_ns * stream.bytes * alpha_ns / delay.kappa;
}

}  // namespace

double effective_bytes(const Buffer& buffer) {
  require_positive("bytes of a buffer (b)", buffer.bytes);
  require_positive("threshold (f_t)", buffer.threshold);
  require_between("threshold (f_t)", buffer.threshold, 0, 1);
  return buffer.bytes * buffer.threshold;
}

double alone_ns(double alpha_ns, double beta_ns_per_byte, const MessageStream& stream, double period_ns) {
  require(stream);
  require_at_least("period (ns)", period_ns, 0);
  return messages_ns({alpha_ns, beta_ns_per_byte}, stream.per_ns * period_ns, stream.bytes);
}

double gathered_ns(double alpha_ns, double beta_ns_per_byte, const MessageStream& stream, double period_ns,
                   double delay_cost_ns) {
  require(stream);
  require_at_least("period (ns)", period_ns, 0);
  require_at_least("cost of the delay (ns)", delay_cost_ns, 0);
  const double messages = stream.per_ns * period_ns;
  return message_ns({alpha_ns, beta_ns_per_byte}, messages * stream.bytes) + messages * delay_cost_ns;
}

double bytes_for_timeout(const MessageStream& stream, double threshold, double timeout_ns) {
  require(stream);
  require_positive("threshold (f_t)", threshold);
  require_between("threshold (f_t)", threshold, 0, 1);
  require_at_least("timeout (ns)", timeout_ns, 0);
  return stream.per_ns * stream.bytes * timeout_ns / threshold;
}

double fill_ns(const MessageStream& stream, const Buffer& buffer) {
  require(stream);
  return effective_bytes(buffer) / (stream.per_ns * stream.bytes);
}

double period_ns(const MessageStream& stream, const Buffer& buffer, double timeout_ns) {
  require_at_least("timeout (ns)", timeout_ns, 0);
  return std::min(timeout_ns, fill_ns(stream, buffer));
}

double timeout_margin_ns(double alpha_ns, const MessageStream& stream, double timeout_ns, double delay_cost_ns) {
  require(stream);
  require_at_least("alpha (ns)", alpha_ns, 0);
  require_at_least("timeout (ns)", timeout_ns, 0);
  require_at_least("cost of the delay (ns)", delay_cost_ns, 0);
  const double messages = stream.per_ns * timeout_ns;
  return alpha_ns * (messages - 1) - messages * delay_cost_ns;
}

double fill_margin_ns(double alpha_ns, const MessageStream& stream, const Buffer& buffer, double delay_cost_ns) {
  require(stream);
  require_at_least("alpha (ns)", alpha_ns, 0);
  require_at_least("cost of the delay (ns)", delay_cost_ns, 0);
  return alpha_ns * (1 - stream.bytes / effective_bytes(buffer)) - delay_cost_ns;
}

double linear_margin_bytes(double alpha_ns, const MessageStream& stream, const Buffer& buffer, LinearDelay delay) {
  const double bytes = effective_bytes(buffer), pace = pace_bytes(alpha_ns, stream, delay);
  require_positive("b f_t - S (bytes)", bytes - stream.bytes);
  return pace - bytes * bytes / (bytes - stream.bytes);
}

double linear_bound_bytes(double alpha_ns, const MessageStream& stream, const Buffer& buffer, LinearDelay delay) {
  return pace_bytes(alpha_ns, stream, delay) - effective_bytes(buffer);
}

std::optional<ByteRange> worthwhile_bytes(double alpha_ns, const MessageStream& stream, LinearDelay delay) {
  const double pace = pace_bytes(alpha_ns, stream, delay);
  if (pace < 4 * stream.bytes) return std::nullopt;
  const double high = (pace + std::sqrt(pace * (pace - 4 * stream.bytes))) / 2;
  return ByteRange{pace * stream.bytes / high,
                   high};  // the product of the roots is A S; no difference of large numbers
}

double best_period_ns(double alpha_ns, double messages_per_ns, LinearDelay delay) {
  require_at_least("alpha (ns)", alpha_ns, 0);
  require_positive("messages per ns (Q)", messages_per_ns);
  require_positive("price of delay (kappa)", delay.kappa);
  return std::sqrt(2 * alpha_ns / (delay.kappa * messages_per_ns));
}

double best_messages(double alpha_ns, double messages_per_ns, LinearDelay delay) {
  return messages_per_ns * best_period_ns(alpha_ns, messages_per_ns, delay);
}

double longest_delay_ns(double alpha_ns, LinearDelay delay) {
  require_at_least("alpha (ns)", alpha_ns, 0);
  require_positive("price of delay (kappa)", delay.kappa);
  return 2 * alpha_ns / delay.kappa;
}

}  // namespace headway::model
