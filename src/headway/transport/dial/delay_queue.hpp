// SPDX-License-Identifier: BSD-3-Clause
/// Arrived frames that their receiver may not see yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>
#include <memory>
#include <vector>

namespace headway::dial {

inline constexpr std::int64_t never = INT64_MAX;

/// Frames by value are copied: their memory is valid only until the next poll of the transport. Other frames stay lent,
/// and the senders' frame memory bounds them.
class DelayQueue {
 public:
  /// `senders` have numbers from 0. Frames of one sender keep their order.
  DelayQueue(std::size_t senders, std::size_t copies_max);

  /// True if there may be no room for another frame.
  bool full() const { return free_.empty(); }
  /// Takes a frame that is visible from `visible_at` on, or later if an earlier frame of `sender` is. Not if full().
  void take(const transport::Arrival& arrival, std::size_t sender, std::int64_t visible_at);

  /// The time at which the next frame becomes visible, or never.
  std::int64_t next() const { return held_.empty() ? never : held_.front().visible_at; }

  /// Moves the earliest frame to `arrival` if it is visible at `now`. A copied one is valid until free_read().
  [[nodiscard]] bool pop(std::int64_t now, transport::Arrival& arrival);
  void free_read();

  /// Calls release(arrival) for all frames that are lent.
  template <class Release>
  void release_all(Release release) {
    for (const Held& held : held_) {
      if (held.arrival.owned != 0) release(held.arrival);
    }
    held_.clear();
  }

 private:
  static constexpr std::uint32_t no_place = UINT32_MAX;

  /// As Arrival asks for: the payload lies 32 bytes behind an address that is aligned to 64.
  struct alignas(64) Place {
    std::byte before[transport::frame_overhead];
    std::byte bytes[transport::by_value_bytes_most];
  };
  struct Held {
    std::int64_t visible_at;
    std::uint64_t sequence;
    transport::Arrival arrival;
    std::uint32_t place;  // of the copy, or no_place
    bool operator>(const Held& other) const {
      return visible_at != other.visible_at ? visible_at > other.visible_at : sequence > other.sequence;
    }
  };

  std::unique_ptr<Place[]> places_;
  std::vector<std::uint32_t> free_;
  std::vector<Held> held_;  // a heap, earliest first
  std::vector<std::int64_t> last_visible_;
  std::uint64_t sequence_ = 0;
  std::uint32_t read_place_ = no_place;
};

}  // namespace headway::dial
