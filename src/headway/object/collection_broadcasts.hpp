// SPDX-License-Identifier: BSD-3-Clause
/// How a collection runs broadcasts, and the reductions that use them. Included by collection.hpp.
#pragma once

#include <headway/object/collection.hpp>
#include <headway/object/collection_elements.hpp>

namespace headway {

template <class T>
constexpr bool Collection<T>::keeps_history() {
  return Traits::sparse || (Traits::moves && object::Migratable<T>);
}

template <class T>
template <auto method, class... Wires>
void Collection<T>::take_broadcast(std::uint32_t number, const Wires&... wires) {
  std::tuple<object::OwnedWire<Wires>...> owned(object::OwnedWire<Wires>(object::own(wires))...);
  if (!is_next_broadcast(number)) {
    return keep_broadcast(number, [this, number, owned = std::move(owned)] {
      std::apply([&](const auto&... mine) { take_broadcast<method>(number, object::lend<Wires>(mine)...); }, owned);
    });
  }
  for_each_child([&](std::size_t pe) { calls_.rpc_ff(pe, object::RunBroadcast<T, method>(), me_, number, wires...); });
  run_broadcast<keeps_history()>([this, owned = std::move(owned)](object::ElementBase& element) {
    std::apply([&](const auto&... mine) { run<method>(element_of(element), object::lend<Wires>(mine)...); }, owned);
  });
}

template <class T>
template <auto method, class Op, class... Given>
auto Collection<T>::reduce(Op, Given&&... given) {
  if constexpr (object::require_entry_method<T, method, Given...>()) {
    using R = object::AnswerTo<method>;
    static_assert(!std::is_void_v<R>, "headway: the method of reduce() returns void: it must return a value");
    static_assert(object::has_no_steps<T, method>,
                  "headway: a method with steps gives no answer: use send() or broadcast()");
    static_assert(!object::is_coroutine<method>,
                  "headway: the method of reduce() is a coroutine: let it call contribute()");
    if constexpr (object::require_operator<Op, R>()) {
      require_elements();
      object::Request<R> request(pe());
      object::with_wires<method>(
          [&](const auto&... wires) {
            calls_.rpc_ff(0, object::StartReduce<T, method, Op>(), me_, request.caller, wires...);
          },
          given...);
      return request.future();
    }
  }
}

template <class T>
template <auto method, class Op, class... Wires>
void Collection<T>::take_reduce(std::uint32_t number, const object::Caller& caller, const Wires&... wires) {
  std::tuple<object::OwnedWire<Wires>...> owned(object::OwnedWire<Wires>(object::own(wires))...);
  if (!is_next_broadcast(number)) {
    return keep_broadcast(number, [this, number, caller, owned = std::move(owned)] {
      std::apply([&](const auto&... mine) { take_reduce<method, Op>(number, caller, object::lend<Wires>(mine)...); },
                 owned);
    });
  }
  using R = object::AnswerTo<method>;
  for_each_child(
      [&](std::size_t pe) { calls_.rpc_ff(pe, object::RunReduce<T, method, Op>(), me_, number, caller, wires...); });
  run_broadcast<keeps_history()>([this, number, caller, owned = std::move(owned)](object::ElementBase& element) {
    const Timer timer(*this, state_of(element));
    const R result = std::apply(
        [&](const auto&... mine) -> R { return (element_of(element).*method)(object::lend<Wires>(mine)...); }, owned);
    timer.stop();
    reductions_.give({object::of_broadcasts, number}, 1, size(), result, Op(), object::ToCaller<R>{caller});
  });
}

}  // namespace headway
