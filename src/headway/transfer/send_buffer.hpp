/// Content of a message that stays with the sender until the receiver has it.
#pragma once

#include <concepts>
#include <cstddef>
#include <headway/aggregate/send_buffer.hpp>
#include <headway/am/future.hpp>
#include <headway/transfer/transfers.hpp>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace headway {

/// The content of `data` as an argument of send(), where the message has a span (or string_view): it need not be
/// copied. The handler sees an ordinary span.
///
///     blocks.send(dest, number, headway::send_buffer(field, [&] { reuse(field); }));
///
/// `data` stays where it is, unchanged, until `done` says otherwise: a callable done(), called once, perhaps before
/// send() returns, else as what follows a Future; or a Promise<>, which is set then, for co_await and get(). At the
/// latest it has been when quiesce() returns, and before the epoch of the message ends. With HEADWAY_CHECK=on what was
/// changed earlier is an error that says so.
///
/// Content of up to 4 KiB goes along with its message. Where both have more `data` mapped (PooledArray), whether content is
/// copied into the message or read out of it is what has been faster for its size; its receiver copies it out of there from
/// 2 KiB on where it posts memory (on_posted()). Elsewhere it is copied, unless HEADWAY_TRANSFER says otherwise, or its
/// receiver posts memory: then it comes when this PE makes progress. With `ordered` it is
/// always copied. Of several in one message the largest may stay where it is. One buffer may be sent to many.
template <std::ranges::contiguous_range Range, class Done>
  requires std::ranges::sized_range<Range> && std::ranges::borrowed_range<Range> &&
           (std::is_same_v<Done, Promise<>> || std::invocable<Done&>)
auto send_buffer(Range&& data, Done done) {
  using T = std::ranges::range_value_t<Range>;
  return aggregate::SendBuffer<T, Done>{std::span<const T>(std::ranges::data(data), std::ranges::size(data)),
                                        std::move(done), &transfer::Transfers::mover_of};
}

}  // namespace headway
