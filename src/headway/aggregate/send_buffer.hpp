/// An argument of send() whose content may stay with the sender: see transfer/send_buffer.hpp.
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

/// What send_buffer() returns. `mover` gives the PE's mover.
template <class T, class Done>
struct SendBuffer {
  std::span<const T> content;
  Done done;
  ContentMover& (*mover)(Pe& pe);

  /// The content may be changed from now on.
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

/// Whether the argument is a view of elements as these; what is no buffer has none.
template <class Arg, class Given>
inline constexpr bool holds_elements_of = true;
template <class Arg, class T, class Done>
inline constexpr bool holds_elements_of<Arg, SendBuffer<T, Done>> =
    std::is_constructible_v<Arg, const T*, std::size_t>;

/// The content of a buffer as an argument of type Arg; what is none is the argument itself.
template <class Arg, class Given>
decltype(auto) content_of(const Given& given) {
  if constexpr (is_send_buffer<Given>)
    return Arg(given.content.data(), given.content.size());
  else
    return (given);
}

}  // namespace aggregate

}  // namespace headway
