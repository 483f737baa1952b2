// SPDX-License-Identifier: BSD-3-Clause
/// An argument of send() for zero-copy content: see transfer/send_buffer.hpp.
#pragma once

#include <concepts>
#include <cstddef>
#include <headway/am/future.hpp>
#include <headway/am/pe.hpp>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace headway {

namespace aggregate {

class ContentMover;

/// The result of send_buffer(). `mover` returns the PE's mover.
template <class T, class Done>
struct SendBuffer {
  std::span<const T> content;
  Done done;
  ContentMover& (*mover)(Pe& pe);

  /// Tells the program that it may change the content.
  void finish() {
    if constexpr (std::is_same_v<Done, Promise<>>)
      done.set();
    else
      done();
  }
};

template <class Given>
inline constexpr bool is_send_buffer = false;
template <class T, class Done>
inline constexpr bool is_send_buffer<SendBuffer<T, Done>> = true;

template <class... Given>
inline constexpr bool has_no_buffers = (!is_send_buffer<std::remove_cvref_t<Given>> && ...);

/// Whether the argument is a view of the buffer's elements; true for arguments that are no buffer.
template <class Arg, class Given>
inline constexpr bool holds_elements_of = true;
template <class Arg, class T, class Done>
inline constexpr bool holds_elements_of<Arg, SendBuffer<T, Done>> = std::is_constructible_v<Arg, const T*, std::size_t>;

/// The content of a buffer as an argument of type Arg; another argument as it is.
template <class Arg, class Given>
decltype(auto) content_of(const Given& given) {
  if constexpr (is_send_buffer<Given>)
    return Arg(given.content.data(), given.content.size());
  else
    return (given);
}

}  // namespace aggregate

}  // namespace headway
