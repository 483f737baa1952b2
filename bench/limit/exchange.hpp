// SPDX-License-Identifier: BSD-3-Clause
/// One PE's end of all rings: buffers being filled, and the delivery of what arrives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "deliver.hpp"
#include "processes.hpp"
#include "rings.hpp"

namespace headway::limit {

/// Where the next message of a buffer goes, and where the buffer ends.
struct Cursor {
  std::byte* at;
  std::byte* limit;
};

/// A PE's part in a pass, beside sending.
struct PassSetup {
  std::vector<std::size_t> targets;  // the PEs it may send to
  std::size_t sources = 0;           // how many others may send to it
  std::size_t buffer_bytes = 0;      // as much of each buffer is used
  std::size_t depth = 0;             // so many buffers of each ring
  Deliver deliver = nullptr;
};

class Exchange {
 public:
  /// `shared` holds bytes(pe.size(), buffer_bytes), the same for all PEs.
  Exchange(Pe& pe, std::byte* shared, std::size_t buffer_bytes, Receiver& receiver);
  static std::size_t bytes(std::size_t pes, std::size_t buffer_bytes);

  /// Between passes: zeroes the first `depth` buffers of each ring, so that nothing an earlier pass left in them looks
  /// sent in the next.
  void clear(std::size_t depth);

  /// Empty buffers towards all targets.
  void begin(const PassSetup& setup);

  /// By target. A sender writes a message at `at`, before `limit`, and moves it.
  Cursor* cursors() { return cursors_.data(); }

  std::size_t buffer_bytes() const { return setup_.buffer_bytes; }
  /// The bytes left in the buffer of `target`.
  std::size_t room_at(std::size_t target) const { return std::size_t(cursors_[target].limit - cursors_[target].at); }
  /// The target with the least room in its buffer.
  std::size_t fullest() const {
    return std::ranges::min(setup_.targets, {}, [&](std::size_t target) { return room_at(target); });
  }

  /// Hands the buffer of `target` over, delivers the buffers that have arrived and waits for an empty one. Delivers
  /// messages to this PE itself in place.
  [[gnu::noinline]] void turn_over(std::size_t target);

  /// Hands all over, and delivers until every source has ended its pass. Returns the messages delivered in the pass.
  std::uint64_t finish();

 private:
  void claim(std::size_t target);
  bool deliver_arrived();
  void deliver(std::size_t source, const std::byte* messages, std::size_t bytes) {
    receiver_.source = source;
    delivered_ += setup_.deliver(messages, bytes, receiver_);
  }

  Pe& pe_;
  Receiver& receiver_;
  PassSetup setup_;
  std::vector<Ring> outgoing_, incoming_;  // by PE; a PE's own ring is one buffer of its own
  std::vector<Cursor> cursors_;
  std::vector<std::byte> own_;
  std::vector<std::byte*> starts_;  // of the buffers at the cursors
  std::size_t ended_ = 0;           // sources
  std::uint64_t delivered_ = 0;
};

}  // namespace headway::limit
