// SPDX-License-Identifier: BSD-3-Clause
/// Calls of handlers: the form of a handler, and messages as its arguments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <headway/aggregate/call_function.hpp>
#include <headway/aggregate/format.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/type_text.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

template <class... T>
constexpr std::string_view pretty_name() {
  return __PRETTY_FUNCTION__;
}

/// The types' names as the compiler writes them; the same on all PEs of one program.
template <class... T>
std::string raw_type_name() {
  const std::string_view text = pretty_name<T...>();
#if defined(__clang__)
  const std::size_t begin = text.find("T = <") + 5;
  const std::size_t end = text.rfind(">]");
#else
  const std::size_t begin = text.find("T = {") + 5;
  const std::size_t end = text.find("}; std::string_view");
#endif
  if (begin > text.size() || end == text.npos || end < begin) return std::string(text);
  return std::string(text.substr(begin, end - begin));
}
/// The same, shortened for errors and reports.
template <class... T>
std::string type_name() {
  return base::short_type_names(raw_type_name<T...>());
}

/// The result of a handler as a std::type_identity; void if it cannot be called.
template <class Handler, class... Parameters>
constexpr auto result_of_handler() {
  if constexpr (std::is_invocable_v<Handler&, Parameters...>)
    return std::type_identity<std::invoke_result_t<Handler&, Parameters...>>();
  else if constexpr (std::is_invocable_v<Handler&, PeId, Parameters...>)
    return std::type_identity<std::invoke_result_t<Handler&, PeId, Parameters...>>();
  else if constexpr (std::is_invocable_v<Handler&, Pe&, Parameters...>)
    return std::type_identity<std::invoke_result_t<Handler&, Pe&, Parameters...>>();
  else if constexpr (std::is_invocable_v<Handler&, Pe&, PeId, Parameters...>)
    return std::type_identity<std::invoke_result_t<Handler&, Pe&, PeId, Parameters...>>();
  else
    return std::type_identity<void>();
}

/// A handler of type Handler for messages of Args. An argument arrives as const Arg&, a view by value.
template <class Handler, class... Args>
struct Call {
  template <class Arg>
  using Parameter = std::conditional_t<is_view<Arg>, Arg, const Arg&>;

  static constexpr bool plain = std::is_invocable_v<Handler&, Parameter<Args>...>;
  static constexpr bool with_source = !plain && std::is_invocable_v<Handler&, PeId, Parameter<Args>...>;
  static constexpr bool with_pe = !plain && !with_source && std::is_invocable_v<Handler&, Pe&, Parameter<Args>...>;
  static constexpr bool with_both =
      !plain && !with_source && !with_pe && std::is_invocable_v<Handler&, Pe&, PeId, Parameter<Args>...>;
  static constexpr bool wants_source = with_source || with_both;

  /// Callable through a const reference, so that a copy behaves the same.
  static constexpr bool is_const = std::is_invocable_v<const Handler&, Parameter<Args>...> ||
                                   std::is_invocable_v<const Handler&, PeId, Parameter<Args>...> ||
                                   std::is_invocable_v<const Handler&, Pe&, Parameter<Args>...> ||
                                   std::is_invocable_v<const Handler&, Pe&, PeId, Parameter<Args>...>;
  using Result = typename decltype(result_of_handler<Handler, Parameter<Args>...>())::type;
  /// A coroutine is spawned, and uses its handler's captures while it lives.
  static constexpr bool is_coroutine = am::is_task<std::remove_cvref_t<Result>>;
  /// A closure is copied for each frame, so that its captures may stay in registers. Other handlers may have mutable
  /// members.
  using Local = std::conditional_t<is_const && !is_coroutine && std::is_trivially_copyable_v<Handler> &&
                                       detail::is_closure<Handler>(),
                                   const Handler, Handler&>;

  /// A compile error in one line for an invalid handler.
  static constexpr bool check() {
    constexpr bool callable = !std::is_member_pointer_v<Handler> && (plain || with_source || with_pe || with_both);
    static_assert(callable,
                  "headway: a handler is called as handler(args...), optionally with Pe& and then PeId source before "
                  "them, where a view arrives by value and all else as a const reference");
    if constexpr (callable) {
      if constexpr (is_coroutine) return require_kept_arguments<Handler>();
      constexpr bool good_result = is_coroutine || std::is_void_v<Result>;
      static_assert(good_result, "headway: a handler returns nothing (one that is a coroutine: a headway::Task)");
      return good_result;
    }
    return false;
  }

  template <class H>
  static inline __attribute__((always_inline)) void run(H& handler, Pe& pe, PeId source, Parameter<Args>... args) {
    if constexpr (is_coroutine)
      spawn(pe, call(handler, pe, source, args...));
    else
      call(handler, pe, source, args...);
  }

 private:
  template <class H>
  static inline __attribute__((always_inline)) decltype(auto) call(H& handler, Pe& pe, PeId source,
                                                                   Parameter<Args>... args) {
    if constexpr (plain)
      return handler(args...);
    else if constexpr (with_source)
      return handler(source, args...);
    else if constexpr (with_pe)
      return handler(pe, args...);
    else
      return handler(pe, source, args...);
  }
};

/// on() without `ahead`.
struct NothingAhead {};

/// The number of messages by which `ahead` precedes the handler. It keeps enough cache misses in flight, and is so
/// small that prefetched lines are not evicted before their use; 16 and 64 are as fast. The runtime calls `ahead` once
/// for each handled message, not in blocks, so that misses are in flight while handlers run. That makes a program with
/// 4 MiB of data for each PE 1.24 times as fast.
inline constexpr std::size_t messages_ahead = 32;
/// The same for messages that the receiver reads into objects. The objects of all these messages are on the stack.
template <class Objects>
inline constexpr std::size_t objects_ahead = std::clamp<std::size_t>((std::size_t(32) << 10) / sizeof(Objects), 1, 64);

/// The functions given to on().
template <class HandlerType, class AheadType>
struct Handlers {
  using Handler = HandlerType;
  using Ahead = AheadType;
  static constexpr bool looks_ahead = !std::is_same_v<Ahead, NothingAhead>;

  Handlers(Handler h, Ahead a) : handler(std::move(h)), ahead(std::move(a)) {}
  Handler handler;
  [[no_unique_address]] Ahead ahead;
};

/// The handler of on_rows(): called with rows of messages, or with one where they do not lie in a row.
template <class Handler, class Message>
struct RowHandler {
  using TakesRows = Message;
  void operator()(const Message& message) { handler(std::span<const Message>(&message, 1)); }
  void rows(const std::byte* at, std::size_t count) {
    handler(std::span<const Message>(reinterpret_cast<const Message*>(at), count));
  }
  Handler handler;
};

template <class Ahead, class... Args>
constexpr bool check_ahead() {
  if constexpr (std::is_same_v<Ahead, NothingAhead>)
    return true;
  else
    return Call<Ahead, Args...>::check();
}

template <class Ahead, class... Args>
constexpr bool wants_source() {
  if constexpr (std::is_same_v<Ahead, NothingAhead>)
    return false;
  else
    return Call<Ahead, Args...>::wants_source;
}

/// Calls a handler with a message in memory.
template <class Call, class Format>
struct Invoker {
  std::add_lvalue_reference_t<std::remove_reference_t<typename Call::Local>> handler;
  Pe& pe;
  typename Format::Scratch& scratch;

  inline __attribute__((always_inline)) void operator()(const std::byte* at, std::size_t bytes, PeId source) const {
    with_objects<true>(scratch, at, bytes, source);
  }
  /// The same with the caller's objects. `read`: first reads the message into them.
  template <bool read>
  inline __attribute__((always_inline)) void with_objects(typename Format::Scratch& objects, const std::byte* at,
                                                          std::size_t bytes, PeId source) const {
    Format::template apply<read>(
        at, bytes,
        objects, [&](auto&&... args) __attribute__((always_inline)) { Call::run(handler, pe, source, args...); });
  }
};

}  // namespace headway::aggregate
