// SPDX-License-Identifier: BSD-3-Clause
/// The layout of the arguments of one message.
#pragma once

#include <cstddef>
#include <headway/aggregate/argument.hpp>
#include <headway/aggregate/parts_format.hpp>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace headway::aggregate {

template <class... Part>
PartsFormat<Part...> format_of(PartList<Part...>);
template <class... Args>
using FormatOfParts = decltype(format_of((PartList<>{} + ... + parts_of<Args>())));

/// The message consists of the parts of its arguments, in their order.
template <class... Args>
struct MessageFormat : FormatOfParts<Args...> {
  using Parts = FormatOfParts<Args...>;

  /// Length of a message without padding behind it.
  static inline __attribute__((always_inline)) std::size_t bytes(const Args&... args) {
    return with_parts(
        [](const auto&... parts) __attribute__((always_inline)) { return Parts::bytes(parts...); }, args...);
  }

  /// Writes the message, which takes bytes(args...), to `at`, aligned to `alignment`.
  template <Into into = Into::memory>
  static inline __attribute__((always_inline)) void pack(std::byte* at, const Args&... args) {
    with_parts(
        [at](const auto&... parts) __attribute__((always_inline)) { Parts::template pack<into>(at, parts...); },
        args...);
  }

  /// Calls f(Pieces) with the message in pieces, which refer to the arguments.
  template <class F>
  static decltype(auto) with_pieces(F&& f, const Args&... args) {
    return with_parts([&f](const auto&... parts) -> decltype(auto) { return Parts::with_pieces(f, parts...); },
                      args...);
  }

 private:
  template <class Arg>
  using ObjectOf = std::conditional_t<is_assembled<Arg>, Arg, std::monostate>;
  static constexpr bool assembles = (is_assembled<Args> || ...);

 public:
  /// Objects that owning arguments are read into, reused from message to message.
  struct Scratch {
    typename Parts::Scratch serialized;
    std::tuple<ObjectOf<Args>...> assembled;
  };
  static constexpr bool has_objects = Parts::owning || assembles;

  /// Calls f(argument...) with the message of `bytes` at `at`: fixed arguments as const references into it, views as
  /// views of it, owning arguments as references to `scratch`. `read`: first reads them into `scratch`. FormatError for
  /// an invalid message.
  template <bool read = true, class F>
  static inline __attribute__((always_inline)) void apply(const std::byte* at, std::size_t bytes, Scratch& scratch,
                                                          F&& f) {
    if constexpr (!assembles) {
      Parts::template apply<read>(at, bytes, scratch.serialized, f);
    } else {
      Parts::template apply<read>(
          at, bytes, scratch.serialized, [&](const auto&... parts) __attribute__((always_inline)) {
            hand_over<read>(std::tie(parts...), scratch, f, std::index_sequence_for<Args...>());
          });
    }
  }

 private:
  template <std::size_t i>
  using Arg = std::tuple_element_t<i, std::tuple<Args...>>;

  template <std::size_t i>
  static constexpr std::size_t first_part() {
    std::size_t count = 0, n = 0;
    ((count += n++ < i ? part_count<Args> : 0), ...);
    return count;
  }

  template <bool read, class Found, class F, std::size_t... i>
  static inline __attribute__((always_inline)) void hand_over(const Found& parts, Scratch& scratch, F& f,
                                                              std::index_sequence<i...>) {
    if constexpr (read) (assemble_argument<i>(parts, scratch), ...);
    f(argument<i>(parts, scratch)...);
  }

  template <std::size_t i, class Found>
  static inline __attribute__((always_inline)) void assemble_argument(const Found& parts, Scratch& scratch) {
    if constexpr (is_assembled<Arg<i>>) assemble<first_part<i>()>(std::get<i>(scratch.assembled), parts);
  }

  template <std::size_t i, class Found>
  static inline __attribute__((always_inline)) const Arg<i>& argument(const Found& parts, Scratch& scratch) {
    if constexpr (is_assembled<Arg<i>>)
      return std::get<i>(scratch.assembled);
    else
      return std::get<first_part<i>()>(parts);
  }
};

}  // namespace headway::aggregate
