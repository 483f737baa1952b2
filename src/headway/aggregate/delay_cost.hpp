/// How many messages gather where their delay costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>

namespace headway::aggregate {

/// The model of "Aggregation (variable-size TRAM, 2020)" with c(t) = kappa t: a frame takes alpha, and each of Q
/// messages a nanosecond costs kappa for each nanosecond that it is delayed. Frames posted every tau cost alpha / tau +
/// kappa Q tau / 2 a nanosecond; least at tau = sqrt(2 alpha / (kappa Q)).
struct DelayCost {
  double frame_ns = 0;  // alpha
  double kappa = 0;     // 0: delay costs nothing

  bool any() const { return kappa > 0; }

  /// Messages in a frame, Q tau, of those that come `interval_ns` apart, 1 / Q. From 2 on gathering pays: alpha (Q t -
  /// 1) > Q t c(t / 2) holds for some t just where this is above 2.
  double messages(double interval_ns) const { return std::sqrt(2 * frame_ns / (kappa * interval_ns)); }

  /// However many messages come, gathering for longer does not pay.
  double delay_ns_max() const { return 2 * frame_ns / kappa; }
};

/// Learned from how long buffers of one slot were open and what they held: how far apart its messages come. Where that
/// is so far that none would gather in time, messages go by themselves, and are timed one by one. Asked where a message
/// finds no open buffer, told where one is posted: never on the fast path.
class Pace {
 public:
  /// For a message of `bytes` that finds the slot closed, at `now`: whether it goes by itself.
  bool passes(const DelayCost& cost, std::size_t bytes, std::int64_t now) {
    if (passed_at_ != am::never) take(double(now - passed_at_) - cost.frame_ns);  // without what sending that one took
    passed_at_ = am::never;
    if (message_bytes_ == 0) message_bytes_ = double(bytes);
    if (interval_ns_ == 0 || cost.messages(interval_ns_) >= 2) return false;
    passed_at_ = now;
    return true;
  }

  /// `bytes`: of its messages and their entries.
  void posted(std::int64_t open_ns, std::size_t messages, std::size_t bytes) {
    passed_at_ = am::never;
    message_bytes_ = double(bytes) / double(messages);
    const double interval_ns = double(open_ns) / double(messages);
    // where there was but one, the next came no sooner
    if (messages > 1 || interval_ns > interval_ns_) take(interval_ns);
  }

  /// After so many messages a buffer is posted; at least 2, for a buffer of one tells nothing of how soon others come,
  /// and its time is bounded. Those at a hop where none may go by itself would else stay alone for good.
  std::size_t messages_max(const DelayCost& cost) const {
    if (interval_ns_ == 0) return first_messages;
    return std::size_t(std::clamp(std::round(cost.messages(interval_ns_)), 2.0, messages_most));
  }
  /// The same in bytes.
  std::size_t bytes_max(const DelayCost& cost) const {
    return std::size_t(double(messages_max(cost)) * std::max(message_bytes_, 1.0));
  }

 private:
  static constexpr std::size_t first_messages = 8;  // before anything is known
  static constexpr double messages_most = 1e9;

  /// Geometric means: bursts and pauses differ by orders of magnitude.
  void take(double interval_ns) {
    const double at_least_1 = std::max(interval_ns, 1.0);
    interval_ns_ = interval_ns_ == 0 ? at_least_1 : std::sqrt(interval_ns_ * at_least_1);
  }

  double interval_ns_ = 0;              // 0: not known
  double message_bytes_ = 0;            // of the last buffer's, in the mean
  std::int64_t passed_at_ = am::never;  // when the last message went by itself, if no buffer was opened since
};

}  // namespace headway::aggregate
