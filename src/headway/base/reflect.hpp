// SPDX-License-Identifier: BSD-3-Clause
/// Visits the fields of a plain aggregate, without registration. It finds their number by trying initialisers at
/// compile time, and names them by structured bindings. No cost at run time.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace headway {
namespace detail {

inline constexpr std::size_t fields_max = 32;

// Is T{{}, {}, ... n times ..., Last{}...} well-formed? An empty pair of braces initialises exactly one member, a C
// array or a nested aggregate too: where the initialiser is an expression, braces may be elided and members miscounted.
template <class T, std::size_t n, class... Last>
consteval bool braces_accepted() {
#define HEADWAY_1 {},
#define HEADWAY_2 HEADWAY_1 HEADWAY_1
#define HEADWAY_4 HEADWAY_2 HEADWAY_2
#define HEADWAY_8 HEADWAY_4 HEADWAY_4
#define HEADWAY_16 HEADWAY_8 HEADWAY_8
#define HEADWAY_TRY(count, ...)                 \
  if constexpr (n == (count)) return requires { \
      T{__VA_ARGS__ Last{}...};                 \
    };
#define HEADWAY_TRY_4(count, ...)                 \
  HEADWAY_TRY(count, __VA_ARGS__)                 \
  HEADWAY_TRY((count) + 1, __VA_ARGS__ HEADWAY_1) \
  HEADWAY_TRY((count) + 2, __VA_ARGS__ HEADWAY_2) \
  HEADWAY_TRY((count) + 3, __VA_ARGS__ HEADWAY_2 HEADWAY_1)
  static_assert(n < fields_max + 4);
  HEADWAY_TRY_4(0, )
  HEADWAY_TRY_4(4, HEADWAY_4)
  HEADWAY_TRY_4(8, HEADWAY_8)
  HEADWAY_TRY_4(12, HEADWAY_8 HEADWAY_4)
  HEADWAY_TRY_4(16, HEADWAY_16)
  HEADWAY_TRY_4(20, HEADWAY_16 HEADWAY_4)
  HEADWAY_TRY_4(24, HEADWAY_16 HEADWAY_8)
  HEADWAY_TRY_4(28, HEADWAY_16 HEADWAY_8 HEADWAY_4)
  HEADWAY_TRY_4(32, HEADWAY_16 HEADWAY_16)
#undef HEADWAY_TRY_4
#undef HEADWAY_TRY
#undef HEADWAY_16
#undef HEADWAY_8
#undef HEADWAY_4
#undef HEADWAY_2
#undef HEADWAY_1
}

// Probes: initialisers that only some members accept. None is ever converted at run time.
template <class T>
struct AnyValue {
  template <class U>
  requires(!std::same_as<U, T>) operator U() const { __builtin_unreachable(); }
};
struct AnyLvalue {
  template <class U>
  operator U&() const {
    __builtin_unreachable();
  }
};
struct ValueOnly {  // a reference prefers the lvalue, which is deleted
  template <class U>
  operator U() && {
    __builtin_unreachable();
  }
  template <class U>
  operator U&() const& = delete;
};
struct AnyUnion {
  template <class U>
  requires std::is_union_v<U>
  operator U() const { __builtin_unreachable(); }
};
template <class T>
struct AnyBase {
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::same_as<U, T>) operator U() const { __builtin_unreachable(); }
};
template <class T>
struct AnyEmptyBase {
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::same_as<U, T> && std::is_empty_v<U>) operator U() const {
    __builtin_unreachable();
  }
};

struct UnrelatedType {};  // a member that accepts it (std::any) accepts every probe

// Is `Probe`, and not any type, accepted as the initialiser of base or member number n?
template <class T, std::size_t n, class Probe>
consteval bool member_accepts() {
  if constexpr (braces_accepted<T, n, Probe>())
    return !braces_accepted<T, n, UnrelatedType>();
  else
    return false;
}

template <class T, std::size_t n = 0>
consteval std::size_t braced_count() {
  if constexpr (n > fields_max)
    return n;
  else if constexpr (braces_accepted<T, n + 1>())
    return braced_count<T, n + 1>();
  else
    return n;
}

// Bases and members. The count ends before a reference and before a member without a default constructor.
template <class T>
struct Elements {
  static constexpr std::size_t count = braced_count<T>();
  static constexpr bool all_found = count <= fields_max && braces_accepted<T, 0>() &&
                                    !braces_accepted<T, count, AnyValue<T>>() &&
                                    !braces_accepted<T, count, AnyLvalue>();
};

template <class Filler, std::size_t>
using Repeat = Filler;

// The same with expressions, for aggregates with members that `{}` cannot initialise. An array counts as its elements.
template <class T, class Filler, class Probe, std::size_t... before, std::size_t... after>
consteval bool values_accepted(std::index_sequence<before...>, std::index_sequence<after...>) {
  return requires { T{Repeat<Filler, before>{}..., Probe{}, Repeat<Filler, after>{}...}; };
}

template <class T, class Filler, class Probe, std::size_t i, std::size_t count>
consteval bool value_accepted_at() {
  return values_accepted<T, Filler, Probe>(std::make_index_sequence<i>(), std::make_index_sequence<count - 1 - i>());
}

template <class T, class Filler>
consteval std::size_t value_count() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    std::size_t count = 0;
    ((value_accepted_at<T, Filler, Filler, i, i + 1>() ? count = i + 1 : count), ...);
    return count;
  }
  (std::make_index_sequence<fields_max>());
}

/// Does a base or member of the aggregate T (the elements of C arrays included) accept `Probe` as its initialiser?
/// Looks at the first 32 of them.
template <class T, class Probe>
consteval bool any_member_accepts() {
  using All = Elements<T>;
  if constexpr (All::all_found || All::count > fields_max) {
    return []<std::size_t... i>(std::index_sequence<i...>) { return (member_accepts<T, i, Probe>() || ...); }
    (std::make_index_sequence<All::count>());
  } else {
    constexpr std::size_t count = value_count<T, AnyValue<T>>();
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return (value_accepted_at<T, AnyValue<T>, Probe, i, count>() || ...);
    }
    (std::make_index_sequence<count>());
  }
}

/// Is a member of the aggregate T a reference? Then `{}` alone does not initialise T, and T has no assignment.
template <class T>
consteval bool has_reference_member() {
  if constexpr (std::is_copy_assignable_v<T> || braces_accepted<T, 0>()) {
    return false;
  } else if constexpr (constexpr std::size_t count = value_count<T, AnyValue<T>>(); count > 0) {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return ((!value_accepted_at<T, AnyValue<T>, ValueOnly, i, count>() ||
               !value_accepted_at<T, AnyValue<T>, AnyLvalue, i, count>()) ||
              ...);
    }
    (std::make_index_sequence<count>());
  } else {
    return value_count<T, AnyLvalue>() > 0;
  }
}

template <class T>
consteval std::size_t base_count() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    std::size_t count = 0;
    static_cast<void>(((member_accepts<T, i, AnyBase<T>>() && ++count != 0) && ...));
    return count;
  }
  (std::make_index_sequence<Elements<T>::count>());
}

template <class T>
consteval bool reflectable() {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T>) {
    return false;
  } else if constexpr (!Elements<T>::all_found) {
    return false;
  } else if constexpr (any_member_accepts<T, AnyUnion>()) {
    return false;
  } else {
    return []<std::size_t... i>(std::index_sequence<i...>) { return (member_accepts<T, i, AnyEmptyBase<T>>() && ...); }
    (std::make_index_sequence<base_count<T>()>());
  }
}

// A visitor that takes references to fields, which bit-fields and fields of packed structs do not permit.
struct FieldsByReference {
  template <class... Fields>
  std::true_type operator()(Fields&...) const {
    return {};
  }
};

}  // namespace detail

/// A plain aggregate with fields that can be visited: at most 32, each default-constructible without an explicit
/// constructor, none a reference or a union; base classes are empty. Bit-fields cannot be told apart here: visiting
/// them is the compiler's error.
template <class T>
concept Reflectable = detail::reflectable<std::remove_cv_t<T>>();

/// How many fields T has; a C array or a nested aggregate is one.
template <class T>
requires Reflectable<T>
inline constexpr std::size_t field_count =
    detail::Elements<std::remove_cv_t<T>>::count - detail::base_count<std::remove_cv_t<T>>();

/// Calls visitor(field...) with all fields of `object` as lvalues, const where the object is; returns the visitor's
/// result.
template <class T, class Visitor>
requires Reflectable<T>
inline __attribute__((always_inline)) constexpr decltype(auto) visit_fields(T& object, Visitor&& visitor) {
  constexpr std::size_t count = field_count<T>;
  if constexpr (count == 0) return visitor();
#define HEADWAY_BIND(n, ...)                                                                \
  else if constexpr (count == n) {                                                          \
    auto& [__VA_ARGS__] = object;                                                           \
    if constexpr (!std::same_as<std::remove_cvref_t<Visitor>, detail::FieldsByReference>) { \
      return visitor(__VA_ARGS__);                                                          \
    } else if constexpr (requires { visitor(__VA_ARGS__); }) {                              \
      return std::true_type{};                                                              \
    } else {                                                                                \
      return std::false_type{};                                                             \
    }                                                                                       \
  }
  HEADWAY_BIND(1, a)
  HEADWAY_BIND(2, a, b)
  HEADWAY_BIND(3, a, b, c)
  HEADWAY_BIND(4, a, b, c, d)
  HEADWAY_BIND(5, a, b, c, d, e)
  HEADWAY_BIND(6, a, b, c, d, e, f)
  HEADWAY_BIND(7, a, b, c, d, e, f, g)
  HEADWAY_BIND(8, a, b, c, d, e, f, g, h)
  HEADWAY_BIND(9, a, b, c, d, e, f, g, h, i)
  HEADWAY_BIND(10, a, b, c, d, e, f, g, h, i, j)
  HEADWAY_BIND(11, a, b, c, d, e, f, g, h, i, j, k)
  HEADWAY_BIND(12, a, b, c, d, e, f, g, h, i, j, k, l)
  HEADWAY_BIND(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
  HEADWAY_BIND(14, a, b, c, d, e, f, g, h, i, j, k, l, m, n)
  HEADWAY_BIND(15, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)
  HEADWAY_BIND(16, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
  HEADWAY_BIND(17, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)
  HEADWAY_BIND(18, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r)
  HEADWAY_BIND(19, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s)
  HEADWAY_BIND(20, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t)
  HEADWAY_BIND(21, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u)
  HEADWAY_BIND(22, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v)
  HEADWAY_BIND(23, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w)
  HEADWAY_BIND(24, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x)
  HEADWAY_BIND(25, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y)
  HEADWAY_BIND(26, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z)
  HEADWAY_BIND(27, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A)
  HEADWAY_BIND(28, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B)
  HEADWAY_BIND(29, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C)
  HEADWAY_BIND(30, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D)
  HEADWAY_BIND(31, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E)
  HEADWAY_BIND(32, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, A, B, C, D, E, F)
#undef HEADWAY_BIND
}

/// The fields have addresses: none is a bit-field or lies unaligned in a packed struct. A visitor of const fields gets
/// copies of those otherwise. (std::array is one field to Reflectable, but binds as its elements.)
template <class T>
concept Addressable = Reflectable<T> && !requires {
  std::tuple_size<std::remove_cv_t<T>>::value;
}
&&decltype(visit_fields(std::declval<std::remove_cv_t<T>&>(), detail::FieldsByReference{}))::value;

/// Calls f(field) for each field of `object`, in the order of declaration.
template <class T, class F>
requires Reflectable<T>
constexpr void for_each_field(T& object, F&& f) {
  visit_fields(object, [&f](auto&... field) { (static_cast<void>(f(field)), ...); });
}

}  // namespace headway
