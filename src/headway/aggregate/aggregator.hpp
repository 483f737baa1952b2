/// Packs many small messages into few large frames on their way.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <headway/aggregate/content_mover.hpp>
#include <headway/aggregate/core.hpp>
#include <headway/aggregate/format.hpp>
#include <headway/aggregate/invoke.hpp>
#include <headway/aggregate/receiver.hpp>
#include <headway/aggregate/send_buffer.hpp>
#include <headway/aggregate/wrong_call.hpp>
#include <headway/base/copy.hpp>
#include <headway/base/error.hpp>
#include <iterator>
#include <memory>
#include <ranges>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway {

/// Sends messages made of `Args...` to a handler on any PE, many to a frame.
///
///     headway::Aggregator<Update> updates(pe, {.buffer_bytes = 16_KiB});
///     updates.on([&](const Update& u) { table[u.slot] ^= u.value; });
///     updates.send(owner, {slot, value});
///     pe.quiesce();
///
/// Made collectively, in the same order on every PE; on() before the first send. An argument that is trivially copyable
/// travels as its bytes; a span<const T> or string_view stands for its content, which the handler reads in place; a
/// vector or string of such arrives as an object that is reused; other types (maps, vectors of strings, plain
/// aggregates of such, classes with serialize(archive)) are serialized.
///
/// Every message is handled exactly once, unchanged, whatever its size. Destroying an aggregator never blocks;
/// quiesce() first, for a message that arrives for a destroyed one ends the run with an error.
template <class... Args>
class Aggregator final : private aggregate::Receiver<Args...> {
  using Receiver = aggregate::Receiver<Args...>;
  using Core = aggregate::Core;
  using Receiver::good_arguments, Receiver::key_header_bytes, Receiver::copies_content;
  using typename Receiver::Format, typename Receiver::Wait;
  using Into = aggregate::Into;
  using Takes = aggregate::SendTakes<Args...>;
  static constexpr bool may_be_small = Format::prefix_bytes <= by_value_bytes_most && Format::alignment <= 32;

 public:
  /// Throws SettingError for options that cannot be.
  explicit Aggregator(Pe& pe, const AggregatorOptions& given = {})
      : Receiver(
            pe, given,
            {Format::fixed ? Format::fixed_bytes : 0, Format::alignment, false, aggregate::raw_type_name<Args...>()}) {}

  using Receiver::on, Receiver::on_posted;

  /// Sends one message. From the main program it may wait for room, running handlers meanwhile; from a handler it never
  /// waits and never runs another handler. No handler may change the arguments, or what they refer to, until it
  /// returns. UsageError for a destination out of range.
  inline __attribute__((always_inline)) void send(PeId destination, const Args&... args) {
    if constexpr (good_arguments && Format::fixed) {
      if (destination < one_hop_size_) [[likely]] {
        aggregate::Slot& slot = slots_[destination];
        std::byte* const at = slot.cursor;
        if (at != slot.limit) [[likely]] {
          prefetch_for_next_messages(at, Format::fixed_bytes);
          Format::pack(at, args...);
          slot.cursor = at + Format::fixed_bytes;
          return;
        }
        send_to_full(slot, aggregate::by_value_if_small(args)...);
      } else {
        send_not_one_hop(destination, aggregate::by_value_if_small(args)...);
      }
    } else if constexpr (good_arguments) {
      const std::size_t bytes = Format::bytes(args...);
      const auto fill = [&](std::byte * at) __attribute__((always_inline)) {
        Format::template pack<Into::frame>(at, args...);
      };
      if (!send_packed<Format::owning>(destination, bytes, fill)) {
        send_unpacked(destination, bytes, aggregate::by_value_if_small(args)...);
      }
    }
  }

  /// The same where some of what is given are send_buffer()s, for arguments that are views.
  template <class... Given>
  requires(sizeof...(Given) == sizeof...(Args) && (aggregate::is_send_buffer<std::remove_cvref_t<Given>> ||
                                                   ...)) void send(PeId destination, Given&&... given) {
    constexpr bool made_for_this_call = ((!aggregate::is_send_buffer<std::remove_cvref_t<Given>> ||
                                          std::is_same_v<Given, std::remove_cvref_t<Given>>)&&...);
    static_assert(made_for_this_call,
                  "headway: what send_buffer() returns is for one send(): call it among the arguments");
    constexpr bool for_views =
        ((!aggregate::is_send_buffer<std::remove_cvref_t<Given>> || aggregate::is_view<Args>)&&...);
    static_assert(for_views, "headway: send_buffer() is for an argument that is a std::span or std::string_view");
    if constexpr (good_arguments && for_views && made_for_this_call) {
      constexpr bool of_elements = (aggregate::holds_elements_of<Args, std::remove_cvref_t<Given>> && ...);
      static_assert(of_elements, "headway: what send_buffer() is given has elements of another type than the argument");
      if constexpr (of_elements)
        send_buffers(destination, std::index_sequence_for<Args...>(), as_argument<Args>(given)...);
    }
  }

  /// One line of compile error for all else.
  template <class... Given>
  requires(good_arguments && !Takes::template fits<Given...>()) void send(Given&&...) {
    Takes::template refuse<Given...>();
  }

  /// The same, but refuses (false) where send would wait; nothing has been sent then. A message that is larger than
  /// what one target may hold at once (a quarter of the budget, half of that with `ordered`) is always refused.
  [[nodiscard]] bool try_send(PeId destination, const Args&... args) {
    if constexpr (good_arguments)
      return send_general(destination, Wait::no, args...);
    else
      return false;
  }
  template <class... Given>
  requires(good_arguments &&
           !(Takes::template fits<Given...>() && aggregate::has_no_buffers<Given...>)) bool try_send(Given&&...) {
    constexpr bool no_buffers = aggregate::has_no_buffers<Given...>;
    static_assert(no_buffers, "headway: send_buffer() is for send(), not for try_send()");
    if constexpr (no_buffers) Takes::template refuse<Given...>();
    return false;
  }

  /// Sends the elements of `range`, in their order, as so many send() would. Where the range is random access and of
  /// known size, nothing is looked at for each: up to twice as fast. One that makes its elements as they are read
  /// (std::views::transform) may throw, and what came before is sent; it must neither send nor wait meanwhile.
  ///
  ///     updates.send_range(owner, bucket);
  template <class Range>
  void send_range(PeId destination, Range&& range) {
    constexpr bool is_range_of_messages = aggregate::is_range_of<Range, Args...>();
    static_assert(is_range_of_messages,
                  "headway: send_range() takes the PE and a range of what the Aggregator lists, which is one type");
    if constexpr (!is_range_of_messages) {
      return;
    } else if constexpr (good_arguments && Format::fixed && std::ranges::random_access_range<Range> &&
                         std::ranges::sized_range<Range>) {
      const auto first = std::ranges::begin(range);
      const auto size = std::size_t(std::ranges::size(range));
      for (std::size_t next = 0; next != size;) {
        next += write_row(destination, first + std::ranges::range_difference_t<Range>(next), size - next);
        if (next != size) send(destination, first[std::ranges::range_difference_t<Range>(next++)]);
      }
    } else {
      for (auto&& element : range) send(destination, element);
    }
  }

  /// Sends `count` messages, each of which next() gives as a pair or tuple of its destination and its arguments, as so
  /// many send() would. Of messages of fixed size on one hop, to up to 64 PEs, no buffer's end is looked at for
  /// each: 1.1 times as fast. next() may throw, and what came before is sent; it must neither send nor wait.
  ///
  ///     updates.send_n(count, [&] { a = step(a); return std::pair(owner(a), a); });
  template <class Next>
  void send_n(std::size_t count, Next next) {
    constexpr bool gives_messages = Takes::template are_given_by<Next>();
    static_assert(gives_messages,
                  "headway: send_n() takes a number and next(), which returns a pair or tuple: the PE, and what the "
                  "Aggregator lists");
    if constexpr (gives_messages) {
      const auto destination_of = [](const auto& message) { return std::size_t(PeId(std::get<0>(message))); };
      while (count > 0) {
        std::size_t now = std::min(count, std::max(singly_min, 2 * engine().size()));
        if constexpr (good_arguments && Format::fixed) {
          if (const std::size_t room = std::min(count, room_everywhere(Format::fixed_bytes)); room > now) {
            write_batch(room, next, destination_of);
            count -= room;
            continue;
          }
        }
        for (count -= now; now > 0; --now) {
          const auto message = next();
          std::apply([&](const auto& destination, const Args&... args) { send(destination, args...); }, message);
        }
      }
    }
  }

  using Core::options, Core::statistics;

  /// Posts what is in open buffers. Never waits.
  void flush() { Core::flush_now(); }
  /// Whether there are any: where what was sent last went by itself, there need not be.
  bool has_open() const { return Core::has_open(); }

 private:
  friend class CallAggregator;

  using Core::alone_from_, Core::slot_entry, Core::is_open, Core::sends_alone, Core::starts_alone, Core::begin_row;
  using Core::by_value_bytes_max, Core::post_by_value, Core::post_key_by_value, Core::in_place_bytes_max;
  using Core::claim_large, Core::message_of, Core::write_past_caches;
  using Core::engine, Core::route, Core::slots_, Core::one_hop_size_, Core::buffered_size_, Core::by_value_size_;
  using Core::fills, Core::write_length, Core::room_everywhere;
  using Core::is_ordered, Core::check_send, Core::open_slot, Core::flush_slot, Core::after_post, Core::put,
      Core::push_entry;
  using Core::post_alone, Core::send_in_parts, Core::send_in_order, Receiver::keeps_order_by_route;
  using Core::try_begin_in_place, Core::post_in_place, Core::alone_bytes_max, Core::part_bytes_max, Core::claim_alone;

  /// Writes as many elements as find room where `destination` has an open buffer. Returns how many.
  template <class Iterator>
  std::size_t write_row(std::size_t destination, Iterator first, std::size_t size) {
    if (destination >= one_hop_size_) return 0;
    const aggregate::Slot& slot = slots_[destination];
    const std::size_t count = std::min(std::size_t(slot.limit - slot.cursor) / Format::fixed_bytes, size);
    if (count == 0) return 0;
    aggregate::Row row = begin_row(std::uint32_t(destination));
    for (std::size_t i = 0; i != count; ++i, row.at += Format::fixed_bytes) {
      prefetch_for_next_messages<64>(row.at, Format::fixed_bytes);
      Format::pack(row.at, first[std::iter_difference_t<Iterator>(i)]);
    }
    return count;
  }

  /// Messages between two looks at the room that there is in all buffers, where there is little.
  static constexpr std::size_t singly_min = 64;

  /// So many messages as find room whichever buffer they go to.
  template <class Next, class DestinationOf>
  void write_batch(std::size_t count, Next& next, DestinationOf destination_of) {
    const std::size_t size = engine().size();
    aggregate::Batch batch(slots_, size);
    const typename Core::BatchUnderWay under_way(*this);
    for (; count > 0; --count) {
      const auto message = next();
      const std::size_t destination = destination_of(message);
      if (destination >= size) [[unlikely]]
        throw_destination_out_of_range(destination, size);
      std::byte* const at = batch.cursors[destination];
      prefetch_for_next_messages(at, Format::fixed_bytes);
      std::apply([at](const auto&, const Args&... args) { Format::pack(at, args...); }, message);
      batch.cursors[destination] = at + Format::fixed_bytes;
    }
  }

  /// The fast path for messages of variable size: fill(at) writes the message. False where it does not apply. What
  /// may throw, as a program's `serialize` may, writes before the message counts. Others write after it: the next
  /// message finds its place, which lies in memory, without waiting for them (1.1 to 1.3 times).
  template <bool may_throw, class Fill>
  inline __attribute__((always_inline)) bool send_packed(std::size_t destination, std::size_t bytes, Fill fill) {
    if (destination >= one_hop_size_) return false;
    aggregate::Slot& slot = slots_[destination];
    std::byte* const at = slot.cursor;
    std::byte* const end = at + Format::padded(bytes);
    if (fills(slot, end) || bytes >= alone_from_) [[unlikely]]
      return false;
    if constexpr (may_throw) fill(at);
    std::byte* const limit = slot.limit;
    write_length(limit, bytes);
    slot.limit = limit - sizeof(aggregate::Length);
    slot.cursor = end;
    if constexpr (!may_throw) fill(at);
    return true;
  }

  // --- sending buffers

  /// One that may stay where it is: the largest.
  template <class... Given>
  static std::size_t largest_buffer(const Given&... given) {
    std::size_t largest = 0, bytes = 0, i = 0;
    const auto look = [&]<class G>(const G& one) {
      if constexpr (aggregate::is_send_buffer<G>) {
        if (bytes == 0 || one.content.size_bytes() > bytes) {
          bytes = one.content.size_bytes();
          largest = i;
        }
      }
      ++i;
    };
    (look(given), ...);
    return largest;
  }

  /// As an argument of a message whose content goes by key, and that is none else.
  template <class Arg, class Given>
  static decltype(auto) packed_as(bool by_key, const Given& given) {
    if constexpr (aggregate::is_send_buffer<Given>)
      return by_key ? Arg() : aggregate::content_of<Arg>(given);
    else
      return aggregate::content_of<Arg>(given);
  }

  /// A buffer, or what else was given, converted as it would be for an argument.
  template <class Arg, class Given>
  static decltype(auto) as_argument(Given& given) {
    if constexpr (aggregate::is_send_buffer<Given> || std::is_same_v<std::remove_const_t<Given>, Arg>) {
      return (given);
    } else {
      Arg argument = given;
      return argument;
    }
  }

  /// Where all of them are short they go as plain arguments do, and are done when send() returns.
  template <std::size_t... i, class... Given>
  inline __attribute__((always_inline)) void send_buffers(std::size_t destination, std::index_sequence<i...> numbers,
                                                          Given&&... given) {
    const std::size_t long_bytes_min = aggregate::ContentMover::keyed_bytes_min(copies_content());
    const auto is_short = [long_bytes_min]<class G>(const G& one) {
      if constexpr (aggregate::is_send_buffer<G>)
        return one.content.size_bytes() < long_bytes_min;
      else
        return true;
    };
    if (!(is_short(given) && ...)) return send_long_buffers(destination, numbers, given...);
    send(destination, aggregate::content_of<Args>(given)...);
    const auto finish = []<class G>(G& one) {
      if constexpr (aggregate::is_send_buffer<G>) one.finish();
    };
    (finish(given), ...);
  }

  /// The largest by key, if that is faster; else all of them in the message.
  template <std::size_t... i, class... Given>
  __attribute__((noinline)) void send_long_buffers(std::size_t destination, std::index_sequence<i...>,
                                                   Given&... given) {
    check_send(destination);
    const std::size_t largest = largest_buffer(given...);
    const auto with_buffers = [&](auto visit) {
      const auto one = [&]<class G>(std::size_t index, G& buffer) {
        if constexpr (aggregate::is_send_buffer<G>) visit(index == largest, buffer);
      };
      (one(i, given), ...);
    };
    std::span<const std::byte> content;
    aggregate::ContentMover* mover = nullptr;
    with_buffers([&](bool is_largest, const auto& buffer) {
      if (is_largest) content = std::as_bytes(buffer.content), mover = &buffer.mover(engine().pe());
    });
    using SendPath = aggregate::ContentMover::SendPath;
    const SendPath path = is_ordered() ? SendPath{} : mover->send_path(destination, content, copies_content());
    if (path.by_key) {
      const std::size_t bytes = key_header_bytes + Format::bytes(packed_as<Args>(i == largest, given)...);
      if (bytes <= part_bytes_max()) {
        const auto when_done = [&] {
          am::WhenDone done;
          with_buffers([&](bool is_largest, auto& buffer) {
            if (is_largest) done = std::move(buffer.done);
          });
          return done;
        };
        send_by_key(destination, *mover, path, content, largest, when_done, bytes,
                    packed_as<Args>(i == largest, given)...);
        return with_buffers([](bool is_largest, auto& buffer) {
          if (!is_largest) buffer.finish();
        });
      }
    }
    const bool timed = path.timed && !path.by_key;
    const std::int64_t begin = timed ? engine().now() : 0;
    send_general(destination, Wait::yes, aggregate::content_of<Args>(given)...);
    if (timed) {
      const int copies = content.size() > alone_bytes_max(destination) ? 2 : 1;  // in parts, which are put together
      mover->learn_sent(content, (engine().now() - begin) * copies);
    }
    with_buffers([](bool, auto& buffer) { buffer.finish(); });
  }

  template <class TakeDone>
  void send_by_key(std::size_t destination, aggregate::ContentMover& mover, aggregate::ContentMover::SendPath path,
                   std::span<const std::byte> content, std::size_t argument, TakeDone when_done, std::size_t bytes,
                   const Args&... args) {
    const auto pack_header = [&](std::byte* at) {
      const std::uint64_t checksum = mover.checksum_of(content);
      const aggregate::KeyHeader header{mover.expose_content(path, content, checksum, when_done()), argument, checksum};
      copy_fixed<sizeof header>(at, reinterpret_cast<const std::byte*>(&header));  // in words, as it was set
    };
    if constexpr (may_be_small) {
      if (bytes <= by_value_bytes_max()) {
        alignas(Format::alignment > 16 ? 64 : 16) SmallFrame small;
        Format::pack(small.message + key_header_bytes, args...);
        pack_header(small.message);
        post_key_by_value(destination, small, bytes);
        return;
      }
    }
    const am::OpenFrame frame = claim_alone(destination, bytes, Wait::yes);
    try {
      Format::template pack<Into::frame>(message_of(frame) + key_header_bytes, args...);
    } catch (...) {
      engine().store().drop(destination, frame);
      throw;
    }
    pack_header(message_of(frame));
    post_alone(destination, frame, bytes, aggregate::frame_of_key);
  }

  // --- sending, off the fast path

  /// Small arguments come by value: were the address of the caller's variable taken, it would live in memory. What is
  /// not for every message is apart, so that no registers need be saved for it.
  __attribute__((noinline)) void send_not_one_hop(std::size_t destination,
                                                  aggregate::ByValueIfSmall<Args>... args) requires Format::fixed {
    if (destination < buffered_size_) [[likely]] {
      const aggregate::Route::Hop& hop = route().first(destination);
      aggregate::Slot& slot = slots_[hop.slot];
      if (slot.cursor != slot.limit) [[likely]]
        return put_fixed(slot, hop, engine().id(), args...);
    } else if constexpr (may_be_small) {
      if (destination < by_value_size_) return send_directly(destination, args...);
    }
    send_general_apart(destination, args...);
  }

  __attribute__((noinline)) void send_directly(std::size_t destination,
                                               aggregate::ByValueIfSmall<Args>... args) requires may_be_small {
    send_by_value(destination, Format::fixed_bytes, Wait::yes, args...);
  }

  __attribute__((noinline)) void send_general_apart(std::size_t destination, aggregate::ByValueIfSmall<Args>... args) {
    send_general(destination, Wait::yes, args...);
  }

  /// Where there is room.
  void put_fixed(aggregate::Slot& slot, const aggregate::Route::Hop& hop, std::uint64_t source, const Args&... args) {
    std::byte* const at = slot.cursor;
    slot.cursor = at + Format::fixed_bytes;
    Format::pack(at, args...);
    // Whether this is the last hop, and so has no entry, nobody can predict: push_entry() does not look.
    const aggregate::SlotEntry& form = slot_entry(hop.slot);
    push_entry(slot, form, form.encode(0, hop.key, source));
  }

  /// The slot says which destination it was, so that it need not be kept for this case.
  __attribute__((noinline)) void send_to_full(aggregate::Slot& slot, aggregate::ByValueIfSmall<Args>... args) {
    const auto destination = std::size_t(&slot - slots_);
    if constexpr (may_be_small) {
      if (Format::fixed_bytes <= by_value_bytes_max() && starts_alone(slot)) {
        send_by_value(destination, Format::fixed_bytes, Wait::yes, args...);
        return;
      }
    }
    send_alone_or_buffered(destination, args...);
  }

  /// The same for messages of variable size, of `bytes`.
  __attribute__((noinline)) void send_unpacked(std::size_t destination, std::size_t bytes,
                                               aggregate::ByValueIfSmall<Args>... args) {
    if constexpr (may_be_small) {
      if (destination < one_hop_size_ && bytes < alone_from_ && bytes <= by_value_bytes_max() &&
          starts_alone(slots_[destination])) {
        send_by_value(destination, bytes, Wait::yes, args...);
        return;
      }
    }
    send_general_apart(destination, args...);
  }

  /// Apart, so that the cases above need not save registers for it.
  __attribute__((noinline, cold)) void send_alone_or_buffered(std::size_t destination,
                                                              aggregate::ByValueIfSmall<Args>... args) {
    if (sends_alone(std::uint32_t(destination), Format::fixed_bytes))
      send_alone(destination, Format::fixed_bytes, Wait::yes, args...);
    else
      send_buffered(destination, Format::fixed_bytes, Wait::yes, args...);
  }

  bool send_general(std::size_t destination, Wait wait, const Args&... args) {
    check_send(destination);
    const std::size_t bytes = Format::fixed ? Format::fixed_bytes : Format::bytes(args...);
    if (bytes >= alone_from_) return send_large(destination, bytes, wait, args...);
    if (sends_alone(route().first(destination).slot, bytes)) return send_alone(destination, bytes, wait, args...);
    return send_buffered(destination, bytes, wait, args...);
  }

  /// In a buffer, which is opened where none is.
  bool send_buffered(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) {
    const aggregate::Route::Hop& hop = route().first(destination);
    if constexpr (Format::fixed) {
      for (;;) {
        aggregate::Slot& slot = slots_[hop.slot];
        if (slot.cursor != slot.limit) {
          put_fixed(slot, hop, engine().id(), args...);
          return true;
        }
        if (is_open(hop.slot)) {
          flush_slot(hop.slot, am::FlushReason::full);
          after_post();
          if (sends_alone(hop.slot, Format::fixed_bytes))
            return send_alone(destination, Format::fixed_bytes, wait, args...);
        } else if (!open_slot(hop.slot, Format::fixed_bytes, wait)) {
          return false;
        }
      }
    } else {
      const std::uint64_t value = slot_entry(hop.slot).encode(bytes, hop.key, engine().id());
      return put(
          hop.slot, bytes, value, [&](std::byte* at) { Format::template pack<Into::frame>(at, args...); }, wait);
    }
  }

  bool send_by_value(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) requires may_be_small {
    alignas(Format::alignment > 16 ? 64 : 16) SmallFrame small;
    Format::pack(small.message, args...);
    return post_by_value(destination, small, bytes, wait);
  }

  bool send_large(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) {
    if (!keeps_order_by_route()) {
      if (bytes <= part_bytes_max()) return send_alone(destination, bytes, wait, args...);
      if (bytes <= alone_bytes_max(destination)) {
        const auto writing = is_of_views ? am::Writing::at_once : am::Writing::in_pieces;
        if (const am::OpenFrame frame = claim_large(destination, bytes, wait, writing)) {
          if constexpr (is_of_views) {
            if (frame.past_caches) return send_past_caches(destination, frame, bytes, args...);
          }
          return send_in_frame(destination, frame, bytes, args...);
        }
      }
    }
    const auto send = [&](aggregate::Pieces pieces) {
      return keeps_order_by_route() ? send_in_order(destination, pieces, bytes, wait)
                                    : send_in_parts(destination, pieces, bytes, wait);
    };
    return Format::with_pieces(send, args...);
  }

  /// With little beside them, so that all of what is large lies somewhere already.
  static constexpr bool is_of_views = Format::views != 0 && !Format::owning && Format::prefix_bytes <= 1024;

  /// Nothing of the program's runs while it is packed, which might take long, throw or send.
  static constexpr bool goes_in_place = !Format::owning && (aggregate::has_ready_parts<Args>() && ...) &&
                                        Format::prefix_bytes <= in_place_bytes_most && Format::alignment <= 32;

  /// As send_in_frame().
  bool send_past_caches(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes, const Args&... args) {
    try {
      Format::with_pieces([&](aggregate::Pieces pieces) { write_past_caches(frame, pieces, bytes); }, args...);
    } catch (...) {
      engine().store().drop(destination, frame);
      throw;
    }
    post_alone(destination, frame, bytes);
    return true;
  }

  /// In one frame, straight to its PE.
  bool send_alone(std::size_t destination, std::size_t bytes, Wait wait, const Args&... args) {
    if constexpr (may_be_small) {
      if (bytes <= by_value_bytes_max()) return send_by_value(destination, bytes, wait, args...);
    }
    if constexpr (goes_in_place) {
      if (bytes <= in_place_bytes_max()) {
        if (std::byte* const at = try_begin_in_place(destination)) {
          Format::template pack<Into::frame>(at, args...);
          post_in_place(destination, bytes);
          return true;
        }
      }
    }
    const am::OpenFrame frame = claim_alone(destination, bytes, wait, am::Writing::in_pieces);
    return frame && send_in_frame(destination, frame, bytes, args...);
  }

  bool send_in_frame(std::size_t destination, const am::OpenFrame& frame, std::size_t bytes, const Args&... args) {
    try {
      Format::template pack<Into::frame>(message_of(frame), args...);
    } catch (...) {
      engine().store().drop(destination, frame);
      throw;
    }
    post_alone(destination, frame, bytes);
    return true;
  }
};

}  // namespace headway
