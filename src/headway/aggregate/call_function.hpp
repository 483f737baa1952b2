// SPDX-License-Identifier: BSD-3-Clause
/// Calls of functions with a message's arguments: the form of a function, and the parameters of coroutines.
#pragma once

#include <headway/aggregate/argument.hpp>
#include <headway/am/pe.hpp>
#include <headway/am/task.hpp>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

/// Whether `F` can be called with arguments A, with Pe& before them, or with Pe& and PeId source.
template <class F, class... A>
inline constexpr bool is_callable =
    std::is_invocable_v<F, A...> || std::is_invocable_v<F, Pe&, A...> || std::is_invocable_v<F, Pe&, PeId, A...>;

template <class F, class... A>
inline __attribute__((always_inline)) decltype(auto) call_function(Pe& pe, PeId source, F& function, A&&... args) {
  if constexpr (std::is_invocable_v<F, A...>)
    return function(std::forward<A>(args)...);
  else if constexpr (std::is_invocable_v<F, Pe&, A...>)
    return function(pe, std::forward<A>(args)...);
  else
    return function(pe, source, std::forward<A>(args)...);
}

/// The result of that call.
template <class F, class... A>
using CallResult = decltype(call_function(std::declval<Pe&>(), PeId(), std::declval<F&>(), std::declval<A>()...));

/// A compile error in one line if it cannot be called. Returns whether it can.
template <class F, class... A>
constexpr bool require_callable() {
  static_assert(is_callable<F, A...>,
                "headway: the function cannot be called with these arguments (const references; DistObject<T> "
                "arrives as T&), optionally with Pe& and PeId source before them");
  return is_callable<F, A...>;
}

// --- coroutines

/// Valid parameters of a coroutine: values, and references to objects that outlive the message. A non-const reference
/// is Pe& or the T& of a DistObject.
template <class Parameter>
inline constexpr bool is_kept =
    std::is_lvalue_reference_v<Parameter> ? !std::is_const_v<std::remove_reference_t<Parameter>>
                                          : !std::is_reference_v<Parameter> && !is_view<std::remove_cv_t<Parameter>>;

template <class Result, class... Parameters>
constexpr bool keeps(Result (*)(Parameters...)) {
  return (is_kept<Parameters> && ...);
}
template <class Result, class Class, class... Parameters>
constexpr bool keeps(Result (Class::*)(Parameters...)) {
  return (is_kept<Parameters> && ...);
}
template <class Result, class Class, class... Parameters>
constexpr bool keeps(Result (Class::*)(Parameters...) const) {
  return (is_kept<Parameters> && ...);
}
template <class Result, class Class, class... Parameters>
constexpr bool keeps(Result (Class::*)(Parameters...) noexcept) {
  return (is_kept<Parameters> && ...);
}
template <class Result, class Class, class... Parameters>
constexpr bool keeps(Result (Class::*)(Parameters...) const noexcept) {
  return (is_kept<Parameters> && ...);
}

template <class F>
consteval bool keeps_arguments() {
  if constexpr (std::is_pointer_v<F> || std::is_member_function_pointer_v<F>)
    return keeps(F());
  else if constexpr (requires { &F::operator(); })
    return keeps(decltype (&F::operator())());
  else
    return false;  // parameters of type `auto` are not known
}

/// A compile error in one line for a coroutine with parameters that may refer to a message: the message is gone when
/// the coroutine resumes.
template <class F>
constexpr bool require_kept_arguments() {
  constexpr bool kept = keeps_arguments<F>();
  static_assert(kept,
                "headway: a coroutine goes on when its message is gone: it takes its arguments by value, of types that "
                "are written out (no const&, no view, no auto)");
  return kept;
}

}  // namespace headway::aggregate
