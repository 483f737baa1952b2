// SPDX-License-Identifier: BSD-3-Clause
/// Zero-copy content of messages.
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

/// The content of `data` as an argument of send() in the place of a span or string_view. The runtime may send it
/// without a copy. The handler gets an ordinary span.
///
///     blocks.send(dest, number, headway::send_buffer(field, [&] { reuse(field); }));
///
/// The program neither changes nor frees `data` until `done` allows it. `done` is a callable done() or a Promise<>. The
/// runtime calls or sets it once: before send() returns, or later like a continuation of a Future, at the latest before
/// quiesce() returns and the epoch of the message ends. With HEADWAY_CHECK=on an earlier change ends the run with an
/// error.
///
/// Content of up to 4 KiB is copied into its message, and so is all content with `ordered`. Larger content:
///
/// - in memory that both PEs have mapped (PooledArray): copied into the message or read in place, whichever has been
///   faster for its size; a receiver that posts memory (on_posted()) reads it in place from 2 KiB on
/// - in other memory: copied into the message; a receiver that posts memory fetches more than 16 KiB while this PE
///   makes progress. HEADWAY_TRANSFER changes this.
///
/// Of several buffers in one message only the largest is sent without a copy. A program may send one buffer to many
/// PEs.
template <std::ranges::contiguous_range Range, class Done>
requires std::ranges::sized_range<Range> && std::ranges::borrowed_range<Range> &&
    (std::is_same_v<Done, Promise<>> || std::invocable<Done&>)auto send_buffer(Range&& data, Done done) {
  using T = std::ranges::range_value_t<Range>;
  return aggregate::SendBuffer<T, Done>{std::span<const T>(std::ranges::data(data), std::ranges::size(data)),
                                        std::move(done), &transfer::Transfers::mover_of};
}

}  // namespace headway
