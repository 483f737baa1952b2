// SPDX-License-Identifier: BSD-3-Clause
/// Checks of frames that have arrived, and forwarding: the part of a receiver that does not call handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/format.hpp>
#include <type_traits>

namespace headway::aggregate {

/// Reads frames with messages of Args. FormatError for a frame that no PE of this run posts.
template <class... Args>
class FrameReader : public Core {
 protected:
  static constexpr bool good_arguments = (require_argument<Args>() && ...);
  using Format = std::conditional_t<good_arguments, MessageFormat<Args...>, MessageFormat<>>;

  using Core::Core;

  bool keeps_order_by_route() const { return !Format::fixed && is_ordered() && !is_direct(); }

  /// Payload and tail have the lengths for `count` messages, as far as the header states them. All loops rely on it.
  void check_lengths(const transport::Arrival& arrival, const Entry& form) const {
    const transport::FrameHeader& header = arrival.header;
    const std::size_t count = header.count;
    if (header.payload_bytes < layout().padding)
      refuse_frame(arrival, "its payload", header.payload_bytes, "at least", layout().padding);
    if (count * form.bytes() != header.tail_bytes) {
      refuse_frame(arrival, "its tail", header.tail_bytes, "equal to", count * form.bytes());
    }
    const std::size_t bytes = header.payload_bytes - layout().padding;
    if (Format::fixed ? bytes != count * Format::fixed_bytes : bytes % Format::alignment != 0) {
      refuse_frame(arrival, "its payload without padding", bytes, Format::fixed ? "equal to" : "a multiple of",
                   Format::fixed ? count * Format::fixed_bytes : Format::alignment);
    }
  }

  PeId source_in(const transport::Arrival& arrival, const Entry& form, std::uint64_t value) const {
    if (form.source_bytes == 0) return arrival.header.source;
    const std::uint64_t source = form.source(value);
    if (source >= engine().size()) [[unlikely]]
      refuse_frame(arrival, "the source of a message", source, "below", engine().size());
    return source;
  }

  /// The length of the message at `at`, checked against the frame. A part states its own length.
  std::size_t length_of(const transport::Arrival& arrival, const std::byte* at, const std::byte* end,
                        std::uint64_t length) const {
    const auto left = std::size_t(end - at);
    if (keeps_order_by_route() && length == part_mark) {
      PartHeader part;
      if (left < sizeof part) refuse_frame(arrival, "the rest of the frame for a part", left, "at least", sizeof part);
      std::memcpy(&part, at, sizeof part);
      length = part.bytes <= left ? sizeof part + part.bytes : ~std::uint64_t(0);
    }
    if (length > left) [[unlikely]]
      refuse_frame(arrival, "the length of a message", length, "at most", left);
    return length;
  }

  /// first_one ? first : second without a branch, which the compiler would otherwise emit.
  template <class T>
  static T* select(bool first_one, T* first, T* second) {
    const auto mask = 0 - std::uintptr_t(first_one);
    return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(first) & mask) |
                                (reinterpret_cast<std::uintptr_t>(second) & ~mask));
  }

  /// A function of its own, so that the caller's loop need not save registers for it.
  __attribute__((noinline)) bool repack_to_full(const transport::Arrival& arrival, const Route::Hop& hop,
                                                const std::byte* at) {
    return repack(arrival, hop, at, Format::fixed_bytes, 0, arrival.header.source);
  }

  std::size_t message_bytes(const transport::Arrival& arrival, const std::byte* at, const std::byte* end,
                            const Entry& form, std::uint64_t value) const {
    if constexpr (Format::fixed) {
      return Format::fixed_bytes;  // checked by check_lengths()
    } else {
      return length_of(arrival, at, end, form.length(value));
    }
  }

  /// Appends a message to the buffer of its next hop. False without memory.
  bool repack(const transport::Arrival& arrival, const Route::Hop& hop, const std::byte* at, std::size_t bytes,
              std::uint64_t length, std::uint64_t source) {
    const SlotEntry& form = table().entry(hop.slot);
    const std::size_t padded = base::align_up(bytes, Format::alignment);
    Slot& slot = table().slots()[hop.slot];
    for (;;) {
      const bool fits = Format::fixed
                            ? slot.cursor != slot.limit
                            : table().is_open(hop.slot) && padded + form.bytes + entry_slack <= SlotTable::room(slot);
      if (fits) break;
      if (table().is_open(hop.slot)) {
        if (table().is_empty(hop.slot))
          refuse_frame(arrival, "the length of a message to forward", bytes, "at most", SlotTable::room(slot));
        table().post_forwarded(hop.slot);
      }
      if (!table().try_open(hop.slot, padded)) return false;
    }
    if constexpr (Format::fixed) {
      base::copy_fixed<Format::fixed_bytes>(slot.cursor, at);
      slot.cursor += padded;
      SlotTable::push_entry(slot, form, form.encode(0, hop.key, source));
    } else {
      const bool beyond_threshold = SlotTable::fills(slot, slot.cursor + padded);
      base::copy_short<true>(slot.cursor, at, bytes, true);
      slot.cursor += padded;
      write_entry(slot.limit, form, form.encode(length, hop.key, source));
      slot.limit -= form.bytes;
      if (beyond_threshold) table().post_forwarded(hop.slot);
    }
    return true;
  }
};

}  // namespace headway::aggregate
