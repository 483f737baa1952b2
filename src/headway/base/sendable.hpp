// SPDX-License-Identifier: BSD-3-Clause
/// Decides at compile time which types may travel in a message. Addresses are refused at any depth, because they are
/// invalid on another PE. Members that the compiler does not show are trusted: those of unions, of classes with private
/// members, and of an aggregate behind the 32nd.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <headway/base/reflect.hpp>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace headway {
namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <class... Args, template <class...> class Template>
inline constexpr bool is_a<Template<Args...>, Template> = true;

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t n>
inline constexpr bool is_std_array<std::array<T, n>> = true;

template <class T>
concept TupleLike = is_a<T, std::pair> || is_a<T, std::tuple>;

// Templates by the member names of the standard containers, so that these need not be included here.
template <class T>
concept Container = requires(const T& c) {
  typename T::value_type;
  c.begin();
  c.end();
  c.size();
};
template <class T>
concept Sequence = Container<T> && requires(T& c, const typename T::value_type& v) {
  c.clear(), c.push_back(v);
};
template <class T>
concept Associative = Container<T> && requires(T& c) {
  typename T::key_type;
  c.clear();
  c.erase(c.begin());
};
template <class T>
concept Growable = Sequence<T> || Associative<T>;
template <class T>
concept MapLike = Associative<T> && requires {
  typename T::mapped_type;
};

/// An archive for the test whether a class has a serialize() member.
struct AnyArchive {
  template <class... Fields>
  void operator()(Fields&&...);
};
template <class T>
concept HasSerialize = std::is_class_v<T> && requires(T& object, AnyArchive& archive) {
  object.serialize(archive);
};

// A closure's type has no name of its own: GCC writes `<lambda(int)>`, Clang `(lambda at FILE:LINE:COLUMN)` last.
template <class T>
consteval bool is_closure() {
#if defined(__clang__)
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view name = text.substr(0, text.rfind(']'));
  return name.ends_with(')') && name.find("(lambda at ") != name.npos;
#else
  constexpr std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view name = text.substr(0, text.rfind(']'));
  if (!name.ends_with('>')) return false;
  std::size_t first = name.size() - 1;
  for (std::size_t depth = 1; depth > 0 && first > 0;) {
    --first;
    if (name[first] == '>') ++depth;
    if (name[first] == '<') --depth;
  }
  return name.substr(first).starts_with("<lambda(");
#endif
}

template <class T>
concept Closure = is_closure<T>() ||(!std::is_aggregate_v<T> && requires { &T::operator(); });
template <class T>
concept ReferenceWrapper = requires(const T& wrapper) {
  typename T::type;
  { wrapper.get() } -> std::same_as<typename T::type&>;
  { wrapper } -> std::convertible_to<typename T::type&>;
};
template <class T>
concept SmartPointer = requires {
  typename T::element_type;
}
&&(
    requires(const T& p) { p.operator->(); } || requires(const T& p) { p.lock(); } ||
    requires(const T& p) { p.get() == nullptr; });
template <class T>
concept AddressByNature = std::ranges::enable_view<T> || is_a<T, std::initializer_list> || SmartPointer<T> ||
    std::input_or_output_iterator<T> || ReferenceWrapper<T> || Closure<T>;

// Address: refused. Opaque: also classes that must not be copied byte by byte, because they have a serialize() member.
enum class Content { address, opaque };

template <class T, Content content, class... Inside>
consteval bool holds();

// Initialises only members with such content. For other members it has a private conversion: without any conversion the
// compiler would elide braces and try the member's first member.
template <Content content, class... Inside>
class Holder {
 public:
  template <class U>
  requires(holds<U, content, Inside...>()) operator U() const { __builtin_unreachable(); }

 private:
  template <class U>
  requires(!holds<U, content, Inside...>()) operator U() const { __builtin_unreachable(); }
};

template <class T, Content content, class... Inside>
struct HoldsAlternative;
template <template <class...> class Template, class... Alternatives, Content content, class... Inside>
struct HoldsAlternative<Template<Alternatives...>, content, Inside...> {
  static constexpr bool value = (holds<Alternatives, content, Inside...>() || ...);
};

// `Inside` are the aggregates around T, so that a type that contains itself, in a vector say, is checked once.
template <class T, Content content, class... Inside>
consteval bool holds() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_reference_v<U> || std::is_pointer_v<U> || std::is_member_pointer_v<U>) {
    return true;
  } else if constexpr (std::is_array_v<U>) {
    return holds<std::remove_all_extents_t<U>, content, Inside...>();
  } else if constexpr (!std::is_class_v<U> || (std::same_as<U, Inside> || ...)) {
    return false;
  } else if constexpr (HasSerialize<U> &&
                       (content == Content::address || !std::is_aggregate_v<U> || !std::is_trivially_copyable_v<U>)) {
    return content == Content::opaque;
  } else if constexpr (TupleLike<U> || is_a<U, std::variant>) {
    return HoldsAlternative<U, content, Inside...>::value;
  } else if constexpr (is_std_array<U> || (Growable<U> && !std::is_aggregate_v<U> && !AddressByNature<U>)) {
    return holds<typename U::value_type, content, Inside...>();
  } else if constexpr (is_a<U, std::optional>) {
    return holds<typename U::value_type, content, Inside...>();
  } else if constexpr (AddressByNature<U>) {
    return true;
  } else if constexpr (std::is_aggregate_v<U>) {
    if constexpr (has_reference_member<U>())
      return true;
    else
      return any_member_accepts<U, Holder<content, Inside..., U>>();
  } else {
    return false;
  }
}

template <class T>
consteval bool fixed_size() {
  using Element = std::remove_cv_t<std::remove_all_extents_t<T>>;
  if constexpr (!std::is_object_v<T> || !std::is_trivially_copyable_v<Element>)
    return false;
  else if constexpr (!std::is_copy_constructible_v<Element> && !std::is_move_constructible_v<Element>)
    return false;
  else
    return !holds<Element, Content::opaque>();
}

}  // namespace detail

/// Trivially copyable and without addresses: its bytes are its value on every PE. Needs no opt-in.
template <class T>
concept FixedSize = detail::fixed_size<T>();

namespace detail {

template <class T, class... Inside>
consteval bool serializable();

template <class T>
inline constexpr bool can_be_made = std::is_default_constructible_v<T>&& std::is_move_constructible_v<T>;

// A type that can be made from bytes alone, as elements of containers and alternatives must be.
template <class T, class... Inside>
consteval bool serializable_part() {
  if constexpr (std::is_const_v<T>)
    return false;
  else if constexpr (!FixedSize<T>)
    return serializable<T, Inside...>();
  else
    return true;
}

template <class T, class... Inside>
struct SerializableParts;
template <template <class...> class Template, class... Parts, class... Inside>
struct SerializableParts<Template<Parts...>, Inside...> {
  static constexpr bool value = (serializable_part<Parts, Inside...>() && ...);
};

template <class... Inside>
struct AllFields {
  template <class... Fields>
  std::bool_constant<(serializable_part<Fields, Inside...>() && ...)> operator()(Fields&...) const {
    return {};
  }
};

template <class T, class... Inside>
consteval bool serializable() {
  if constexpr (std::is_array_v<T>) {
    return serializable_part<std::remove_all_extents_t<T>, Inside...>();
  } else if constexpr (!std::is_class_v<T> || std::is_const_v<T>) {
    return false;
  } else if constexpr ((std::same_as<T, Inside> || ...)) {
    return true;
  } else if constexpr (HasSerialize<T>) {
    return can_be_made<T>;
  } else if constexpr (TupleLike<T> || is_a<T, std::variant>) {
    return SerializableParts<T, Inside...>::value;
  } else if constexpr (is_a<T, std::optional> || is_std_array<T> || (Sequence<T> && !AddressByNature<T>)) {
    return serializable_part<typename T::value_type, Inside...>();
  } else if constexpr (MapLike<T>) {
    return serializable_part<typename T::key_type, Inside...>() &&
           serializable_part<typename T::mapped_type, Inside...>();
  } else if constexpr (Associative<T>) {
    return serializable_part<typename T::key_type, Inside...>();
  } else if constexpr (AddressByNature<T>) {
    return false;
  } else if constexpr (Reflectable<T>) {
    if constexpr (!can_be_made<T>)
      return false;
    else
      return decltype(visit_fields(std::declval<T&>(), AllFields<Inside..., T>{}))::value;
  } else {
    return false;
  }
}

template <class T>
inline constexpr bool carries_no_address = !holds<T, Content::address>();

}  // namespace detail

/// Not FixedSize, but can be written as bytes and read again: standard containers, strings, pair, tuple, optional,
/// variant, arrays, plain aggregates of such, and classes with a member `template <class A> void serialize(A& archive)`
/// that calls `archive(fields...)`. Classes of the user must be default-constructible.
template <class T>
concept Serializable = !FixedSize<T> && detail::carries_no_address<T> && detail::serializable<std::remove_cv_t<T>>();

/// May travel in a message.
template <class T>
concept Sendable = FixedSize<T> || Serializable<T>;

}  // namespace headway

namespace headway::base {

/// Refuses a T that is not Sendable with one line of compile error. Guard later uses with `if constexpr (Sendable<T>)`,
/// so that it stays one line.
template <class T>
constexpr void require_sendable() {
  if constexpr (!detail::carries_no_address<T>) {
    static_assert(detail::carries_no_address<T>,
                  "headway: this type carries an address (a pointer, reference, view, iterator or closure), which "
                  "means nothing on another PE");
  } else {
    static_assert(Sendable<T>,
                  "headway: this type cannot be sent: give it a serialize(archive) member, or make it a plain "
                  "aggregate of sendable members");
  }
}

}  // namespace headway::base
