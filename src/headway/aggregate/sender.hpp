// SPDX-License-Identifier: BSD-3-Clause
/// The ways to send a message that are not on the fast path of Aggregator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/receiver.hpp>
#include <type_traits>

namespace headway::aggregate {

/// The sending half of an aggregator without its fast path: full and closed slots, several hops, messages sent alone or
/// in parts. Functions that the fast path calls are not inlined, so that it need not save registers for them.
template <class... Args>
class Sender : public Receiver<Args...> {
  using Base = Receiver<Args...>;

 protected:
  using Base::Base;
  using Base::keeps_order_by_route, Core::check_send, Core::engine, Core::large, Core::layout, Core::poster,
      Core::route;
  using Core::table;
  using typename Base::Format;

  static constexpr bool may_be_small =
      Format::prefix_bytes <= transport::by_value_bytes_most && Format::alignment <= 32;

  /// Small arguments are passed by value: a reference would force the caller's variable into memory. Rare cases are
  /// functions of their own, so that this one need not save registers for them.
  __attribute__((noinline)) void send_not_one_hop(std::size_t destination,
                                                  ByValueIfSmall<Args>... args) requires Format::fixed {
    if (destination < table().fast_paths().buffered) [[likely]] {
      const Route::Hop& hop = route().first(destination);
      Slot& slot = table().slots()[hop.slot];
      if (slot.cursor != slot.limit) [[likely]]
        return put_fixed(slot, hop, engine().id(), args...);
    } else if constexpr (may_be_small) {
      if (destination < table().fast_paths().by_value) return send_directly(destination, args...);
    }
    send_general_apart(destination, args...);
  }

  __attribute__((noinline)) void send_directly(std::size_t destination,
                                               ByValueIfSmall<Args>... args) requires may_be_small {
    send_by_value(destination, Format::fixed_bytes, Wait::yes, args...);
  }

  __attribute__((noinline)) void send_general_apart(std::size_t destination, ByValueIfSmall<Args>... args) {
    send_general(destination, Wait::yes, args...);
  }

  /// The slot has room.
  void put_fixed(Slot& slot, const Route::Hop& hop, std::uint64_t source, const Args&... args) {
    std::byte* const at = slot.cursor;
    slot.cursor = at + Format::fixed_bytes;
    Format::pack(at, args...);
    // A branch on the last hop, which has no entry, would be mispredicted: SlotTable::push_entry() always writes.
    const SlotEntry& form = table().entry(hop.slot);
    SlotTable::push_entry(slot, form, form.encode(0, hop.key, source));
  }

  /// Derives the destination from the slot, so that the caller need not keep it in a register.
  __attribute__((noinline)) void send_to_full(Slot& slot, ByValueIfSmall<Args>... args) {
    const auto destination = std::size_t(&slot - table().slots());
    if constexpr (may_be_small) {
      if (Format::fixed_bytes <= layout().by_value_bytes_max && table().starts_alone(slot)) {
        send_by_value(destination, Format::fixed_bytes, Wait::yes, args...);
        return;
      }
    }
    send_alone_or_buffered(destination, args...);
  }

  /// The same for a message of variable size.
  __attribute__((noinline)) void send_unpacked(std::size_t destination, std::size_t bytes,
                                               ByValueIfSmall<Args>... args) {
    if constexpr (may_be_small) {
      if (destination < table().fast_paths().one_hop && bytes < layout().alone_from &&
          bytes <= layout().by_value_bytes_max && table().starts_alone(table().slots()[destination])) {
        send_by_value(destination, bytes, Wait::yes, args...);
        return;
      }
    }
    send_general_apart(destination, args...);
  }

  /// A function of its own, so that its callers need not save registers for it.
  __attribute__((noinline, cold)) void send_alone_or_buffered(std::size_t destination, ByValueIfSmall<Args>... args) {
    if (table().sends_alone(std::uint32_t(destination), Format::fixed_bytes))
      send_alone(destination, Format::fixed_bytes, Wait::yes, args...);
    else
      send_buffered(destination, Format::fixed_bytes, Wait::yes, args...);
  }

  bool send_general(std::size_t destination, Wait wait, const Args&... args) {
    check_send(destination);
    const std::size_t bytes = Format::fixed ? Format::fixed_bytes : Format::bytes(args...);
    if (bytes >= layout().alone_from) return send_large(destination, bytes, wait, args...);
    if (table().sends_alone(route().first(destination).slot, bytes))
      return send_alone(destination, bytes, wait, args...);
    return send_buffered(destination, bytes, wait, args...);
  }

 private:
  /// Puts the message into a buffer, and opens one if necessary.
  bool send_buffered(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) {
    const Route::Hop& hop = route().first(destination);
    if constexpr (Format::fixed) {
      for (;;) {
        Slot& slot = table().slots()[hop.slot];
        if (slot.cursor != slot.limit) {
          put_fixed(slot, hop, engine().id(), args...);
          return true;
        }
        if (table().is_open(hop.slot)) {
          table().post_full(hop.slot);
          if (table().sends_alone(hop.slot, Format::fixed_bytes))
            return send_alone(destination, Format::fixed_bytes, wait, args...);
        } else if (!table().open(hop.slot, Format::fixed_bytes, wait)) {
          return false;
        }
      }
    } else {
      const std::uint64_t value = table().entry(hop.slot).encode(bytes, hop.key, engine().id());
      return table().put(
          hop.slot, bytes, value, [&](std::byte* at) { Format::template pack<Into::frame>(at, args...); }, wait);
    }
  }

  bool send_by_value(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) requires may_be_small {
    alignas(Format::alignment > 16 ? 64 : 16) transport::SmallFrame small;
    Format::pack(small.message, args...);
    return poster().post_by_value(destination, small, bytes, wait);
  }

  bool send_large(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) {
    if (!keeps_order_by_route()) {
      if (bytes <= layout().part_bytes_max) return send_alone(destination, bytes, wait, args...);
      if (bytes <= large().alone_bytes_max(destination)) {
        const auto writing = is_of_views ? am::Writing::at_once : am::Writing::in_pieces;
        if (const am::OpenFrame frame = large().claim(destination, bytes, wait, writing)) {
          if constexpr (is_of_views) {
            if (frame.past_caches) return send_past_caches(destination, frame, bytes, args...);
          }
          return send_in_frame(destination, frame, bytes, args...);
        }
      }
    }
    const auto send = [&](Pieces pieces) {
      return keeps_order_by_route() ? large().send_in_order(destination, pieces, bytes, wait)
                                    : large().send_in_parts(destination, pieces, bytes, wait);
    };
    return Format::with_pieces(send, args...);
  }

  /// The message is mainly views, so its large content exists in memory already.
  static constexpr bool is_of_views = Format::views != 0 && !Format::owning && Format::prefix_bytes <= 1024;

  /// Packing runs no code of the program, which could take long, throw or send.
  static constexpr bool goes_in_place = !Format::owning && (has_ready_parts<Args>() && ...) &&
                                        Format::prefix_bytes <= transport::in_place_bytes_most &&
                                        Format::alignment <= 32;

  /// The same as send_in_frame(), by non-temporal stores.
  bool send_past_caches(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes, const Args&... args) {
    try {
      Format::with_pieces([&](Pieces pieces) { large().write_past_caches(frame, pieces, bytes); }, args...);
    } catch (...) {
      engine().store().drop(destination, frame);
      throw;
    }
    poster().post_alone(destination, frame, bytes);
    return true;
  }

  /// Sends the message in a frame of its own, straight to its PE.
  bool send_alone(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) {
    if constexpr (may_be_small) {
      if (bytes <= layout().by_value_bytes_max) return send_by_value(destination, bytes, wait, args...);
    }
    if constexpr (goes_in_place) {
      if (bytes <= layout().in_place_bytes_max) {
        if (std::byte* const at = poster().try_begin_in_place(destination)) {
          Format::template pack<Into::frame>(at, args...);
          poster().post_in_place(destination, bytes);
          return true;
        }
      }
    }
    const am::OpenFrame frame = poster().claim_alone(destination, bytes, wait, am::Writing::in_pieces);
    return frame && send_in_frame(destination, frame, bytes, args...);
  }

  bool send_in_frame(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes, const Args&... args) {
    try {
      Format::template pack<Into::frame>(poster().message_of(frame), args...);
    } catch (...) {
      engine().store().drop(destination, frame);
      throw;
    }
    poster().post_alone(destination, frame, bytes);
    return true;
  }
};

}  // namespace headway::aggregate
