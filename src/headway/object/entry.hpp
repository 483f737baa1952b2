/// Entry methods: which of a class's methods share buffers, wait for one another, and what their arguments travel as.
#pragma once

#include <concepts>
#include <cstddef>
#include <headway/aggregate/argument.hpp>
#include <headway/aggregate/call_function.hpp>
#include <headway/call/calls.hpp>
#include <headway/aggregate/invoke.hpp>
#include <headway/aggregate/options.hpp>
#include <headway/call/rpc.hpp>
#include <headway/aggregate/send_buffer.hpp>
#include <headway/am/task.hpp>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway {

/// Methods that have buffers of their own, and the options of these; several methods in one entry share them. All of
/// "Aggregation (variable-size TRAM, 2020)" can be said, and more:
///
///     class Cell : public headway::Element<Cell, headway::Index<2>> {
///       void recv_forces(std::span<const double> forces, int step);
///       static constexpr auto aggregation = headway::entries(
///           headway::entry<&Cell::recv_forces>{{.buffer_bytes = 20480, .threshold = 0.9, .cutoff = 0.1}});
///     };
///
/// A method that is alone in its entry is sent in the fewest bytes and instructions: its name does not travel. Methods
/// in no entry share the buffers of the collection.
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

/// Tells methods apart as a type.
template <auto method>
struct MethodTag {};
/// The same as an address.
template <auto method>
inline constexpr const void* tag_of = &call::type_tag<MethodTag<method>>;
/// For people: "&Cell::recv", of all overloads.
template <auto method>
std::string name_of() {
  std::string name = aggregate::type_name<MethodTag<method>>();
  name.erase(0, name.find('<') + 1);
  name.pop_back();
  return name;
}

/// What trigger() makes.
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

/// What a class's `aggregation` is made of.
template <class... Entry>
constexpr object::Entries<Entry...> entries(Entry... list) {
  return {std::tuple<Entry...>(list...)};
}

/// A method, `then`, that runs when messages of a step have arrived: those of `methods`, whose first argument, an
/// integer, is their step. Steps follow one another from 0 on. Messages of the current one are handled as they come;
/// those of later ones wait in the element, and move with it; one of an earlier step is a UsageError. When as many of
/// the current step have been handled as `expected` says, `then(step)` runs, and the next one is current. `expected` is
/// a number of at least 1, or a method of the element, called with the step, that says it.
///
/// Neighbours' messages of step 0 may come, and `then(0)` run, before the element itself is told to start. So the
/// method that starts it is one of `methods`, called with step 0, which expects one more; or `then` sends first what is
/// to be sent in its step, unless it has been.
///
///     void start(int step);  // called with 0: sends this element's ghosts
///     void ghost(int step, int side, std::span<const double> cells);
///     std::size_t expected(int step) const { return neighbours() + (step == 0); }
///     void relax(int step);  // sends the next step's
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
/// Methods that coroutines of the element wait for, by when(): `static constexpr auto awaited =
/// headway::awaited<&A::m>;`.
template <auto... methods>
inline constexpr object::Awaited<methods...> awaited{};

namespace object {

/// What is known of a pointer to a method.
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

/// What a method's arguments travel as.
template <auto method>
using WiresOf = typename MethodTraits<decltype(method)>::template WithWires<TypeList>;
template <auto method>
using ResultOf = typename MethodTraits<decltype(method)>::Result;
template <auto method>
inline constexpr bool is_coroutine = am::is_task<std::remove_cvref_t<ResultOf<method>>>;
/// What the sender of a message with an answer gets.
template <auto method>
using AnswerTo = call::Answer<ResultOf<method>>;

// --- what a class declares

template <class T>
constexpr auto entries_of() {
  if constexpr (requires { T::aggregation; })
    return T::aggregation;
  else
    return Entries<>{};
}
template <class T>
using EntriesOf = decltype(entries_of<T>());

template <auto a, auto b>
constexpr bool same_method() {
  if constexpr (std::is_same_v<decltype(a), decltype(b)>)
    return a == b;
  else
    return false;
}

/// Whether an entry holds the method, and whether that is all it holds.
template <auto method, class Entry>
struct Holds;
template <auto method, auto... methods>
struct Holds<method, entry<methods...>> {
  static constexpr bool value = (same_method<method, methods>() || ...);
  static constexpr bool alone = value && sizeof...(methods) == 1;
};
/// The method of an entry that holds one.
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

// --- gates: triggers first, then one for each method that coroutines wait for

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

/// All methods whose messages may wait, each with its gate.
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

/// Calls f.operator()<method>() for each of them, in their order.
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

// --- what is given for a call

template <class Parameter>
inline constexpr bool is_value_const_reference_or_view =
    !std::is_reference_v<Parameter> ||
    (std::is_lvalue_reference_v<Parameter> && std::is_const_v<std::remove_reference_t<Parameter>>);

template <class... P>
struct GoodParameters {
  static constexpr bool value = (is_value_const_reference_or_view<P> && ...);
};

/// Whether what is given may be passed for a parameter that travels as Wire.
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

/// One line of compile error for what is no entry method of T, or is not called like this. Returns whether it is.
template <class T, auto method, class... Given>
constexpr bool require_entry_method() {
  using Pointer = decltype(method);
  static_assert(MethodPointer<Pointer>, "headway: name an entry method as &Class::method");
  if constexpr (MethodPointer<Pointer>) {
    using Traits = MethodTraits<Pointer>;
    constexpr bool of_class = std::is_base_of_v<typename Traits::Class, T>;
    static_assert(of_class, "headway: this is no method of the collection's class");
    constexpr bool good_parameters = Traits::template WithParameters<GoodParameters>::value;
    static_assert(good_parameters,
                  "headway: an entry method takes values, const references and views (std::span<const T>)");
    if constexpr (of_class && good_parameters) {
      constexpr bool passable = Traits::template WithWires<Passable>::template with<Given...>();
      if constexpr (sizeof...(Given) < Traits::parameters) {
        static_assert(passable, "headway: the entry method cannot be called with these arguments: it takes more");
      } else if constexpr (sizeof...(Given) > Traits::parameters) {
        static_assert(passable, "headway: the entry method cannot be called with these arguments: it takes fewer");
      } else {
        static_assert(passable,
                      "headway: the entry method cannot be called with these arguments: one has another type");
      }
      if constexpr (is_coroutine<method>) return passable && aggregate::require_kept_arguments<Pointer>();
      return passable;
    }
  }
  return false;
}

/// An argument as what travels: itself where that is the same type.
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
