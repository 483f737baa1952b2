// SPDX-License-Identifier: BSD-3-Clause
/// Handlers of on_posted(): content goes to memory that the program posts.
#pragma once

#include <cstddef>
#include <headway/aggregate/argument.hpp>
#include <headway/aggregate/copy_counts.hpp>
#include <headway/aggregate/invoke.hpp>
#include <headway/am/pe.hpp>
#include <headway/base/copy.hpp>
#include <span>
#include <type_traits>
#include <utility>

namespace headway::aggregate {

[[noreturn]] void refuse_destination(PeId source, std::size_t wanted, std::size_t given);

/// The element of the one span among these arguments, or void.
template <class... Args>
struct PostedElement {
  using Type = void;
};
template <class First, class... Rest>
requires(!is_view<First>) struct PostedElement<First, Rest...> : PostedElement<Rest...> {
};
template <class T, class... Rest>
requires(!(is_view<Rest> || ...)) struct PostedElement<std::span<const T>, Rest...> {
  using Type = T;
};

/// f(args...) with PeId source, Pe& or both before them, whatever it takes.
template <class F, class... A>
decltype(auto) call_in_its_form(F& f, Pe& pe, PeId source, const A&... args) {
  if constexpr (std::is_invocable_v<F&, const A&...>)
    return f(args...);
  else if constexpr (std::is_invocable_v<F&, PeId, const A&...>)
    return f(source, args...);
  else if constexpr (std::is_invocable_v<F&, Pe&, const A&...>)
    return f(pe, args...);
  else
    return f(pe, source, args...);
}

/// The functions given to on_posted(), as one handler.
template <class Post, class Handler, class... Args>
class Posted {
  using Element = typename PostedElement<Args...>::Type;
  template <class Arg>
  using Counted = std::conditional_t<is_view<Arg>, std::size_t, Arg>;
  template <class Arg>
  using Parameter = std::conditional_t<is_view<Arg>, Arg, const Arg&>;

 public:
  /// `copies` outlives it.
  Posted(Post post, Handler handler, CopyCounts& copies)
      : post_(std::move(post)), handler_(std::move(handler)), copies_(&copies) {}

  /// A compile error in one line for invalid functions.
  static constexpr bool check() {
    constexpr bool has_one_span = !std::is_void_v<Element>;
    static_assert(has_one_span, "headway: on_posted() is for messages of which one argument is a std::span");
    constexpr bool callable = std::is_invocable_v<Post&, const Counted<Args>&...> ||
                              std::is_invocable_v<Post&, PeId, const Counted<Args>&...> ||
                              std::is_invocable_v<Post&, Pe&, const Counted<Args>&...> ||
                              std::is_invocable_v<Post&, Pe&, PeId, const Counted<Args>&...>;
    static_assert(callable,
                  "headway: the function that posts memory is called like the handler, with the number of elements in "
                  "the place of the "
                  "span");
    if constexpr (has_one_span && callable) {
      using Result = decltype(call_in_its_form(std::declval<Post&>(), std::declval<Pe&>(), PeId(),
                                               std::declval<const Counted<Args>&>()...));
      constexpr bool gives_span = std::is_convertible_v<Result, std::span<Element>>;
      static_assert(gives_span,
                    "headway: the function that posts memory returns a std::span of elements that are not const");
      return gives_span;
    }
    return false;
  }

  /// The memory for `count` elements. UsageError if they do not fit.
  std::span<Element> destination(Pe& pe, PeId source, std::size_t count, const Args&... args) {
    const auto counted = [count]<class Arg>(const Arg& arg) -> decltype(auto) {
      if constexpr (is_view<Arg>)
        return (count);
      else
        return (arg);
    };
    const std::span<Element> to = call_in_its_form(post_, pe, source, counted(args)...);
    if (to.size() < count) refuse_destination(source, count, to.size());
    return to.first(count);
  }

  /// The content has arrived in the span among `args`.
  void arrived(Pe& pe, PeId source, const Args&... args) { Call<Handler, Args...>::run(handler_, pe, source, args...); }

  /// A message with its content.
  void operator()(Pe& pe, PeId source, Parameter<Args>... args) {
    std::span<const Element> content;
    const auto find = [&content]<class Arg>(const Arg& arg) {
      if constexpr (is_view<Arg>) content = arg;
    };
    (find(args), ...);
    const std::span<Element> to = destination(pe, source, content.size(), args...);
    base::copy_received(reinterpret_cast<std::byte*>(to.data()), reinterpret_cast<const std::byte*>(content.data()),
                        content.size_bytes());
    copies_->add(1, content.size_bytes());
    const auto moved = [&to]<class Arg>(const Arg& arg) -> decltype(auto) {
      if constexpr (is_view<Arg>)
        return Arg(to);
      else
        return (arg);
    };
    arrived(pe, source, moved(args)...);
  }

 private:
  Post post_;
  Handler handler_;
  CopyCounts* copies_;
};

/// Whether a handler is a Posted.
template <class Handler>
struct PostsTo {
  static constexpr bool yes = false;
};
template <class Post, class Handler, class... Args>
struct PostsTo<Posted<Post, Handler, Args...>> {
  static constexpr bool yes = true;
};

}  // namespace headway::aggregate
