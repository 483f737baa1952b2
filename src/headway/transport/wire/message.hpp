// SPDX-License-Identifier: BSD-3-Clause
/// Messages between processes on a wire: frames as they lie in memory, and three small kinds of the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/transport/frame.hpp>
#include <headway/transport/wire/credit.hpp>

namespace headway::wire {

/// Every message begins with a Frame. Its first eight bytes (Frame::link) hold the kind and the target:
///
///   byte 0      1        4          8            32
///        | kind | target | (unused) | FrameHeader | payload | tail
///
///   frame         payload and tail, one behind the other
///   announcement  a frame that follows on the channel for large messages; payload: its bytes (8)
///   credit        header.source has released frames of `target`; payload: Units
///   service       in no order, without credit; `target` is its user: the watch of processes (0) or the layers above
///                 (1); payload: its bytes
enum class Kind : std::uint8_t { frame = 1, announcement, credit, service };

/// `target` is the PE's number within its process.
constexpr std::uint64_t make_link(Kind kind, std::size_t target) {
  return std::uint64_t(kind) | std::uint64_t(target & 0xffffff) << 8;
}
constexpr Kind kind_of(std::uint64_t link) { return Kind(link & 0xff); }
constexpr std::size_t target_of(std::uint64_t link) { return link >> 8 & 0xffffff; }

/// Length of a frame on the wire.
inline std::size_t bytes_of(const transport::FrameHeader& header) {
  return transport::frame_overhead + std::size_t(header.payload_bytes) + header.tail_bytes;
}

struct Announcement {
  transport::Frame head;
  std::uint64_t bytes;
};
static_assert(sizeof(Announcement) == 40);

struct CreditMessage {
  transport::Frame head;
  Units released;
};
static_assert(sizeof(CreditMessage) == 64);

}  // namespace headway::wire
