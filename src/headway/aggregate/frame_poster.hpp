// SPDX-License-Identifier: BSD-3-Clause
/// Claims and posts the frames of an aggregator, and sends single messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/counters.hpp>
#include <headway/aggregate/frame_layout.hpp>
#include <headway/am/engine.hpp>

namespace headway::aggregate {

/// Whether a send may wait for memory. A handler never waits: with `yes` its frame spills.
enum class Wait { yes, no };

/// Used on the PE's thread. The main program may wait in it for memory, and runs handlers meanwhile.
class FramePoster {
 public:
  FramePoster(am::Engine& engine, std::size_t padding);

  am::Engine& engine() const { return *engine_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }
  /// The aggregator's number and signature go into every header.
  void identify(std::uint32_t number, std::uint16_t signature);

  /// The frame of a message of `bytes` that is sent alone. The caller writes the message to message_of() and calls
  /// post_alone(). Empty only for Wait::no.
  am::OpenFrame claim_alone(std::size_t destination, std::size_t bytes, Wait wait,
                            am::Writing writing = am::Writing::any);
  std::byte* message_of(const am::OpenFrame& frame) const { return frame.frame->payload() + padding_; }
  void post_alone(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes,
                  std::uint8_t flags = frame_of_one);
  /// Waits for a frame.
  am::OpenFrame claim_waiting(std::size_t target, std::size_t bytes, std::uint8_t hops_left, am::Writing writing);
  void post(std::size_t target, const am::OpenFrame& frame, am::ScopeId scope, std::size_t payload_bytes,
            std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags);
  /// The same for a frame that PEs of this process have filled. `owner` owns its memory; `tag` stands for its scope.
  void post_merged(std::size_t target, am::OpenFrame frame, std::size_t owner, std::uint8_t tag,
                   std::size_t payload_bytes, std::size_t tail_bytes, std::uint32_t count);

  /// Posts a message of up to FrameLayout::by_value_bytes_max bytes in `message`, without frame memory. False only for
  /// Wait::no.
  bool post_by_value(std::size_t destination, transport::SmallFrame& message, std::size_t bytes, Wait wait);
  /// The same for a frame_of_key.
  bool post_key_by_value(std::size_t destination, transport::SmallFrame& message, std::size_t bytes);

  /// The address for a message of up to FrameLayout::in_place_bytes_max bytes in the receiver's inbox. The caller
  /// writes it at once, without another call before post_in_place(). nullptr if the message must be sent in another
  /// way.
  [[nodiscard]] std::byte* try_begin_in_place(std::size_t destination) {
    am::FrameStore& store = engine_->store();
    return store.spilling() ? nullptr : store.try_begin_in_place(destination);
  }
  void post_in_place(std::size_t destination, std::size_t bytes);

  void count_alone(std::size_t bytes);
  bool leaves_host(std::size_t target) const { return !host_.contains(target); }

  /// After the main program has posted a buffer: runs handlers.
  void poll_some() {
    if (engine_->may_block()) engine_->poll_some();
  }
  /// After a message sent alone: as often as with direct().
  void poll_every_few_posts();

 private:
  using HeaderWords = std::uint64_t[3];  // of a message sent alone, without length and scope

  bool leaves_process(std::size_t target) const { return target - process_first_ >= process_pes_; }
  void fill_header(transport::FrameHeader& header, am::ScopeId scope, std::uint8_t hops_left, std::size_t payload_bytes,
                   std::size_t tail_bytes, std::uint32_t count, std::uint8_t flags) const;
  void count_frame(std::size_t target, std::size_t bytes);
  void complete(HeaderWords& header, const HeaderWords& form, std::size_t bytes) const;
  bool post_small(const HeaderWords& form, std::size_t destination, transport::SmallFrame& message, std::size_t bytes,
                  Wait wait);
  bool post_by_value_later(std::size_t destination, transport::SmallFrame& message, Wait wait);
  void count_by_value(std::size_t destination, std::size_t bytes);

  am::Engine* engine_;
  std::size_t process_first_, process_pes_;  // this PE's process: its first PE, and how many one has
  transport::PeRange host_;                  // the PEs of this host
  std::size_t padding_;
  std::uint32_t number_ = 0, posts_ = 0;
  std::uint16_t signature_ = 0;
  HeaderWords alone_header_ = {}, key_header_ = {};
  Counters counters_;
};

}  // namespace headway::aggregate
