// SPDX-License-Identifier: BSD-3-Clause
/// Whether the messages for one hop gather in a buffer or are sent alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/model/aggregation.hpp>

namespace headway::aggregate {

/// Counts the messages in buffers of one slot that were posted when the PE was idle or after a timeout. A message that
/// is alone in its buffer pays for the buffer and waits, without a gain. After some of these buffers in a row the slot
/// stays closed, and messages are sent alone. When two messages arrive between two idle moments, messages gather again.
///
/// Called when a message finds no open buffer and when a buffer is posted, never on the fast path.
class Gathering {
 public:
  /// Whether a message that finds the slot closed is sent alone. `times_idle`: Engine::times_idle().
  bool sends_alone(std::uint64_t times_idle) {
    if (single_in_a_row_ < singles_before_alone) return false;
    if (alone_at_ == times_idle) {
      single_in_a_row_ = 0;
      follows_one_ = true;
      return false;
    }
    alone_at_ = times_idle;
    return true;
  }

  void posted(am::FlushReason reason, std::size_t messages) {
    const std::size_t gathered = messages + (follows_one_ ? 1 : 0);
    follows_one_ = false;
    if (reason == am::FlushReason::requested) return;  // more messages might have followed
    const bool single = gathered < model::messages_to_gather_least && reason != am::FlushReason::full;
    single_in_a_row_ = single ? std::min(single_in_a_row_ + 1, singles_before_alone) : 0;
  }

 private:
  // Each change back to gathering costs one message that was sent alone too early: at most one in five.
  static constexpr unsigned singles_before_alone = 4;

  std::uint64_t alone_at_ = 0;  // times_idle of the last message sent alone; 0: none
  unsigned single_in_a_row_ = 0;
  bool follows_one_ = false;  // the open buffer follows a message that was sent alone too early
};

}  // namespace headway::aggregate
