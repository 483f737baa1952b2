// SPDX-License-Identifier: BSD-3-Clause
/// The layout of an aggregator's frames: where messages and their entries lie, and how large frames are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/buffer_size.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/aggregate/route.hpp>
#include <headway/am/engine.hpp>
#include <string>
#include <vector>

namespace headway::aggregate {

/// Properties of the message type.
struct MessageShape {
  std::size_t fixed_bytes = 0;  // of every message with padding; 0: variable size
  std::size_t alignment = 1;
  bool wants_source = false;  // the handler takes it: on several hops each message carries it
  std::string type;           // the compiler's name of it
};

/// The form of a message's entry in the tail: | length | key | source |, little-endian. A length is a Length; key and
/// source take the fewest bytes. An entry has at most 8 bytes, and is written and read as one word, which may touch up
/// to 7 bytes below it.
struct Entry {
  unsigned length_bytes = 0, key_bytes = 0, source_bytes = 0;

  unsigned bytes() const { return length_bytes + key_bytes + source_bytes; }
  unsigned shift() const { return bytes() == 0 ? 0 : 64 - 8 * bytes(); }
  std::uint64_t length(std::uint64_t entry) const { return entry & mask(length_bytes); }
  std::uint64_t key(std::uint64_t entry) const { return entry >> (8 * length_bytes) & mask(key_bytes); }
  std::uint64_t source(std::uint64_t entry) const {
    return entry >> (8 * (length_bytes + key_bytes)) & mask(source_bytes);
  }
  static constexpr std::uint64_t mask(unsigned bytes) { return bytes == 0 ? 0 : ~std::uint64_t(0) >> (64 - 8 * bytes); }
};

/// The same for one slot, as shifts: an entry is (length | key << key_shift | source << source_shift) << shift.
struct SlotEntry {
  std::uint32_t bytes = 0;
  std::uint8_t shift = 0, key_shift = 0, source_shift = 0;
  bool has_source = false;

  std::uint64_t encode(std::uint64_t length, std::uint64_t key, std::uint64_t source) const {
    return length | key << key_shift | (has_source ? source << source_shift : 0);
  }
};

/// The length in an entry. An entry of a length alone is aligned, so that it never crosses a cache line (1.1 times as
/// fast for messages of 32 bytes). Longer messages are sent alone.
using Length = std::uint16_t;
/// The length in the entry of a part.
inline constexpr std::uint64_t part_mark = Length(-1);
inline constexpr std::uint64_t length_max = part_mark - 1;

/// Bytes below the lowest entry that writing it may touch.
inline constexpr std::size_t entry_slack = 8;

/// For entries of a length alone.
inline void write_length(std::byte* tail, std::size_t length) {
  const auto value = Length(length);
  std::memcpy(tail - sizeof value, &value, sizeof value);
}
inline std::size_t read_length(const std::byte* entry_end) {
  Length value;
  std::memcpy(&value, entry_end - sizeof value, sizeof value);
  return value;
}
inline void write_entry(std::byte* tail, const SlotEntry& entry, std::uint64_t value) {
  const std::uint64_t word = value << entry.shift;
  std::memcpy(tail - 8, &word, 8);
}
inline std::uint64_t read_entry(const std::byte* entry_end, const Entry& entry) {
  std::uint64_t word;
  std::memcpy(&word, entry_end - 8, 8);
  return word >> entry.shift();
}

enum FrameFlags : std::uint8_t {
  frame_of_one = 1,   // a single message that fills the frame; its length is the payload's
  frame_of_part = 2,  // a PartHeader and one part of a message
  frame_of_key = 4,   // a KeyHeader and a single message with one empty view: the key names its content
};

/// Bytes before the first message of a frame: a payload starts 32 bytes behind an address aligned to 64.
constexpr std::size_t padding_for(std::size_t alignment) { return alignment > 32 ? 32 : 0; }

/// Which sizes the program has left to the runtime.
struct SizeRules {
  bool adapts_sizes = false;       // of buffers; a given size does not adapt
  std::size_t messages_least = 1;  // of fixed size that a buffer must hold, else each is sent alone
};

/// Follows from the options, the route and the message type, so that all PEs compute the same.
struct FrameLayout {
  FrameLayout(am::Engine& engine, const Route& route, const AggregatorOptions& options, const MessageShape& shape,
              SizeRules rules);

  /// Messages of fixed size in a frame of a level.
  std::size_t capacity(unsigned level, std::size_t bytes) const;
  /// Bytes of a frame at the threshold.
  std::size_t filled(std::size_t bytes) const { return std::size_t(threshold * double(bytes)); }

  std::size_t fixed_bytes, alignment;  // of MessageShape
  std::size_t padding;                 // before the first message
  double threshold;
  std::size_t frame_bytes;         // of the largest buffer at any level that this PE fills alone
  std::size_t alone_from = 0;      // messages of at least this length are sent alone
  std::size_t by_value_bytes_max;  // of a message in a receiver's cell
  std::size_t in_place_bytes_max;  // of a message in a receiver's eager slot
  // The largest frames of a message sent alone, and of a part of one.
  std::size_t alone_frame_bytes, alone_frame_bytes_between_hosts, part_frame_bytes;
  std::size_t part_bytes_max;  // of a message in such a frame, without its PartHeader
  // Of type, options and sizes: a PE must be able to forward the messages that another buffers.
  std::uint16_t signature;
  std::vector<SizeLimits> sizes;  // by level
  std::vector<Entry> entries;     // by level
  std::vector<SlotEntry> slot_entries;
};

}  // namespace headway::aggregate
