// SPDX-License-Identifier: BSD-3-Clause
/// Packs many small messages into few large frames.
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
#include <headway/aggregate/send_buffer.hpp>
#include <headway/aggregate/sender.hpp>
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
/// Collective: every PE makes its aggregators in the same order. Call on() before the first send().
///
/// A trivially copyable argument travels as its bytes. A span<const T> or string_view stands for its content, which the
/// handler reads in place. A vector or string of trivially copyable elements arrives as an object that the runtime
/// reuses. Other types are serialized: maps, vectors of strings, aggregates of these, classes with serialize(archive).
///
/// The runtime handles every message exactly once, unchanged, at any size. The destructor never blocks. Call quiesce()
/// before it: a message that arrives for a destroyed aggregator ends the run with an error.
template <class... Args>
class Aggregator final : private aggregate::Sender<Args...> {
  using Receiver = aggregate::Receiver<Args...>;
  using Sender = aggregate::Sender<Args...>;
  using Core = aggregate::Core;
  using Receiver::good_arguments, Receiver::key_header_bytes, Receiver::copies_content;
  using typename Receiver::Format;
  using Wait = aggregate::Wait;
  using Into = aggregate::Into;
  using Takes = aggregate::SendTakes<Args...>;

 public:
  /// SettingError for invalid options.
  explicit Aggregator(Pe& pe, const AggregatorOptions& given = {})
      : Sender(
            pe, given,
            {Format::fixed ? Format::fixed_bytes : 0, Format::alignment, false, aggregate::raw_type_name<Args...>()}) {}

  using Receiver::on, Receiver::on_rows, Receiver::on_posted;

  /// Sends one message. A call from the main program may wait for memory, and runs handlers meanwhile. A call from a
  /// handler never waits and never runs another handler. Until send() returns, no handler may change the arguments or
  /// their content. UsageError for a destination out of range.
  inline __attribute__((always_inline)) void send(PeId destination, const Args&... args) {
    if constexpr (good_arguments && Format::fixed) {
      if (destination < table().fast_paths().one_hop) [[likely]] {
        aggregate::Slot& slot = table().slots()[destination];
        std::byte* const at = slot.cursor;
        if (at != slot.limit) [[likely]] {
          base::prefetch_for_next_messages(at, Format::fixed_bytes);
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

  /// The same with send_buffer()s in the place of some views.
  template <class... Given>
  requires(sizeof...(Given) == sizeof...(Args) && (aggregate::is_send_buffer<std::remove_cvref_t<Given>> ||
                                                   ...)) void send(PeId destination, Given&&... given) {
    constexpr bool made_for_this_call = ((!aggregate::is_send_buffer<std::remove_cvref_t<Given>> ||
                                          std::is_same_v<Given, std::remove_cvref_t<Given>>)&&...);
    static_assert(made_for_this_call,
                  "headway: the result of send_buffer() is for one send(): call it among the arguments");
    constexpr bool for_views =
        ((!aggregate::is_send_buffer<std::remove_cvref_t<Given>> || aggregate::is_view<Args>)&&...);
    static_assert(for_views, "headway: send_buffer() is for an argument that is a std::span or std::string_view");
    if constexpr (good_arguments && for_views && made_for_this_call) {
      constexpr bool of_elements = (aggregate::holds_elements_of<Args, std::remove_cvref_t<Given>> && ...);
      static_assert(of_elements,
                    "headway: the elements of a send_buffer() have another type than those of the argument");
      if constexpr (of_elements)
        send_buffers(destination, std::index_sequence_for<Args...>(), as_argument<Args>(given)...);
    }
  }

  /// A compile error in one line for wrong arguments.
  template <class... Given>
  requires(good_arguments && !Takes::template fits<Given...>()) void send(Given&&...) {
    Takes::template refuse<Given...>();
  }

  /// Like send(), but returns false, without sending, if send() would wait. Always refuses a message above a quarter of
  /// the budget (an eighth with `ordered`).
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

  /// Sends the elements of `range` in order, one message each. A random-access range of known size is up to twice as
  /// fast, because the test for room is made once for many messages. A range that computes its elements
  /// (std::views::transform) may throw; the elements before are sent. It must not send or wait.
  ///
  ///     updates.send_range(owner, bucket);
  template <class Range>
  void send_range(PeId destination, Range&& range) {
    constexpr bool is_range_of_messages = aggregate::is_range_of<Range, Args...>();
    static_assert(is_range_of_messages,
                  "headway: send_range() takes the PE and a range of the Aggregator's type, of which it has one");
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

  /// Sends `count` messages. next() returns the destination and the arguments of one as a pair or tuple. For messages
  /// of fixed size on one hop and up to 64 PEs, the test for room is made once for many messages: 1.1 times as fast.
  /// next() may throw; the messages before are sent. It must not send or wait.
  ///
  ///     updates.send_n(count, [&] { a = step(a); return std::pair(owner(a), a); });
  template <class Next>
  void send_n(std::size_t count, Next next) {
    constexpr bool gives_messages = Takes::template are_given_by<Next>();
    static_assert(gives_messages,
                  "headway: send_n() takes a number and next(), which returns a pair or tuple: the PE, and the "
                  "Aggregator's arguments");
    if constexpr (gives_messages) {
      const auto destination_of = [](const auto& message) { return std::size_t(PeId(std::get<0>(message))); };
      while (count > 0) {
        std::size_t now = std::min(count, std::max(singly_min, 2 * engine().size()));
        if constexpr (good_arguments && Format::fixed) {
          if (const std::size_t room = std::min(count, table().room_everywhere(Format::fixed_bytes)); room > now) {
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

  /// Posts all open buffers. Never waits.
  void flush() { table().flush_now(); }
  /// Whether any buffer is open. Messages that were sent alone leave none.
  bool has_open() const { return table().has_open(); }

 private:
  friend class CallAggregator;

  using Core::check_send, Core::engine, Core::is_ordered, Core::large, Core::layout, Core::poster, Core::table;
  using Sender::may_be_small, Sender::send_general, Sender::send_not_one_hop, Sender::send_to_full;
  using Sender::send_unpacked;

  /// Writes elements to the open buffer for `destination` until it is full. Returns how many; 0 without a buffer.
  template <class Iterator>
  std::size_t write_row(std::size_t destination, Iterator first, std::size_t size) {
    if (destination >= table().fast_paths().one_hop) return 0;
    const aggregate::Slot& slot = table().slots()[destination];
    const std::size_t count = std::min(std::size_t(slot.limit - slot.cursor) / Format::fixed_bytes, size);
    if (count == 0) return 0;
    aggregate::Row row = table().begin_row(std::uint32_t(destination));
    for (std::size_t i = 0; i != count; ++i, row.at += Format::fixed_bytes) {
      base::prefetch_for_next_messages<64>(row.at, Format::fixed_bytes);
      Format::pack(row.at, first[std::iter_difference_t<Iterator>(i)]);
    }
    return count;
  }

  /// Messages that are sent one by one before the free space of all buffers is tested again.
  static constexpr std::size_t singly_min = 64;

  /// Each of the buffers has room for all `count` messages.
  template <class Next, class DestinationOf>
  void write_batch(std::size_t count, Next& next, DestinationOf destination_of) {
    const std::size_t size = engine().size();
    aggregate::Batch batch(table().slots(), size);
    const aggregate::SlotTable::BatchGuard under_way(table());
    for (; count > 0; --count) {
      const auto message = next();
      const std::size_t destination = destination_of(message);
      if (destination >= size) [[unlikely]]
        base::throw_destination_out_of_range(destination, size);
      std::byte* const at = batch.cursors[destination];
      base::prefetch_for_next_messages(at, Format::fixed_bytes);
      std::apply([at](const auto&, const Args&... args) { Format::pack(at, args...); }, message);
      batch.cursors[destination] = at + Format::fixed_bytes;
    }
  }

  /// The fast path for messages of variable size: fill(at) writes the message. Returns false where it does not apply.
  /// A fill that may throw, for example in a program's `serialize`, runs before the slot is updated. Others run after:
  /// the next message then does not wait for their stores before it loads its place (1.1 to 1.3 times as fast).
  template <bool may_throw, class Fill>
  inline __attribute__((always_inline)) bool send_packed(std::size_t destination, std::size_t bytes, Fill fill) {
    if (destination >= table().fast_paths().one_hop) return false;
    aggregate::Slot& slot = table().slots()[destination];
    std::byte* const at = slot.cursor;
    std::byte* const end = at + Format::padded(bytes);
    if (aggregate::SlotTable::fills(slot, end) || bytes >= layout().alone_from) [[unlikely]]
      return false;
    if constexpr (may_throw) fill(at);
    std::byte* const limit = slot.limit;
    aggregate::write_length(limit, bytes);
    slot.limit = limit - sizeof(aggregate::Length);
    slot.cursor = end;
    if constexpr (!may_throw) fill(at);
    return true;
  }

  // --- sending buffers

  /// The index of the largest buffer: only that one may be sent without a copy.
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

  /// The argument as it is packed: `by_key`, a view without its content.
  template <class Arg, class Given>
  static decltype(auto) packed_as(bool by_key, const Given& given) {
    if constexpr (aggregate::is_send_buffer<Given>)
      return by_key ? Arg() : aggregate::content_of<Arg>(given);
    else
      return aggregate::content_of<Arg>(given);
  }

  /// A buffer as it is; another argument converted to its type.
  template <class Arg, class Given>
  static decltype(auto) as_argument(Given& given) {
    if constexpr (aggregate::is_send_buffer<Given> || std::is_same_v<std::remove_const_t<Given>, Arg>) {
      return (given);
    } else {
      Arg argument = given;
      return argument;
    }
  }

  /// Short buffers are copied into the message, and are done when send() returns.
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

  /// Sends the largest buffer by key if that is faster, else all of them in the message.
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
      if (bytes <= layout().part_bytes_max) {
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
      const int copies =
          content.size() > large().alone_bytes_max(destination) ? 2 : 1;  // the receiver reassembles parts
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
      base::copy_fixed<sizeof header>(at, reinterpret_cast<const std::byte*>(&header));  // in words, as it was set
    };
    if constexpr (may_be_small) {
      if (bytes <= layout().by_value_bytes_max) {
        alignas(Format::alignment > 16 ? 64 : 16) transport::SmallFrame small;
        Format::pack(small.message + key_header_bytes, args...);
        pack_header(small.message);
        poster().post_key_by_value(destination, small, bytes);
        return;
      }
    }
    const am::OpenFrame frame = poster().claim_alone(destination, bytes, Wait::yes);
    try {
      Format::template pack<Into::frame>(poster().message_of(frame) + key_header_bytes, args...);
    } catch (...) {
      engine().store().drop(destination, frame);
      throw;
    }
    pack_header(poster().message_of(frame));
    poster().post_alone(destination, frame, bytes, aggregate::frame_of_key);
  }
};

}  // namespace headway
