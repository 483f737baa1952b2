// SPDX-License-Identifier: BSD-3-Clause
/// The receiving half of an aggregator: delivers and forwards messages. Its loops are instantiated for each handler
/// type, with the user's code inlined.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/format.hpp>
#include <headway/aggregate/frame_reader.hpp>
#include <headway/aggregate/invoke.hpp>
#include <headway/aggregate/keyed_delivery.hpp>
#include <headway/aggregate/posted.hpp>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

/// Delivers messages for this PE to the handler, and forwards others.
template <class... Args>
class Receiver : public FrameReader<Args...> {
  using Reader = FrameReader<Args...>;
  using Result = Core::Result;
  template <class, class, class, class...>
  friend struct KeyedDelivery;

 protected:
  using Core::check_single, Core::count_delivered, Core::count_handled, Core::counters, Core::engine, Core::layout;
  using Core::mark_ready, Core::reassembly, Core::refuse_frame, Core::refuse_whole, Core::route, Core::table;
  using Reader::good_arguments, Reader::keeps_order_by_route;
  using Reader::length_of, Reader::message_bytes, Reader::repack, Reader::select, Reader::source_in;
  using Reader::Reader;
  using typename Reader::Format;

  /// Sets the handler: handler(args...), handler(PeId source, args...), handler(Pe&, args...) or handler(Pe&, PeId
  /// source, args...). The runtime calls it on the PE's thread, one message at a time. It may send, also with this
  /// aggregator, and must not wait. An exception ends the run. Spans and const references are valid until the handler
  /// returns.
  ///
  /// The runtime calls `ahead` like the handler, 32 messages earlier, so that the program can prefetch data larger than
  /// the cache. (For messages that are read into objects, it calls `ahead` for a block of up to 64 messages before it
  /// handles the first.) It does not call `ahead` for messages that are sent alone, that carry their source, or that
  /// may have several hops left. For messages that may have one hop left it does so for a fixed size of up to 64 bytes.
  ///
  ///     updates.on([&](std::uint64_t a) { table[slot(a)] ^= a; },
  ///                [&](std::uint64_t a) { __builtin_prefetch(&table[slot(a)]); });
  template <class Handler, class Ahead = NothingAhead>
  void on(Handler handler, Ahead ahead = {}) {
    if constexpr (good_arguments) {
      using HandlerCall = Call<Handler, Args...>;
      if constexpr (HandlerCall::check() && check_ahead<Ahead, Args...>()) {
        mark_ready(HandlerCall::wants_source || wants_source<Ahead, Args...>());
        handler_ = std::make_shared<Handlers<Handler, Ahead>>(std::move(handler), std::move(ahead));
        deliver_ = &Receiver::deliver<Handlers<Handler, Ahead>>;
      }
    }
  }

  /// Sets a handler for many messages: handler(std::span<const T>), for an Aggregator of one trivially copyable type T.
  /// The runtime calls it with all messages of a frame that lie in a row, in place, or with some of them. The span is
  /// valid until the handler returns. Else the rules of on().
  ///
  ///     updates.on_rows([&](std::span<const Update> row) { for (const Update& u : row) table[u.slot] += u.value; });
  template <class Handler>
  void on_rows(Handler handler) {
    constexpr bool is_one_fixed = sizeof...(Args) == 1 && Format::fixed;
    static_assert(is_one_fixed, "headway: on_rows() is for an Aggregator of one type, which has a fixed size");
    if constexpr (is_one_fixed) {
      using Message = std::tuple_element_t<0, std::tuple<Args...>>;
      constexpr bool takes_rows = std::is_invocable_r_v<void, Handler&, std::span<const Message>>;
      static_assert(takes_rows, "headway: a handler of on_rows() is called as handler(std::span<const T>)");
      if constexpr (takes_rows) on(RowHandler<Handler, Message>{std::move(handler)});
    }
  }

  /// The same for messages with one std::span, with its content in memory of the program. The runtime calls `post` like
  /// the handler, with the number of elements in the place of the span. `post` returns a std::span<Element> of at least
  /// as many elements (UsageError otherwise). The runtime copies the content to it, at once or as it arrives, and then
  /// calls the handler with a span of it. Other messages may be handled in between.
  ///
  ///     blocks.on_posted([&](std::uint64_t i, std::size_t n) { return std::span(field).subspan(i * n, n); },
  ///                      [&](std::uint64_t i, std::span<const double> block) { ++arrived; });
  template <class Post, class Handler>
  void on_posted(Post post, Handler handler) {
    if constexpr (good_arguments) {
      using HandlerCall = Call<Handler, Args...>;
      if constexpr (Posted<Post, Handler, Args...>::check() && HandlerCall::check()) {
        posts_ = true;
        on(Posted<Post, Handler, Args...>(std::move(post), std::move(handler), counters().further_copies));
      }
    }
  }

  /// Bytes of a KeyHeader, padded so that the message behind it is aligned.
  static constexpr std::size_t key_header_bytes = base::align_up(sizeof(KeyHeader), Format::alignment);
  /// Whether this PE copies content to memory that its program posts.
  bool copies_content() const { return posts_; }

 private:
  Result handle(const transport::Arrival& arrival, std::uint32_t& next) override {
    return deliver_(*this, arrival, next);
  }

  template <class Handlers>
  static Result deliver(Receiver& self, const transport::Arrival& arrival, std::uint32_t& next) {
    if (arrival.header.flags != 0) return deliver_single<Handlers>(self, arrival);
    return deliver_buffer<Handlers>(self, arrival, next);
  }

  /// Calls deliver(invoke), which runs the handler for messages by invoke(at, bytes, source).
  template <class Handlers, class Deliver>
  static inline __attribute__((always_inline)) auto with_handler(Receiver& self, Deliver deliver) {
    return with(self, static_cast<Handlers*>(self.handler_.get())->handler, deliver);
  }

  /// Calls deliver(invoke, ahead). `ahead` is a function only if on() got one.
  template <class Handlers, class Deliver>
  static inline __attribute__((always_inline)) void with_handlers(Receiver& self, Deliver deliver) {
    with_handler<Handlers>(self, [&](const auto& invoke) {
      auto& stored = *static_cast<Handlers*>(self.handler_.get());
      if constexpr (Handlers::looks_ahead)
        with(self, stored.ahead, [&](const auto& ahead) { deliver(invoke, ahead); });
      else
        deliver(invoke, stored.ahead);
    });
  }

  template <class Callable, class Deliver>
  static inline __attribute__((always_inline)) auto with(Receiver& self, Callable& stored, Deliver deliver) {
    // Captures of a copy may stay in registers. A handler that changes its captures must not be copied.
    using HandlerCall = Call<Callable, Args...>;
    typename HandlerCall::Local handler(stored);
    typename Format::Scratch scratch;
    const Invoker<HandlerCall, Format> invoke{handler, self.engine().pe(), scratch};
    return deliver(invoke);
  }

  /// A function of its own: the many cases of deliver_buffer() would make this one save all registers.
  template <class Handlers>
  __attribute__((noinline)) static Result deliver_single(Receiver& self, const transport::Arrival& arrival) {
    if constexpr ((is_view<Args> || ...)) {
      if (arrival.header.flags == frame_of_key)
        return KeyedDelivery<Receiver, Handlers, Format, Args...>::deliver(self, arrival);
    }
    return with_handler<Handlers>(self, [&](const auto& invoke) { return self.deliver_alone(invoke, arrival); });
  }

  template <class Handlers>
  __attribute__((noinline)) static Result deliver_buffer(Receiver& self, const transport::Arrival& arrival,
                                                         std::uint32_t& next) {
    if (arrival.header.hops_left != 0) {
      if (arrival.header.hops_left >= self.route().levels()) {
        self.refuse_frame(arrival, "its number of hops left", arrival.header.hops_left, "below", self.route().levels());
      }
      const unsigned level = self.route().levels() - 1 - arrival.header.hops_left;
      const Entry form = self.layout().entries[level];
      self.check_lengths(arrival, form);
      if constexpr (Format::fixed) {
        const bool keys_alone = form.bytes() != 0 && form.bytes() == form.key_bytes;
        if (keys_alone) {
          return level + 2 == self.route().levels()
                     ? deliver_or_forward_once<Handlers, false>(self, arrival, level, next)
                     : deliver_or_forward_once<Handlers, true>(self, arrival, level, next);
        }
      }
      return with_handler<Handlers>(
          self, [&](const auto& invoke) { return self.deliver_and_forward(invoke, arrival, level, next); });
    }
    if constexpr (Format::fixed)
      return deliver_fixed<Handlers>(self, arrival);
    else
      return deliver_variable<Handlers>(self, arrival);
  }

  template <class Handlers>
  static Result deliver_fixed(Receiver& self, const transport::Arrival& arrival) {
    const Entry& form = self.layout().entries[self.route().levels() - 1];
    self.check_lengths(arrival, form);
    const std::byte* at = arrival.payload + self.layout().padding;
    if (form.source_bytes == 0) {
      deliver_row<Handlers>(self, at, arrival.header.count, arrival.header.source);
    } else {
      with_handler<Handlers>(self, [&](const auto& invoke) {
        const std::byte* entry_end = arrival.tail_end;
        for (std::size_t i = 0; i < arrival.header.count; ++i, entry_end -= form.bytes()) {
          invoke(at, Format::fixed_bytes, self.source_in(arrival, form, read_entry(entry_end, form)));
          at += Format::fixed_bytes;
        }
      });
    }
    self.count_handled(arrival.header.count);
    return Result::done;
  }

  /// Fixed-size messages without entries. Handlers do not change them: `__restrict`, which the compiler uses only for
  /// parameters, lets sums of handlers stay in registers.
  template <class Handlers>
  __attribute__((noinline)) static void deliver_row(Receiver& self, const std::byte* __restrict at, std::size_t count,
                                                    PeId source) {
    if constexpr (requires { typename Handlers::Handler::TakesRows; }) {
      if (count != 0) static_cast<Handlers*>(self.handler_.get())->handler.rows(at, count);
      return;
    }
    const std::byte* const end = at + count * Format::fixed_bytes;
    with_handlers<Handlers>(self, [&](const auto& invoke, const auto& ahead) {
      if constexpr (Handlers::looks_ahead) {
        constexpr std::size_t ahead_bytes = messages_ahead * Format::fixed_bytes;
        const std::byte* const first = std::size_t(end - at) > ahead_bytes ? at + ahead_bytes : end;
        for (const std::byte* m = at; m != first; m += Format::fixed_bytes) ahead(m, Format::fixed_bytes, source);
        const std::byte* const rolling_end = end - (first - at);
#pragma GCC unroll 4
        for (; at != rolling_end; at += Format::fixed_bytes) {
          ahead(at + ahead_bytes, Format::fixed_bytes, source);
          invoke(at, Format::fixed_bytes, source);
        }
        for (; at != end; at += Format::fixed_bytes) invoke(at, Format::fixed_bytes, source);
      } else {
        if constexpr (Format::fixed_bytes == 16) {  // GCC unrolls this size badly: 1.2 times as fast by hand
          for (; end - at >= 64; at += 64) {
            invoke(at, 16, source);
            invoke(at + 16, 16, source);
            invoke(at + 32, 16, source);
            invoke(at + 48, 16, source);
          }
        }
#pragma GCC unroll 4
        for (; at != end; at += Format::fixed_bytes) invoke(at, Format::fixed_bytes, source);
      }
    });
  }

  template <class Handlers>
  static Result deliver_variable(Receiver& self, const transport::Arrival& arrival) {
    const Entry& form = self.layout().entries[self.route().levels() - 1];
    self.check_lengths(arrival, form);
    if (form.source_bytes == 0 && !self.keeps_order_by_route()) {
      deliver_row_of_lengths<Handlers>(self, arrival.payload + self.layout().padding, arrival);
      return Result::done;
    }
    return with_handler<Handlers>(self,
                                  [&](const auto& invoke) { return self.deliver_with_sources(invoke, arrival, form); });
  }

  /// Finds the first length that does not fit. It takes no values of the loop, which would keep them in registers.
  [[noreturn, gnu::noinline, gnu::cold]] void refuse_lengths(const transport::Arrival& arrival) const {
    std::uint64_t rest = arrival.header.payload_bytes - layout().padding;
    const std::byte* entry_end = arrival.tail_end;
    for (std::size_t i = 0; i < arrival.header.count; ++i, entry_end -= sizeof(Length)) {
      const std::size_t bytes = read_length(entry_end), padded = Format::padded(bytes);
      if (padded > rest || (rest - padded) % Format::alignment != 0) {
        refuse_frame(arrival, "the length of a message", bytes, "with padding at most the rest of the frame,", rest);
      }
      rest -= padded;
    }
    refuse_frame(arrival, "the lengths of its messages do not fit");
  }

  /// For entries of lengths alone. `__restrict` as in deliver_row().
  template <class Handlers>
  __attribute__((noinline)) static void deliver_row_of_lengths(Receiver& self, const std::byte* __restrict begin,
                                                               const transport::Arrival& arrival) {
    const PeId source = arrival.header.source;
    const std::size_t count = arrival.header.count;
    // Buffers are far below 2^31 bytes. So one test finds a message that is longer than the rest of the frame, a length
    // after which the next message would be unaligned, and a frame that is too long.
    constexpr std::int64_t no_rest = ~std::int64_t(0x7fffffff) | std::int64_t(Format::alignment - 1);
    struct Place {
      const std::byte* at;
      const std::byte* entry_end;
      std::int64_t left;
    };
    const auto pass = [&](Place & place, std::size_t messages, const auto& call) __attribute__((always_inline)) {
      for (std::size_t i = 0; i < messages; ++i) {
        const std::size_t bytes = read_length(place.entry_end);
        place.entry_end -= sizeof(Length);
        place.left -= std::int64_t(Format::padded(bytes));
        if ((place.left & no_rest) != 0) [[unlikely]]
          self.refuse_lengths(arrival);
        call(place.at, bytes, source);
        place.at += Format::padded(bytes);
      }
    };
    Place place{begin, arrival.tail_end, arrival.payload + arrival.header.payload_bytes - begin};
    with_handlers<Handlers>(self, [&](const auto& invoke, const auto& ahead) {
      if constexpr (!Handlers::looks_ahead) {
        pass(place, count, invoke);
      } else if constexpr (Format::has_objects) {
        constexpr std::size_t block_max = objects_ahead<typename Format::Scratch>;
        std::array<typename Format::Scratch, block_max> objects;
        Place ahead_of_it = place;
        for (std::size_t left = count; left != 0;) {
          const std::size_t block = left < block_max ? left : block_max;
          std::size_t next = 0;
          pass(ahead_of_it, block, [&](const std::byte* at, std::size_t bytes, PeId from) {
            ahead.template with_objects<true>(objects[next++], at, bytes, from);
          });
          next = 0;
          pass(place, block, [&](const std::byte* at, std::size_t bytes, PeId from) {
            invoke.template with_objects<false>(objects[next++], at, bytes, from);
          });
          left -= block;
        }
      } else {
        const std::size_t first = count < messages_ahead ? count : messages_ahead;
        Place ahead_of_it = place;
        pass(ahead_of_it, first, ahead);
        for (std::size_t left = count - first; left != 0; --left) {
          pass(ahead_of_it, 1, ahead);
          pass(place, 1, invoke);
        }
        pass(place, first, invoke);
      }
    });
    if (place.left != 0)
      self.refuse_frame(arrival, "its payload behind the last message", std::uint64_t(place.left), "equal to", 0);
    self.count_handled(count);
  }

  template <class Invoke>
  Result deliver_with_sources(const Invoke& invoke, const transport::Arrival& arrival, const Entry& form) {
    const std::byte* at = arrival.payload + layout().padding;
    const std::byte* const end = arrival.payload + arrival.header.payload_bytes;
    const std::byte* entry_end = arrival.tail_end;
    std::uint64_t handled = 0;
    for (std::size_t i = 0; i < arrival.header.count; ++i, entry_end -= form.bytes()) {
      const std::uint64_t value = read_entry(entry_end, form);
      const PeId source = source_in(arrival, form, value);
      const std::size_t bytes = length_of(arrival, at, end, form.length(value));
      handled += deliver_one(invoke, at, bytes, source, form.length(value));
      at += base::align_up(bytes, Format::alignment);  // parts have any length
    }
    if (at != end) refuse_frame(arrival, "its payload behind the last message", std::uint64_t(end - at), "equal to", 0);
    count_handled(handled);
    return Result::done;
  }

  /// Delivers a message, or adds a part to its message. Returns the number of handled messages.
  template <class Invoke>
  std::uint64_t deliver_one(const Invoke& invoke, const std::byte* at, std::size_t bytes, PeId source,
                            std::uint64_t length) {
    if (Format::fixed || !keeps_order_by_route() || length != part_mark) [[likely]] {
      invoke(at, bytes, source);
      return 1;
    }
    return deliver_part(invoke, at, bytes, source);
  }

  template <class Invoke>
  std::uint64_t deliver_part(const Invoke& invoke, const std::byte* at, std::size_t bytes, PeId source) {
    const std::span<const std::byte> whole = reassembly().add(source, at, bytes);
    if (whole.data() == nullptr) return 0;
    if (Format::fixed && whole.size() != Format::fixed_bytes) {
      refuse_whole(whole.size(), Format::fixed_bytes);
    }
    invoke(whole.data(), whole.size(), source);
    reassembly().release_whole();
    return 1;
  }

  template <class Invoke>
  Result deliver_alone(const Invoke& invoke, const transport::Arrival& arrival) {
    const transport::FrameHeader& header = arrival.header;
    check_single(arrival);
    if (header.payload_bytes < layout().padding)
      refuse_frame(arrival, "its payload", header.payload_bytes, "at least", layout().padding);
    const std::byte* at = arrival.payload + layout().padding;
    const std::size_t bytes = header.payload_bytes - layout().padding;
    if (header.flags == frame_of_one) [[likely]] {
      if (header.count != 1) refuse_frame(arrival, "its count of messages", header.count, "equal to", 1);
      if (Format::fixed && bytes != Format::fixed_bytes) {
        refuse_frame(arrival, "the length of its message", bytes, "equal to", Format::fixed_bytes);
      }
      invoke(at, bytes, header.source);
      count_handled(1);
    } else {
      if (header.flags != frame_of_part)
        refuse_frame(arrival, "its flags value", header.flags, "at most", frame_of_key);
      if (header.count > 1) refuse_frame(arrival, "its count of messages", header.count, "at most", 1);
      count_handled(deliver_part(invoke, at, bytes, header.source));
    }
    return Result::done;
  }

  /// Delivers messages for this PE, and repacks others for their next hop. Pauses without memory.
  template <class Invoke>
  Result deliver_and_forward(const Invoke& invoke, const transport::Arrival& arrival, unsigned level,
                             std::uint32_t& next) {
    const Entry form = layout().entries[level];
    const std::size_t count = arrival.header.count;
    const std::byte* at = arrival.payload + layout().padding;
    const std::byte* const end = arrival.payload + arrival.header.payload_bytes;
    const std::byte* entry_end = arrival.tail_end;
    for (std::uint32_t i = 0; i < next; ++i, entry_end -= form.bytes()) {  // messages before the pause
      const std::uint64_t value = form.bytes() == 0 ? 0 : read_entry(entry_end, form);
      at += base::align_up(message_bytes(arrival, at, end, form, value), Format::alignment);
    }
    std::uint64_t handled = 0, forwarded = 0, forwarded_bytes = 0;
    Result result = Result::done;
    for (; next < count; ++next, entry_end -= form.bytes()) {
      const std::uint64_t value = form.bytes() == 0 ? 0 : read_entry(entry_end, form);
      const std::uint64_t key = form.key(value);
      if (key >= route().all_next(level).size()) [[unlikely]]
        refuse_frame(arrival, "a key", key, "below", route().all_next(level).size());
      const std::size_t bytes = message_bytes(arrival, at, end, form, value);
      const Route::Hop& hop = route().next(level, std::uint32_t(key));
      const PeId source = source_in(arrival, form, value);
      if (hop.slot == Route::deliver_here) {
        handled += deliver_one(invoke, at, bytes, source, form.length(value));
      } else {
        if (!repack(arrival, hop, at, bytes, form.length(value), source)) {
          result = Result::paused;
          break;
        }
        ++forwarded;
        forwarded_bytes += base::align_up(bytes, Format::alignment);
      }
      at += base::align_up(bytes, Format::alignment);
    }
    if (next == count && at != end) {
      refuse_frame(arrival, "its payload behind the last message", std::uint64_t(end - at), "equal to", 0);
    }
    count_delivered(handled, forwarded, forwarded_bytes);
    return result;
  }

  /// The same for messages of fixed size with keys alone. They have one hop left or none; with `further`, they may have
  /// more. A branch on the messages that stay would be mispredicted. So small messages that stay are gathered without a
  /// branch, like those for another PE, and delivered as a row.
  template <class Handlers, bool further>
  __attribute__((noinline)) static Result deliver_or_forward_once(Receiver& self, const transport::Arrival& arrival,
                                                                  unsigned level, std::uint32_t& next) {
    constexpr bool gathers = Format::fixed_bytes <= 64;
    alignas(Format::alignment) std::byte row[gathers ? 2048 / Format::fixed_bytes * Format::fixed_bytes : 1];
    Slot here;
    here.cursor = row;
    here.limit = row + sizeof row;
    const std::size_t entry_bytes = self.layout().entries[level].bytes();
    const unsigned shift = self.layout().entries[level].shift();
    const std::span<const Route::Hop> hops = self.route().all_next(level);
    const PeId source = arrival.header.source;
    const std::uint32_t first = next, count = arrival.header.count;
    const std::byte* at = arrival.payload + self.layout().padding + first * Format::fixed_bytes;
    const std::byte* entry_end = arrival.tail_end - first * entry_bytes;
    std::uint64_t handled = 0;
    const auto deliver_gathered = [&] {
      const std::size_t messages = std::size_t(here.cursor - row) / Format::fixed_bytes;
      deliver_row<Handlers>(self, row, messages, source);
      handled += messages;
      here.cursor = row;
    };
    std::uint32_t i = first;
    for (; i < count; ++i, at += Format::fixed_bytes, entry_end -= entry_bytes) {
      std::uint64_t key;
      std::memcpy(&key, entry_end - 8, 8);
      key >>= shift;
      if (key >= hops.size()) [[unlikely]]
        self.refuse_frame(arrival, "a key", key, "below", hops.size());
      const Route::Hop& hop = hops[key];
      const bool stays = hop.slot == Route::deliver_here;
      if (!gathers && stays) {
        with_handler<Handlers>(self, [&](const auto& invoke) { invoke(at, Format::fixed_bytes, source); });
        ++handled;
        continue;
      }
      Slot& slot = *select(stays, &here, self.table().slots() + (hop.slot & (std::uint32_t(stays) - 1)));
      if (slot.cursor == slot.limit) [[unlikely]] {
        if (!stays) {
          if (!self.repack_to_full(arrival, hop, at)) break;
          continue;
        }
        deliver_gathered();
      }
      base::copy_fixed<Format::fixed_bytes>(slot.cursor, at);
      slot.cursor += Format::fixed_bytes;
      if constexpr (further) {
        if (stays) continue;
        const SlotEntry& form = self.table().entry(hop.slot);
        if (form.bytes != 0) SlotTable::push_entry(slot, form, form.encode(0, hop.key, source));
      }
    }
    if (gathers) deliver_gathered();
    next = i;
    const std::uint64_t forwarded = i - first - handled;
    self.count_delivered(handled, forwarded, forwarded * Format::fixed_bytes);
    return i == count ? Result::done : Result::paused;
  }

  std::shared_ptr<void> handler_;
  bool posts_ = false;
  Result (*deliver_)(Receiver&, const transport::Arrival&, std::uint32_t&) = nullptr;
};

}  // namespace headway::aggregate
