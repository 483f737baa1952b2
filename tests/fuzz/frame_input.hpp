/// What the fuzzer of frames decodes, and how it makes another one of it:
///
///     | How it arrives, 1 byte | FrameHeader, 24 | payload | tail |
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuzz/fuzz.hpp>
#include <headway/transport/frame.hpp>

namespace headway::fuzz {

inline constexpr std::size_t header_at = 1, body_at = header_at + sizeof(FrameHeader);

/// How an input arrives.
enum How : std::uint8_t {
  tail_apart = 1,      // in memory of its own
  keep_signature = 2,  // instead of the right one for its handler
  no_room = 4,         // for frames of the PE's own, at first
  by_value = 8,        // if it is short enough
  idle = 16,           // the PE posts what is in its open buffers
  in_quiesce = 32,
  in_allreduce = 64,
};

/// Changes one thing and keeps the rest of the frame as it should be: a field of the header, entries or messages with
/// or without their counts, numbers in them, bytes. Payload and tail fill the input afterwards.
void mutate_frame(Bytes& input, const Bytes& other, Random& random);

}  // namespace headway::fuzz
