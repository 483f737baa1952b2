// SPDX-License-Identifier: BSD-3-Clause
/// Calls with an answer: the value of a function on another PE, or its exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <headway/am/future.hpp>
#include <headway/am/task.hpp>
#include <headway/call/calls.hpp>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {

/// An exception of a function that ran on another PE. what() has the PE, the function and the text.
struct RemoteError : std::runtime_error {
  RemoteError(PeId where, const std::string& text) : std::runtime_error(text), pe(where) {}
  PeId pe;
};

namespace call {

/// The number of a call: its place in the caller's table, and the number of earlier calls that used this place. The
/// latter detects an answer to a call that has been answered already. A struct, because an integer converts to a PeId.
struct CallNumber {
  std::uint32_t place;
  std::uint32_t uses;
};

/// In place of a call's destination: any PE may answer.
inline constexpr std::uint32_t any_pe = ~std::uint32_t(0);

/// The calls of one PE that wait for their answers.
class PendingCalls final : public am::Extension {
 public:
  static PendingCalls& of(Pe& pe);

  /// Enters a call that `destination` will answer with an R.
  template <class R>
  CallNumber add(am::CompletionOf<R>& completion, PeId destination) {
    return add(am::Hold<am::Completion>(&completion), &type_tag<R>, destination);
  }
  /// Removes a call that could not be sent.
  void cancel(CallNumber number) { take(number); }

  /// Removes the call with this number and returns its completion. FormatError if no call has this number, or if the
  /// answer has another type or comes from another PE than the call expects.
  template <class R>
  am::Hold<am::Completion> take(CallNumber number, PeId source) {
    return take(number, &type_tag<R>, source);
  }
  /// The same for an exception, which has no type.
  am::Hold<am::Completion> take_failed(CallNumber number, PeId source) { return take(number, nullptr, source); }

  std::size_t size() const { return size_; }

 private:
  struct Place {
    am::Hold<am::Completion> completion;
    const void* type = nullptr;
    std::uint32_t uses = 0;
    std::uint32_t destination = 0;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t none = 0xffffffff;

  CallNumber add(am::Hold<am::Completion> completion, const void* type, PeId destination);
  am::Hold<am::Completion> take(CallNumber number, const void* type, PeId source);
  am::Hold<am::Completion> take(CallNumber number);

  std::vector<Place> places_;
  std::uint32_t first_free_ = none;
  std::size_t size_ = 0;
};

/// Returns the name of a function's type.
using FunctionName = std::string (*)();

/// Call it in a catch block: returns the text of the exception. Rethrows RunFailed and InvalidFrame, which end the run.
std::string text_of_failure();
/// Answers a call with an exception.
void send_failure(Pe& pe, PeId source, CallNumber number, FunctionName function, const std::string& text);

/// Handles an answer, on the caller's PE.
template <class R>
struct TakeAnswer {
  void operator()(Pe& pe, PeId source, CallNumber number, const R& value) const {
    const am::Hold<am::Completion> hold = PendingCalls::of(pe).take<R>(number, source);
    static_cast<am::CompletionOf<R>&>(*hold).emplace(value);
    hold->owner->complete(*hold);
  }
};
template <>
struct TakeAnswer<void> {
  void operator()(Pe& pe, PeId source, CallNumber number) const {
    const am::Hold<am::Completion> hold = PendingCalls::of(pe).take<void>(number, source);
    static_cast<am::CompletionOf<void>&>(*hold).emplace();
    hold->owner->complete(*hold);
  }
};

/// The type of the answer of a function that returns Result.
template <class Result>
struct AnswerOf {
  using Type = std::remove_cvref_t<Result>;
};
template <class T>
struct AnswerOf<Task<T>> {
  using Type = T;
};
template <class Result>
using Answer = typename AnswerOf<std::remove_cvref_t<Result>>::Type;

/// The value or the exception of a function, to be sent to its caller.
template <class R>
struct Outcome {
  std::optional<am::ValueOf<R>> value;
  std::string failure;  // without a value

  void send(Pe& pe, PeId source, CallNumber number, FunctionName function) const {
    if (!value)
      send_failure(pe, source, number, function, failure);
    else if constexpr (std::is_void_v<R>)
      rpc_ff(pe, source, TakeAnswer<R>(), number);
    else
      rpc_ff(pe, source, TakeAnswer<R>(), number, *value);
  }
};

template <class R>
am::Detached answer_later(am::Completions&, am::Origin, Pe& pe, PeId source, CallNumber number, FunctionName function,
                          Task<R> task) {
  Outcome<R> outcome;
  try {
    if constexpr (std::is_void_v<R>)
      co_await task, outcome.value.emplace();
    else
      outcome.value.emplace(co_await task);
  } catch (...) {
    outcome.failure = text_of_failure();
  }
  outcome.send(pe, source, number, function);
}

template <class F, class... A>
void call_and_answer(Pe& pe, PeId source, CallNumber number, F function, A&&... args) {
  using Result = aggregate::CallResult<F, A...>;
  using R = Answer<Result>;
  auto call = [&]() -> decltype(auto) {
    return aggregate::call_function(pe, source, function, std::forward<A>(args)...);
  };
  if constexpr (am::is_task<std::remove_cvref_t<Result>>) {
    const am::Origin origin{"a call that is to be answered", std::source_location::current()};
    answer_later<R>(am::Completions::of(pe), origin, pe, source, number, &aggregate::type_name<F>, call()).start();
  } else {
    Outcome<R> outcome;
    try {
      if constexpr (std::is_void_v<R>)
        call(), outcome.value.emplace();
      else
        outcome.value.emplace(call());
    } catch (...) {
      outcome.failure = text_of_failure();
    }
    outcome.send(pe, source, number, &aggregate::type_name<F>);
  }
}

/// Runs a call on its destination.
template <class F>
struct RunCaptureless {
  template <class... A>
  requires(aggregate::is_callable<F, A...>) void operator()(Pe& pe, PeId source, CallNumber number, A&&... args) const {
    call_and_answer(pe, source, number, F(), std::forward<A>(args)...);
  }
};
template <class Function>
struct RunFunction {
  template <class... A>
  requires(aggregate::is_callable<Function*, A...>) void operator()(Pe& pe, PeId source, CallNumber number,
                                                                    const FunctionReference& function,
                                                                    A&&... args) const {
    call_and_answer(pe, source, number, function_of<Function>(function), std::forward<A>(args)...);
  }
};

/// The parameter type with which the function gets an argument of type Arg on the destination.
template <class Arg>
struct ArrivesAs {
  using Type = const Wire<Arg>&;
};
template <class T>
struct ArrivesAs<DistObject<T>> {
  using Type = T&;
};

/// A compile error in one line for a function that cannot answer.
template <class F, class... Args>
constexpr bool require_answering() {
  if constexpr (aggregate::require_callable<F, typename ArrivesAs<Args>::Type...>()) {
    using Result = aggregate::CallResult<F, typename ArrivesAs<Args>::Type...>;
    using R = Answer<Result>;
    if constexpr (am::is_task<std::remove_cvref_t<Result>>) {
      if constexpr (!aggregate::require_kept_arguments<F>()) return false;
    }
    if constexpr (!std::is_void_v<R>) {
      base::require_sendable<R>();
      return Sendable<R>;
    }
    return true;
  }
  return false;
}

template <class F, class... Args>
using AnswerTo = Answer<aggregate::CallResult<F, typename ArrivesAs<Args>::Type...>>;

template <class R, class F, class... Args>
Future<R> call_for_answer(Pe& pe, CallAggregator& calls, PeId destination, F run, const Args&... args) {
  am::Hold<am::CompletionOf<R>> completion(new am::CompletionOf<R>(am::Completions::of(pe)));
  PendingCalls& pending = PendingCalls::of(pe);
  const CallNumber number = pending.add(*completion, destination);
  try {
    calls.rpc_ff(destination, run, number, args...);
  } catch (...) {
    pending.cancel(number);
    throw;
  }
  return Future<R>(std::move(completion));
}

}  // namespace call

/// Runs fn(args...) on `destination` and returns a future of its result: nothing, or a value of any type that may
/// travel in a message.
///
///     const int n = co_await headway::rpc(pe, 3, [](int x) { return x + 1; }, 41);      // in a Task
///     const int m = headway::rpc(pe, 3, plain_function, 41).get();                     // in the main program
///     headway::rpc(pe, 3, plain_function, 41).then([](int m) { ... });                 // anywhere
///
/// The rules for `fn` and its arguments are those of rpc_ff(). A coroutine returns a Task<R> and takes its arguments by
/// value; its answer is sent when it is done. If `fn` throws, the future throws a RemoteError when the caller takes the
/// value. A caller that drops the future also drops the exception: use rpc_ff() for functions that should end the run
/// when they fail. Call and answer are messages of the epoch in which rpc() was called. That epoch and quiesce() wait
/// until the answer is handled, also for a dropped future.
///
/// With GCC 12, arguments that have destructors must be named objects: see am::require_named_arguments.
template <class F, class... Args>
auto rpc(CallAggregator& calls, PeId destination, F, Args&&... args) {
  am::require_named_arguments<Args...>();
  constexpr bool captureless = std::is_empty_v<F> && std::is_default_constructible_v<F>;
  static_assert(
      captureless,
      "headway: a function called on another PE is a plain function or one without captures (no std::function, "
      "no member): pass its data as arguments");
  if constexpr (captureless && (aggregate::require_argument<call::Wire<std::remove_cvref_t<Args>>>() && ...)) {
    if constexpr (call::require_answering<F, std::remove_cvref_t<Args>...>()) {
      using R = call::AnswerTo<F, std::remove_cvref_t<Args>...>;
      return call::call_for_answer<R>(calls.pe(), calls, destination, call::RunCaptureless<F>(), args...);
    }
  }
}
template <class Result, class... Parameters, class... Args>
auto rpc(CallAggregator& calls, PeId destination, Result (*function)(Parameters...), Args&&... args) {
  using Function = Result(Parameters...);
  am::require_named_arguments<Args...>();
  if constexpr ((aggregate::require_argument<call::Wire<std::remove_cvref_t<Args>>>() && ...)) {
    if constexpr (call::require_answering<Function*, std::remove_cvref_t<Args>...>()) {
      using R = call::Answer<Result>;
      return call::call_for_answer<R>(calls.pe(), calls, destination, call::RunFunction<Function>(),
                                      call::reference_to<Function>(function), args...);
    }
  }
}
template <class Result, class... Parameters, class... Args>
auto rpc(CallAggregator& calls, PeId destination, Result (*function)(Parameters...) noexcept, Args&&... args) {
  return rpc(calls, destination, static_cast<Result (*)(Parameters...)>(function), std::forward<Args>(args)...);
}

/// The same with the PE's default aggregator of calls. Answers always use the default aggregator of the destination.
template <class F, class... Args>
auto rpc(Pe& pe, PeId destination, F function, Args&&... args) {
  return rpc(call::default_calls(pe), destination, function, std::forward<Args>(args)...);
}

/// A compile error in one line for wrong arguments.
template <class... Given>
requires(!call::begins_as_call<Given...>) void rpc(CallAggregator&, Given&&...) { call::refuse_call<Given...>(); }
template <class... Given>
requires(!call::begins_as_call<Given...>) void rpc(Pe&, Given&&...) { call::refuse_call<Given...>(); }

}  // namespace headway
