// SPDX-License-Identifier: BSD-3-Clause
/// The input of the fuzzer of frames, and how the fuzzer changes it:
///
///     | How it arrives, 1 byte | FrameHeader, 24 | payload | tail |
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuzz/fuzz.hpp>
#include <headway/transport/frame.hpp>
#include <map>
#include <utility>

namespace headway::fuzz {

inline constexpr std::size_t header_at = 1, body_at = header_at + sizeof(transport::FrameHeader);

/// How an input arrives.
enum How : std::uint8_t {
  tail_apart = 1,      // in memory of its own
  keep_signature = 2,  // instead of the right one for its handler
  no_room = 4,         // for frames of the PE's own, at first
  by_value = 8,        // if it is short enough
  idle = 16,           // the PE posts its open buffers
  in_quiesce = 32,
  in_allreduce = 64,
};

/// Changes one thing and keeps the rest of the frame as it should be: a field of the header, entries or messages with
/// or without their counts, numbers in them, bytes. Payload and tail fill the input afterwards.
void mutate_frame(Bytes& input, const Bytes& other, Random& random);

/// How long buffers are, learnt from valid ones: a tail is so many bytes a message for each handler and hop; so is a
/// payload of messages of fixed size for each handler, behind what aligns the first.
class FrameLengths {
 public:
  void learn(const transport::FrameHeader& header);
  /// Whether `count` messages have such a payload and tail. True of what too few were seen of.
  bool may_have(const transport::FrameHeader& header) const;
  /// On how many hops messages of handlers for which they are known to be of fixed size have entries.
  std::size_t fixed_with_entries() const;

 private:
  /// Bytes by count, where that is a straight line.
  struct Line {
    std::size_t frames = 0;
    std::int64_t count = 0, bytes = 0;  // of the first
    std::int64_t slope = -1;            // -1: all had the same count
    bool straight = true;

    bool known() const { return frames >= 8 && straight && slope >= 0; }
    std::int64_t at(std::int64_t c) const { return bytes + slope * (c - count); }
    void add(std::int64_t c, std::int64_t b);
  };
  std::map<std::uint32_t, Line> payloads_;
  std::map<std::pair<std::uint32_t, std::uint8_t>, Line> tails_;
};

}  // namespace headway::fuzz
