// SPDX-License-Identifier: BSD-3-Clause
/// How a collection delays messages of later steps, and runs triggers. Included by collection.hpp.
#pragma once

#include <headway/object/collection.hpp>

namespace headway {

template <class T>
template <auto method, class... Wires>
void Collection<T>::run_in_step(T& element, const Wires&... wires) {
  constexpr std::size_t number = object::counter_of<T, method>;
  constexpr bool triggers = number < object::Counters<T>::triggers;
  object::StepCounter& mine = counter(base_of(element), number);
  const auto step = static_cast<std::int64_t>(object::first_of(wires...));
  if constexpr (triggers) {
    if (!mine.open) open_trigger_step(mine, expected_of<number>(element, mine.step));
  }
  if (step < mine.step) object::throw_late_step(step, mine.step);
  if (step > mine.step || !mine.open) return delay<method>(mine, step, wires...);
  run_now<method>(element, wires...);
  if (++mine.handled < mine.expected) return;
  std::optional<Promise<>> waiter = end_step(mine);
  if constexpr (triggers) {
    trigger<number>(element, step);
    release_messages(base_of(element), number);
  } else if (waiter) {
    waiter->set();
  }
}

template <class T>
template <auto method, class Step, class... Wires>
void Collection<T>::delay(object::StepCounter& mine, Step step, const Wires&... wires) {
  using Format = aggregate::MessageFormat<Wires...>;
  static_assert(Format::alignment <= sizeof(std::uint64_t),
                "headway: arguments of methods with steps are aligned to at most 8 bytes");
  std::size_t bytes = Format::prefix_bytes;
  if constexpr (!Format::fixed) bytes = Format::bytes(wires...);
  std::byte* const at = delay_message(mine, object::stepped_index<T, method>(), step, bytes);
  if (bytes != 0) Format::pack(at, wires...);
}

template <class T>
void Collection<T>::deliver_delayed(const Address& address, const object::DelayedMessage& message) {
  std::uint32_t index = 0;
  object::for_each_stepped_method<T>([&]<auto method>() {
    if (index++ == message.method)
      object::with_message<method>(message,
                                   [&](const auto&... wires) { deliver<method>(pe().id(), address, 0, wires...); });
  });
}

template <class T>
template <std::size_t i>
std::uint64_t Collection<T>::expected_of(T& element, std::int64_t step) {
  const auto& expected = std::get<i>(T::triggers.list).expected;
  using Expected = std::remove_cvref_t<decltype(expected)>;
  if constexpr (std::is_integral_v<Expected>) {
    return std::uint64_t(expected);
  } else if constexpr (object::MethodTraits<Expected>::parameters == 0) {
    return std::uint64_t((element.*expected)());
  } else {
    return std::uint64_t((element.*expected)(static_cast<object::FirstParameter<Expected>>(step)));
  }
}

template <class T>
template <std::size_t i>
void Collection<T>::trigger(T& element, std::int64_t step) {
  using List = std::remove_cvref_t<decltype(T::triggers.list)>;
  constexpr auto then = object::then_of(static_cast<const std::tuple_element_t<i, List>*>(nullptr));
  using Then = std::remove_const_t<decltype(then)>;
  const Timer timer(*this, state(element));
  if constexpr (object::MethodTraits<Then>::parameters == 0)
    (element.*then)();
  else
    (element.*then)(static_cast<object::FirstParameter<Then>>(step));
  timer.stop();
}

template <class T>
template <auto method>
Future<> Collection<T>::when(T& element, std::int64_t step, std::uint64_t count) {
  constexpr std::size_t number = object::counter_of<T, method>;
  static_assert(number != object::no_counter && number >= object::Counters<T>::triggers,
                "headway: the class must list the method for when(): static constexpr auto awaited = "
                "headway::awaited<&Class::method>;");
  return await_messages(base_of(element), number, step, count);
}

}  // namespace headway
