// SPDX-License-Identifier: BSD-3-Clause
/// Frames: a header and bytes. The header is the same on every transport.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

namespace headway {

/// A processing element's number, 0 to size-1. Converts from any integer, so that a destination can be computed; a
/// value out of range (negative ones included) stays out of range instead of wrapping to a wrong PE.
struct PeId {
  std::size_t value = 0;

  constexpr PeId() = default;
  template <class Integer>
  requires std::integral<Integer>
  constexpr PeId(Integer v) : value(static_cast<std::size_t>(v)) {}
  constexpr operator std::size_t() const { return value; }
};

}  // namespace headway

template <>
struct std::hash<headway::PeId> {
  std::size_t operator()(headway::PeId pe) const noexcept { return std::hash<std::size_t>()(pe.value); }
};

namespace headway::transport {

///   byte   0         4            8       12       14     15          16        20          22      23      24
///          | payload | tail bytes | count | source | kind | hops left | handler | signature | scope | flags | payload
///          ...
///
/// The payload grows up from byte 24; the tail (lengths and routing keys) lies at the end of the frame's memory and
/// grows down. A frame on the wire is header + payload + tail.
struct FrameHeader {
  std::uint32_t payload_bytes;
  std::uint32_t tail_bytes;
  std::uint32_t count;      // messages in the frame
  std::uint16_t source;     // the PE that posted it
  std::uint8_t kind;        // FrameKind
  std::uint8_t hops_left;   // hops that its messages may take after this one
  std::uint32_t handler;    // the number of the receiver's frame handler; no other handler of the run has it
  std::uint16_t signature;  // of that handler's message type and route; both sides must agree
  std::uint8_t scope;       // the epoch of its messages, and the parity of the quiescence phase they were sent in
  std::uint8_t flags;       // defined by the handler
};
static_assert(sizeof(FrameHeader) == 24);

/// The handler of a frame, its scope and its flags: the last eight bytes of the header. Frames at their last hop with
/// equal values are handled alike.
inline std::uint64_t handling_of(const FrameHeader& header) {
  static_assert(offsetof(FrameHeader, handler) == 16 && offsetof(FrameHeader, flags) == 23);
  std::uint64_t handling;
  std::memcpy(&handling, &header.handler, sizeof handling);
  return handling;
}

/// The source of a frame of messages at its last hop. For every other frame it is larger than the number of any PE.
inline std::uint32_t source_at_last_hop(const FrameHeader& header) {
  static_assert(offsetof(FrameHeader, source) == 12 && offsetof(FrameHeader, hops_left) == 15);
  static_assert(std::endian::native == std::endian::little);
  std::uint32_t source;
  std::memcpy(&source, &header.source, sizeof source);
  return source;
}

enum class FrameKind : std::uint8_t {
  messages = 0,  // counted for quiescence; held until their scope is open
  control,       // control messages: never counted, never held
};

/// A frame in memory of its sender: claimed, filled, posted, and returned by its receiver. `link` belongs to the PE
/// that holds the frame. The payload begins at byte 32, so that it is aligned for every type with an alignment of up
/// to 32.
struct Frame {
  std::uint64_t link;
  FrameHeader header;

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(Frame) == 32);

/// Bytes of a frame's memory that are not payload or tail.
inline constexpr std::size_t frame_overhead = sizeof(Frame);

/// The largest payload and tail of a frame that travels by value. With the header before them they take four lines.
inline constexpr std::size_t by_value_bytes_most = 224;
static_assert(frame_overhead + by_value_bytes_most == 256);

/// The largest payload of a frame that is written where it arrives; such a frame has no tail:
/// Endpoint::try_begin_in_place().
inline constexpr std::size_t in_place_bytes_most = 4128;

/// Memory of a caller for a frame that travels by value; its payload lies in `message`.
struct SmallFrame {
  Frame frame;
  std::byte message[by_value_bytes_most];
};
static_assert(offsetof(SmallFrame, message) == frame_overhead);

/// A frame that has arrived, as the receiver reads it in place. Its payload lies 32 bytes behind an address that is
/// aligned to 64. `tail_end` is one past the tail's last byte. Valid until release(); with `owned` 0 until the next
/// poll().
struct Arrival {
  FrameHeader header;
  const std::byte* payload = nullptr;
  const std::byte* tail_end = nullptr;
  std::uint64_t owned = 0;  // names the sender's memory for the transport; 0: release() returns no memory
};

}  // namespace headway::transport
