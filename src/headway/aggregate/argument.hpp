// SPDX-License-Identifier: BSD-3-Clause
/// The parts as which an argument of a message travels, and the types that may not be arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/base/copy.hpp>
#include <headway/base/reflect.hpp>
#include <headway/base/sendable.hpp>
#include <headway/base/serialize.hpp>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::aggregate {

/// The three forms of a part. Most arguments are one part.
enum class ArgumentKind {
  fixed,   // its bytes, aligned, read in place
  view,    // span<const T>, string_view: their content, aligned, read in place
  owning,  // serialized
};

template <class Arg>
inline constexpr bool is_view = false;
template <class T>
inline constexpr bool is_view<std::span<T>> = true;
template <>
inline constexpr bool is_view<std::string_view> = true;

template <class Arg>
struct ViewElement;
template <class T>
struct ViewElement<std::span<T>> {
  using Type = std::remove_const_t<T>;
};
template <>
struct ViewElement<std::string_view> {
  using Type = char;
};

template <class Arg>
constexpr ArgumentKind kind_of() {
  if constexpr (is_view<Arg>)
    return ArgumentKind::view;
  else
    return FixedSize<Arg> ? ArgumentKind::fixed : ArgumentKind::owning;
}

/// Element types of vectors that are copied as bytes.
template <class T>
inline constexpr bool is_content_element =
    detail::Raw<T> && !std::is_empty_v<T> && std::is_default_constructible_v<T> && std::is_copy_constructible_v<T> &&
    std::is_copy_assignable_v<T> && alignof(T) <= 64;
/// A vector or string of these: sent as a view of its content, and copied into an object of the receiver.
template <class Arg>
inline constexpr bool has_content = false;
template <class T, class Allocator>
inline constexpr bool has_content<std::vector<T, Allocator>> = is_content_element<T>;
template <class T, class Traits, class Allocator>
inline constexpr bool has_content<std::basic_string<T, Traits, Allocator>> = is_content_element<T>;

/// Types of parts.
template <class... T>
struct PartList {
  static constexpr std::size_t size = sizeof...(T);
  static constexpr bool has_view = (is_view<T> || ...);
};
template <class... A, class... B>
constexpr PartList<A..., B...> operator+(PartList<A...>, PartList<B...>) {
  return {};
}
/// The result for a type that cannot be sent in parts.
struct NoParts {};
template <class Any>
constexpr NoParts operator+(NoParts, Any) {
  return {};
}
template <class... T>
constexpr NoParts operator+(PartList<T...>, NoParts) {
  return {};
}

/// The parts of a field of an aggregate: its bytes, its content, or the parts of its own fields. Types with bytes that
/// must be checked on arrival (bool, optional, variant) are serialized, and so are aggregates with a field of them.
template <class Field>
constexpr auto parts_of_field();

struct PartsOfFields {
  template <class... Field>
  constexpr auto operator()(const Field&...) const {
    return (PartList<>{} + ... + parts_of_field<Field>());
  }
};

/// A class that defines its own parts:
///
///     using MessageParts = PartList<Header, std::span<const std::byte>>;
///     f(part...)                 with_message_parts(f) const
///     void view_message(part...)  it views the parts until the handler returns; a copy of it owns its content
///
/// `static constexpr bool has_parts_ready = true` states that its parts exist already. Its messages may be written into
/// the receiver's inbox, where the receiver waits for them: with_message_parts() must not throw and must not wait.
template <class Field>
concept NamesParts = requires {
  typename Field::MessageParts;
};

template <class Field>
constexpr auto parts_of_field() {
  if constexpr (NamesParts<Field>)
    return typename Field::MessageParts{};
  else if constexpr (has_content<Field>)
    return PartList<std::span<const typename Field::value_type>>{};
  else if constexpr (is_content_element<Field>)
    return PartList<Field>{};
  else if constexpr (FixedSize<Field> || detail::HasSerialize<Field>)
    return NoParts{};
  else if constexpr (Addressable<Field>)
    return decltype(visit_fields(std::declval<const Field&>(), PartsOfFields{})){};
  else
    return NoParts{};
}

struct ReadyFields {
  template <class... Fields>
  constexpr auto operator()(const Fields&...) const;
};

/// Whether with_message_parts() runs no code of the program.
template <class Field>
constexpr bool has_ready_parts() {
  if constexpr (NamesParts<Field>) return requires {
      requires Field::has_parts_ready;
    };
  else if constexpr (has_content<Field> || is_content_element<Field> || FixedSize<Field> || detail::HasSerialize<Field>)
    return true;
  else if constexpr (Addressable<Field>)
    return decltype(visit_fields(std::declval<const Field&>(), ReadyFields{}))::value;
  else
    return true;
}

template <class... Fields>
constexpr auto ReadyFields::operator()(const Fields&...) const {
  return std::bool_constant<(has_ready_parts<Fields>() && ...)>{};
}

/// A type that is sent as its parts: an aggregate of plain fields and vectors or strings of them, or a class that
/// defines its parts.
template <class Arg>
inline constexpr bool is_sent_in_parts = [] {
  if constexpr (has_content<Arg> || is_view<Arg> || FixedSize<Arg>)
    return false;
  else if constexpr (requires { decltype(parts_of_field<Arg>())::has_view; })
    return decltype(parts_of_field<Arg>())::has_view;
  else
    return false;
}();

template <class Arg>
constexpr auto parts_of() {
  if constexpr (has_content<Arg> || is_sent_in_parts<Arg>)
    return parts_of_field<Arg>();
  else
    return PartList<Arg>{};
}
/// The number of parts of an argument.
template <class Arg>
inline constexpr std::size_t part_count = decltype(parts_of<Arg>())::size;
/// Read into an object of the receiver, part by part.
template <class Arg>
inline constexpr bool is_assembled = has_content<Arg> || is_sent_in_parts<Arg>;

/// The part of an argument that is one part.
template <class Arg>
inline __attribute__((always_inline)) decltype(auto) only_part(const Arg& arg) {
  if constexpr (has_content<Arg>)
    return std::span<const typename Arg::value_type>(arg);
  else
    return (arg);
}

/// Calls f(part...) with the parts of all arguments.
template <class F>
inline __attribute__((always_inline)) decltype(auto) with_parts(F&& f) {
  return f();
}
template <class F, class First, class... Rest>
inline __attribute__((always_inline)) decltype(auto) with_parts(F&& f, const First& first, const Rest&... rest) {
  if constexpr (!(is_sent_in_parts<First> || ... || is_sent_in_parts<Rest>)) {
    return f(only_part(first), only_part(rest)...);
  } else if constexpr (NamesParts<First>) {
    return first.with_message_parts([&](const auto&... parts) __attribute__((always_inline))->decltype(auto) {
      return with_parts(f, parts..., rest...);
    });
  } else if constexpr (is_sent_in_parts<First>) {
    return visit_fields(
        first, [&](const auto&... fields) __attribute__((always_inline))->decltype(auto) {
          return with_parts(f, fields..., rest...);
        });
  } else {
    const auto& part = only_part(first);
    return with_parts(
        [&](const auto&... others) __attribute__((always_inline))->decltype(auto) { return f(part, others...); },
        rest...);
  }
}

/// Sets `object` from its parts, the first of which has number `first`. Objects are reused, so most vectors keep their
/// length and memory.
template <std::size_t first, class Object, class Parts>
inline __attribute__((always_inline)) void assemble(Object& object, const Parts& parts);

template <std::size_t first, class Parts>
inline __attribute__((always_inline)) void assemble_fields(const Parts& /*parts*/) {}
template <std::size_t first, class Parts, class Field, class... Rest>
inline __attribute__((always_inline)) void assemble_fields(const Parts& parts, Field& field, Rest&... rest) {
  assemble<first>(field, parts);
  assemble_fields<first + part_count<Field>>(parts, rest...);
}

template <std::size_t first, class Object, class Parts>
inline __attribute__((always_inline)) void assemble(Object& object, const Parts& parts) {
  if constexpr (NamesParts<Object>) {
    [&]<std::size_t... i>(std::index_sequence<i...>) { object.view_message(std::get<first + i>(parts)...); }
    (std::make_index_sequence<part_count<Object>>());
  } else if constexpr (is_sent_in_parts<Object>) {
    visit_fields(
        object, [&](auto&... fields) __attribute__((always_inline)) { assemble_fields<first>(parts, fields...); });
  } else if constexpr (has_content<Object>) {
    const auto& content = std::get<first>(parts);
    if (object.size() != content.size()) [[unlikely]] {
      object.assign(content.begin(), content.end());
    } else {
      base::copy_received(reinterpret_cast<std::byte*>(object.data()),
                          reinterpret_cast<const std::byte*>(content.data()), content.size_bytes());
    }
  } else {
    object = std::get<first>(parts);
  }
}

/// A compile error in one line for a type that may not be an argument. Returns whether it may.
template <class Arg>
constexpr bool require_argument() {
  if constexpr (!std::is_same_v<Arg, std::remove_cvref_t<Arg>>) {
    static_assert(std::is_same_v<Arg, std::remove_cvref_t<Arg>>,
                  "headway: write the types of a message without const and &");
    return false;
  } else if constexpr (std::is_array_v<Arg>) {
    static_assert(
        !std::is_array_v<Arg>,
        "headway: an array is no argument of a message: use std::array, or std::span<const T> for its content");
    return false;
  } else if constexpr (is_view<Arg>) {
    using Element = typename ViewElement<Arg>::Type;
    static_assert(
        FixedSize<Element>,
        "headway: a span as an argument stands for its content, which must be trivially copyable and carry no "
        "address");
    if constexpr (FixedSize<Element>) {
      constexpr bool read_only = std::is_const_v<std::remove_pointer_t<decltype(std::declval<Arg>().data())>>;
      static_assert(read_only, "headway: a span as an argument is read in place: write std::span<const T>");
      return read_only;
    }
    return false;
  } else {
    base::require_sendable<Arg>();
    return Sendable<Arg>;
  }
}

/// The parameter type of an argument in functions that are not inlined: small ones by value.
template <class Arg>
using ByValueIfSmall =
    std::conditional_t<(is_view<Arg> || (std::is_trivially_copyable_v<Arg> && sizeof(Arg) <= 16)), Arg, const Arg&>;
template <class Arg>
inline __attribute__((always_inline)) ByValueIfSmall<Arg> by_value_if_small(const Arg& arg) {
  return arg;
}

}  // namespace headway::aggregate
