// SPDX-License-Identifier: BSD-3-Clause
/// Entry methods: which methods of a class share buffers, which have steps, and the types in which their arguments
/// travel.
#pragma once

#include <concepts>
#include <cstddef>
#include <headway/aggregate/argument.hpp>
#include <headway/aggregate/call_function.hpp>
#include <headway/aggregate/invoke.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/aggregate/send_buffer.hpp>
#include <headway/am/task.hpp>
#include <headway/call/calls.hpp>
#include <headway/call/rpc.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway {

/// An entry: methods that share buffers, and the options of these buffers. It covers all of "Aggregation (variable-size
/// TRAM, 2020)", and more:
///
///     class Cell : public headway::Element<Cell, headway::Index<2>> {
///       void recv_forces(std::span<const double> forces, int step);
///       static constexpr auto aggregation = headway::entries(
///           headway::entry<&Cell::recv_forces>{{.buffer_bytes = 20480, .threshold = 0.9, .cutoff = 0.1}});
///     };
///
/// Messages of a method that has an entry of its own take the fewest bytes and instructions, because they do not name
/// the method. Methods without an entry share the buffers of the collection.
template <auto... methods>
struct entry {
  AggregatorOptions options = {};
};

namespace object {

template <class... Entry>
struct Entries {
  std::tuple<Entry...> list;
};
template <class T>
inline constexpr bool is_entries = false;
template <class... Entry>
inline constexpr bool is_entries<Entries<Entry...>> = true;

/// A type for each method.
template <auto method>
struct MethodTag {};
/// An address for each method.
template <auto method>
inline constexpr const void* tag_of = &call::type_tag<MethodTag<method>>;
/// For error texts: "&Cell::recv". Overloads have the same name.
template <auto method>
std::string name_of() {
  std::string name = aggregate::type_name<MethodTag<method>>();
  name.erase(0, name.find('<') + 1);
  name.pop_back();
  return name;
}

/// The result of trigger().
template <class Expected, auto then, auto... methods>
struct Trigger {
  Expected expected;
};
template <class... Trigger>
struct Triggers {
  std::tuple<Trigger...> list;
};
template <auto... methods>
struct Awaited {};

}  // namespace object

/// The type of `aggregation` in a class.
template <class... Entry>
constexpr object::Entries<Entry...> entries(Entry... list) {
  return {std::tuple<Entry...>(list...)};
}

/// A trigger: the runtime calls `then(step)` when all messages of a step have been handled. The messages are those of
/// `methods`; their first argument, an integer, is the step. Steps are numbered from 0. Messages of the current step
/// are handled when they arrive. Messages of later steps wait in the element and move with it. A message of an earlier
/// step is a UsageError. `expected` is the number of messages in a step, at least 1, or a method of the element that
/// returns this number for a step. After `expected` messages and `then(step)` the next step is current.
///
/// Messages of neighbours for step 0 can arrive, and `then(0)` can run, before the program starts the element. There
/// are two remedies. Let the method that starts the element be one of `methods`: it is called with step 0, and
/// `expected` counts one message more in step 0. Or let `then` first send the messages of its own step, unless they
/// have been sent.
///
///     void start(int step);  // called with 0: sends this element's ghosts
///     void ghost(int step, int side, std::span<const double> cells);
///     std::size_t expected(int step) const { return neighbours() + (step == 0); }
///     void relax(int step);  // sends the messages of the next step
///     static constexpr auto triggers =
///         headway::triggers(headway::trigger<&Block::relax, &Block::start, &Block::ghost>(&Block::expected));
template <auto then, auto... methods, class Expected>
constexpr object::Trigger<Expected, then, methods...> trigger(Expected expected) {
  return {expected};
}
template <class... Trigger>
constexpr object::Triggers<Trigger...> triggers(Trigger... list) {
  return {std::tuple<Trigger...>(list...)};
}
/// Methods that coroutines of the element await by when():
///
///     static constexpr auto awaited = headway::awaited<&A::m>;
template <auto... methods>
inline constexpr object::Awaited<methods...> awaited{};

namespace object {

/// Class, result and parameters of a method.
template <class Method>
struct MethodTraits;
template <class C, class R, class... P>
struct MethodOf {
  using Class = C;
  using Result = R;
  template <template <class...> class Template>
  using WithParameters = Template<P...>;
  template <template <class...> class Template>
  using WithWires = Template<std::remove_cvref_t<P>...>;
  static constexpr std::size_t parameters = sizeof...(P);
};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...)> : MethodOf<C, R, P...> {};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...) const> : MethodOf<C, R, P...> {};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...) noexcept> : MethodOf<C, R, P...> {};
template <class C, class R, class... P>
struct MethodTraits<R (C::*)(P...) const noexcept> : MethodOf<C, R, P...> {};

template <class T>
concept MethodPointer = requires {
  typename MethodTraits<T>::Result;
};

template <class... T>
struct TypeList {};

/// The types in which the arguments of a method travel.
template <auto method>
using WiresOf = typename MethodTraits<decltype(method)>::template WithWires<TypeList>;
template <auto method>
using ResultOf = typename MethodTraits<decltype(method)>::Result;
template <auto method>
inline constexpr bool is_coroutine = am::is_task<std::remove_cvref_t<ResultOf<method>>>;
/// The type that the caller of rpc() gets.
template <auto method>
using AnswerTo = call::Answer<ResultOf<method>>;

// --- declarations of a class

template <class T>
constexpr auto entries_of() {
  if constexpr (requires { T::aggregation; })
    return T::aggregation;
  else
    return Entries<>{};
}
template <class T>
using EntriesOf = decltype(entries_of<T>());

/// By type: with UBSan, GCC does not compare addresses of inline methods in constant expressions.
template <auto a, auto b>
constexpr bool same_method() {
  return std::is_same_v<MethodTag<a>, MethodTag<b>>;
}

/// Whether an entry has the method, and whether it has no other.
template <auto method, class Entry>
struct Holds;
template <auto method, auto... methods>
struct Holds<method, entry<methods...>> {
  static constexpr bool value = (same_method<method, methods>() || ...);
  static constexpr bool alone = value && sizeof...(methods) == 1;
};
/// The method of an entry with only one method.
template <class Entry>
struct OnlyMethod {
  static constexpr bool single = false;
};
template <auto m>
struct OnlyMethod<entry<m>> {
  static constexpr bool single = true;
  static constexpr auto method = m;
};

inline constexpr std::size_t no_entry = ~std::size_t(0);
template <auto method, class EntryList>
struct EntryWith;
template <auto method, class... Entry>
struct EntryWith<method, Entries<Entry...>> {
  static constexpr std::size_t index = [] {
    std::size_t found = no_entry, i = 0;
    ((found = Holds<method, Entry>::value ? i : found, ++i), ...);
    return found;
  }();
};
template <class T, auto method>
inline constexpr std::size_t entry_index = EntryWith<method, EntriesOf<T>>::index;

// --- counters of steps: those of triggers, then one for each awaited method

template <class T>
constexpr auto triggers_of() {
  if constexpr (requires { T::triggers; })
    return T::triggers;
  else
    return Triggers<>{};
}
template <class T>
constexpr auto awaited_of() {
  if constexpr (requires { T::awaited; })
    return T::awaited;
  else
    return Awaited<>{};
}

inline constexpr std::size_t no_counter = ~std::size_t(0);

/// All methods with steps, and the counter of each.
template <class TriggerList, class AwaitedList>
struct CountersOf;
template <class... Trigger, auto... a>
struct CountersOf<Triggers<Trigger...>, Awaited<a...>> {
  static constexpr std::size_t triggers = sizeof...(Trigger);
  static constexpr std::size_t count = sizeof...(Trigger) + sizeof...(a);

  template <auto method, class E, auto then, auto... methods>
  static constexpr bool holds(const object::Trigger<E, then, methods...>*) {
    return (same_method<method, methods>() || ...);
  }
  template <auto method>
  static constexpr std::size_t counter() {
    std::size_t found = no_counter, i = 0;
    ((found = holds<method>(static_cast<const Trigger*>(nullptr)) ? i : found, ++i), ...);
    ((found = same_method<method, a>() ? i : found, ++i), ...);
    return found;
  }
};
template <class T>
using Counters = CountersOf<decltype(triggers_of<T>()), decltype(awaited_of<T>())>;
template <class T, auto method>
inline constexpr std::size_t counter_of = Counters<T>::template counter<method>();

template <class T, auto method>
inline constexpr bool has_no_steps = counter_of<T, method> == no_counter;

/// Calls f.operator()<method>() for each of these methods, in the order of their declaration.
template <class F, class E, auto then, auto... methods>
void for_each_method_of(F& f, const Trigger<E, then, methods...>*) {
  (f.template operator()<methods>(), ...);
}
template <class F, class... Trigger, auto... a>
void for_each_stepped(F& f, const Triggers<Trigger...>*, const Awaited<a...>*) {
  (for_each_method_of(f, static_cast<const Trigger*>(nullptr)), ...);
  (f.template operator()<a>(), ...);
}
template <class T, class F>
void for_each_stepped_method(F f) {
  using TriggerList = decltype(triggers_of<T>());
  using AwaitedList = decltype(awaited_of<T>());
  for_each_stepped(f, static_cast<const TriggerList*>(nullptr), static_cast<const AwaitedList*>(nullptr));
}

// --- arguments of a call

template <class Parameter>
inline constexpr bool is_value_const_reference_or_view =
    !std::is_reference_v<Parameter> ||
    (std::is_lvalue_reference_v<Parameter> && std::is_const_v<std::remove_reference_t<Parameter>>);

template <class... P>
struct GoodParameters {
  static constexpr bool value = (is_value_const_reference_or_view<P> && ...);
};

/// Whether an argument of type Given may be passed for a parameter that travels as Wire.
template <class Given, class Wire>
constexpr bool is_passable() {
  if constexpr (aggregate::is_send_buffer<std::remove_cvref_t<Given>>)
    return aggregate::is_view<Wire>;
  else
    return std::is_convertible_v<Given, Wire>;
}

template <class... Wire>
struct Passable {
  template <class... Given>
  static constexpr bool with() {
    if constexpr (sizeof...(Given) == sizeof...(Wire))
      return (is_passable<Given, Wire>() && ...);
    else
      return false;
  }
};

/// Whether `method` is an entry method of T and can be called with these arguments. If not, one line of compile error.
template <class T, auto method, class... Given>
constexpr bool require_entry_method() {
  using Pointer = decltype(method);
  static_assert(MethodPointer<Pointer>, "headway: name an entry method as &Class::method");
  if constexpr (MethodPointer<Pointer>) {
    using Traits = MethodTraits<Pointer>;
    constexpr bool of_class = std::is_base_of_v<typename Traits::Class, T>;
    static_assert(of_class, "headway: this is not a method of the class of the collection's elements");
    constexpr bool good_parameters = Traits::template WithParameters<GoodParameters>::value;
    static_assert(good_parameters,
                  "headway: parameters of an entry method are values, const references or views (std::span<const T>)");
    if constexpr (of_class && good_parameters) {
      constexpr bool passable = Traits::template WithWires<Passable>::template with<Given...>();
      if constexpr (sizeof...(Given) < Traits::parameters) {
        static_assert(passable,
                      "headway: the entry method cannot be called with these arguments: it has more parameters");
      } else if constexpr (sizeof...(Given) > Traits::parameters) {
        static_assert(passable,
                      "headway: the entry method cannot be called with these arguments: it has fewer parameters");
      } else {
        static_assert(passable,
                      "headway: the entry method cannot be called with these arguments: the type of one does not fit");
      }
      if constexpr (is_coroutine<method>) return passable && aggregate::require_kept_arguments<Pointer>();
      return passable;
    }
  }
  return false;
}

/// An argument in the type in which it travels: itself, if it has that type.
template <class Wire, class Given>
inline __attribute__((always_inline)) decltype(auto) as_wire(Given& given) {
  if constexpr (aggregate::is_send_buffer<std::remove_cv_t<Given>>) {
    return std::move(given);
  } else if constexpr (std::is_same_v<std::remove_const_t<Given>, Wire>) {
    return (given);
  } else {
    Wire wire = given;
    return wire;
  }
}

}  // namespace object

}  // namespace headway
