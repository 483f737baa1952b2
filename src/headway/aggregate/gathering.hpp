/// Whether the messages for one hop gather in a buffer or go by themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <headway/am/engine.hpp>

namespace headway::aggregate {

/// Learned from what the buffers of one slot held when the PE was idle or they timed out: a message that is alone in
/// its buffer pays for opening it and for the wait, and gains nothing. After some such buffers in a row the slot stays
/// closed and messages go as they come. One that comes before the PE has been idle again would have joined the one
/// before it: from then on messages gather again.
///
/// Asked where a message finds no open buffer, told where one is posted: never on the fast path.
class Gathering {
 public:
  /// For a message that finds the slot closed: whether it goes by itself. `times_idle`: Engine::times_idle().
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
    if (reason == am::FlushReason::requested) return;  // says nothing of what would have come
    const bool single = gathered < 2 && reason != am::FlushReason::full;
    single_in_a_row_ = single ? std::min(single_in_a_row_ + 1, singles_before_alone) : 0;
  }

 private:
  // Each time that messages gather again one has gone by itself that need not have: so at most one in five does.
  static constexpr unsigned singles_before_alone = 4;

  std::uint64_t alone_at_ = 0;  // when the last message went by itself; 0: none did
  unsigned single_in_a_row_ = 0;
  bool follows_one_ = false;  // the open buffer's messages come after one that went by itself and should have waited
};

}  // namespace headway::aggregate
