// SPDX-License-Identifier: BSD-3-Clause
/// Compile errors in one line for wrong arguments of a call, in place of the compiler's list of candidates.
#pragma once

#include <concepts>
#include <cstddef>
#include <headway/aggregate/send_buffer.hpp>
#include <headway/transport/frame.hpp>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

/// Checks the arguments of send() of an Aggregator<Takes...>. The compiler's output has the full types.
template <class... Takes>
struct SendTakes {
  static constexpr std::size_t arguments = 1 + sizeof...(Takes);

  /// Whether send() and try_send() can be called so. A send_buffer() has checks of its own.
  template <class... Given>
  static constexpr bool fits() {
    if constexpr (sizeof...(Given) == arguments)
      return each_converts<Given...>();
    else
      return false;
  }

  template <class... Given>
  static constexpr void refuse() {
    constexpr std::size_t given = sizeof...(Given);
    if constexpr (given + 1 == arguments) {
      static_assert(given == arguments,
                    "headway: send() takes the PE and the Aggregator's arguments: 1 argument is missing");
    } else if constexpr (given < arguments) {
      static_assert(given == arguments,
                    "headway: send() takes the PE and the Aggregator's arguments: arguments are missing");
    } else if constexpr (given == arguments + 1) {
      static_assert(given == arguments,
                    "headway: send() takes the PE and the Aggregator's arguments: 1 argument is too many");
    } else if constexpr (given > arguments) {
      static_assert(given == arguments,
                    "headway: send() takes the PE and the Aggregator's arguments: arguments are too many");
    } else {
      refuse_types<Given...>();
    }
  }

  /// Whether next() returns what send_n() sends: a pair or tuple of a PE and arguments.
  template <class Next>
  static constexpr bool are_given_by() {
    if constexpr (std::is_invocable_v<Next&>)
      return is_message<std::remove_cvref_t<std::invoke_result_t<Next&>>>();
    else
      return false;
  }

 private:
  template <class Message>
  static constexpr bool is_message() {
    if constexpr (requires { std::tuple_size<Message>::value; }) {
      if constexpr (std::tuple_size<Message>::value == arguments) {
        return []<std::size_t... i>(std::index_sequence<i...>) {
          return each_converts<decltype(std::get<i>(std::declval<const Message&>()))...>();
        }
        (std::make_index_sequence<arguments>());
      }
    }
    return false;
  }

  template <class Destination, class... Given>
  static constexpr bool each_converts() {
    return std::is_convertible_v<Destination, PeId> &&
           ((is_send_buffer<std::remove_cvref_t<Given>> || std::is_convertible_v<Given, const Takes&>)&&...);
  }

  template <class Destination, class... Given>
  static constexpr void refuse_types() {
    constexpr bool begins_with_pe = std::is_convertible_v<Destination, PeId>;
    static_assert(begins_with_pe, "headway: send() takes first the PE that the message goes to: a number");
    if constexpr (begins_with_pe) {
      constexpr bool converts =
          ((is_send_buffer<std::remove_cvref_t<Given>> || std::is_convertible_v<Given, const Takes&>)&&...);
      static_assert(converts,
                    "headway: send() takes the PE and the Aggregator's arguments: an argument has another type");
    }
  }
};

/// Whether send_range() of an Aggregator<Args...> can send this.
template <class Range, class... Args>
constexpr bool is_range_of() {
  if constexpr (sizeof...(Args) == 1 && std::ranges::input_range<Range>)
    return (std::convertible_to<std::ranges::range_reference_t<Range>, Args> && ...);
  else
    return false;
}

}  // namespace headway::aggregate
