// SPDX-License-Identifier: BSD-3-Clause
/// The functions that a collection's messages call on the receiver, and the types that they carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/aggregator.hpp>
#include <headway/call/calls.hpp>
#include <headway/call/rpc.hpp>
#include <headway/object/element.hpp>
#include <headway/object/entry.hpp>
#include <headway/object/options.hpp>
#include <headway/object/transit.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {

namespace object {

/// After this many broadcasts the PEs find out which broadcasts an element in transit may still need.
inline constexpr std::uint32_t history_interval = 64;

[[noreturn]] void throw_size_unknown();
[[noreturn]] void throw_not_counted();
[[noreturn]] void throw_nothing_to_reduce();

[[noreturn]] void throw_nothing_expected(std::int64_t step);
[[noreturn]] void throw_waits_already(std::int64_t step);
[[noreturn]] void throw_delayed_length(const DelayedMessage& message, std::size_t bytes_min);

/// The PE that gets the answer to a call, and the number of the call there.
struct Caller {
  std::uint32_t pe;
  call::CallNumber number;
};
/// A call that this PE sends: the completion that its answer fills.
template <class R>
struct Request {
  explicit Request(Pe& pe)
      : completion(new am::CompletionOf<R>(am::Completions::of(pe))),
        caller{std::uint32_t(pe.id()), call::PendingCalls::of(pe).add(*completion, call::any_pe)} {}
  Future<R> future() { return Future<R>(std::move(completion)); }

  am::Hold<am::CompletionOf<R>> completion;
  Caller caller;
};

/// The target of reduce(): the result answers the call.
template <class R>
struct ToCaller {
  Caller caller;
  void operator()(Pe& pe, const R& value) const { rpc_ff(pe, caller.pe, call::TakeAnswer<R>(), caller.number, value); }
};

/// Precedes the bytes of an element that moves.
struct MoveHeader {
  std::uint32_t version;     // moves, with this one
  std::uint32_t broadcasts;  // number of the next broadcast that the element runs
  std::uint32_t reductions;  // contributions so far
  double load_s;
};

/// The type in which an argument reaches the collection: a view or a reference to the message.
template <class Wire>
using Arriving = std::conditional_t<aggregate::is_view<Wire>, Wire, const Wire&>;

// --- arguments that outlive their message

template <class Wire>
struct OwnedOf {
  using Type = Wire;
};
template <class E>
struct OwnedOf<std::span<E>> {
  using Type = std::vector<std::remove_const_t<E>>;
};
template <>
struct OwnedOf<std::string_view> {
  using Type = std::string;
};
template <class Wire>
using OwnedWire = typename OwnedOf<Wire>::Type;

template <class Wire>
OwnedWire<Wire> own(const Wire& wire) {
  if constexpr (aggregate::is_view<Wire>)
    return OwnedWire<Wire>(wire.begin(), wire.end());
  else
    return wire;
}
template <class Wire, class Owned>
decltype(auto) lend(const Owned& owned) {
  if constexpr (std::is_same_v<Wire, Owned>)
    return (owned);
  else
    return Wire(owned);
}

/// The message has been sent: a send_buffer() argument calls its function.
template <class Given>
void finish(Given& given) {
  if constexpr (aggregate::is_send_buffer<std::remove_cv_t<Given>>) given.finish();
}

template <class... Wires, class F, class... Given>
void with_wires_of(TypeList<Wires...>, F& f, Given&... given) {
  f(aggregate::content_of<Wires>(as_wire<Wires>(given))...);
  (finish(given), ...);
}
/// Calls f() with the arguments in the types in which messages of the method carry them.
template <auto method, class F, class... Given>
void with_wires(F f, Given&... given) {
  with_wires_of(WiresOf<method>(), f, given...);
}

// --- functions that messages call

template <class T, auto method>
struct Run {
  template <class Address, class... Wires>
  void operator()(Pe&, PeId source, Collection<T>* there, const Address& address, const Wires&... wires) const {
    there->template deliver<method>(source, address, 0, wires...);
  }
};
/// The same for a forwarded message. `version` is that of the news by which it was forwarded.
template <class T, auto method>
struct Forward {
  template <class Address, class... Wires>
  void operator()(Pe&, PeId source, Collection<T>* there, const Address& address, std::uint32_t version,
                  const Wires&... wires) const {
    there->template deliver<method>(source, address, version, wires...);
  }
};
template <class T, auto method>
struct RunForAnswer {
  template <class Address, class... Wires>
  void operator()(Pe&, PeId source, Collection<T>* there, const Address& address, std::uint32_t version,
                  const Caller& caller, const Wires&... wires) const {
    there->template answer<method>(source, address, version, caller, wires...);
  }
};
template <class T>
struct Learn {
  template <class Address>
  void operator()(Collection<T>* there, const Address& address, std::uint32_t pe, std::uint32_t version) const {
    there->learn(address, pe, version);
  }
};
template <class T>
struct Arrive {
  template <class Address>
  void operator()(Pe&, PeId source, Collection<T>* there, const Address& address, const MoveHeader& header,
                  std::span<const std::byte> content) const {
    there->arrive(source, address, header, content);
  }
};
template <class T>
struct Insert {
  template <class Key, class... Args>
  void operator()(Collection<T>* there, const Key& key, const InsertHeader& header, const Args&... args) const {
    there->insert(key, header, args...);
  }
};
template <class T>
struct Erase {
  template <class Key>
  void operator()(Pe&, PeId source, Collection<T>* there, const Key& key, std::uint32_t version) const {
    there->erase_here(source, key, version);
  }
};
template <class T, auto method>
struct StartBroadcast {
  template <class... Wires>
  void operator()(Collection<T>* there, const Wires&... wires) const {
    there->template start_broadcast<method>(wires...);
  }
};
template <class T, auto method>
struct RunBroadcast {
  template <class... Wires>
  void operator()(Collection<T>* there, std::uint32_t number, const Wires&... wires) const {
    there->template take_broadcast<method>(number, wires...);
  }
};
template <class T, auto method, class Op>
struct StartReduce {
  template <class... Wires>
  void operator()(Collection<T>* there, const Caller& caller, const Wires&... wires) const {
    there->template start_reduce<method, Op>(caller, wires...);
  }
};
template <class T, auto method, class Op>
struct RunReduce {
  template <class... Wires>
  void operator()(Collection<T>* there, std::uint32_t number, const Caller& caller, const Wires&... wires) const {
    there->template take_reduce<method, Op>(number, caller, wires...);
  }
};

// --- methods by number and by tag

template <class First, class... Rest>
const First& first_of(const First& first, const Rest&...) {
  return first;
}
template <class First, class... Rest>
struct FirstOf {
  using Type = std::remove_cvref_t<First>;
};
template <class Method>
using FirstParameter = typename MethodTraits<Method>::template WithParameters<FirstOf>::Type;

template <class E, auto then, auto... methods>
constexpr auto then_of(const Trigger<E, then, methods...>*) {
  return then;
}

/// The index of a method among the methods with steps.
template <class T, auto method>
std::size_t stepped_index() {
  std::size_t index = 0, found = 0;
  for_each_stepped_method<T>([&]<auto m>() {
    if (same_method<m, method>()) found = index;
    ++index;
  });
  return found;
}

/// Calls f(argument...) with the arguments of a message that has waited.
template <class... Wires, class F>
void with_message_of(TypeList<Wires...>, const DelayedMessage& message, F& f) {
  using Format = aggregate::MessageFormat<Wires...>;
  typename Format::Scratch scratch;
  if (message.bytes > message.words.size() * sizeof(std::uint64_t) || message.bytes < Format::prefix_bytes) {
    throw_delayed_length(message, Format::prefix_bytes);
  }
  Format::apply(reinterpret_cast<const std::byte*>(message.words.data()), message.bytes, scratch, f);
}
template <auto method, class F>
void with_message(const DelayedMessage& message, F f) {
  with_message_of(WiresOf<method>(), message, f);
}

/// The options of each entry.
template <class... Entry>
std::vector<AggregatorOptions> declared_options(const Entries<Entry...>& entries) {
  return std::apply([](const auto&... each) { return std::vector<AggregatorOptions>{each.options...}; }, entries.list);
}
/// Puts the program's options in place of those of the class. `entries`: the entry of each of options.methods.
/// SettingError for a method without an entry.
void choose_options(std::vector<AggregatorOptions>& chosen, const CollectionOptions& options,
                    std::span<const std::size_t> entries);

template <auto... methods>
bool holds_tag(const entry<methods...>*, const void* tag) {
  return ((tag_of<methods> == tag) || ...);
}
template <class... Entry>
std::size_t entry_of_tag_in(const Entries<Entry...>*, [[maybe_unused]] const void* tag) {
  std::size_t found = no_entry, i = 0;
  ((found = holds_tag(static_cast<const Entry*>(nullptr), tag) ? i : found, ++i), ...);
  return found;
}
template <class T>
std::size_t entry_of_tag(const void* tag) {
  return entry_of_tag_in(static_cast<const EntriesOf<T>*>(nullptr), tag);
}

template <std::size_t i, class Entry, class F>
void with_only_method(F& f) {
  if constexpr (OnlyMethod<Entry>::single) f.template operator()<i, OnlyMethod<Entry>::method>();
}
template <class... Entry, class F, std::size_t... i>
void for_each_typed_of(const Entries<Entry...>*, F& f, std::index_sequence<i...>) {
  (with_only_method<i, Entry>(f), ...);
}
/// Calls f.operator()<entry, method>() for each entry of one method.
template <class EntryList, class F>
void for_each_typed(F f) {
  for_each_typed_of(static_cast<const EntryList*>(nullptr), f,
                    std::make_index_sequence<std::tuple_size_v<decltype(EntryList::list)>>());
}

// --- an aggregator for each entry of a class

template <class Address, bool addressed, class Wires>
struct TypedAggregator;
template <class Address, class... Wires>
struct TypedAggregator<Address, true, TypeList<Wires...>> {
  using Type = Aggregator<Address, Wires...>;
};
template <class Address, class... Wires>
struct TypedAggregator<Address, false, TypeList<Wires...>> {
  using Type = std::conditional_t<sizeof...(Wires) == 0, CallAggregator, Aggregator<Wires...>>;
};

template <class Address, bool addressed, class Entry>
struct AggregatorOf {
  using Type = CallAggregator;
};
template <class Address, bool addressed, auto method>
struct AggregatorOf<Address, addressed, entry<method>> : TypedAggregator<Address, addressed, WiresOf<method>> {};

template <std::size_t i, class Aggregator>
struct AggregatorPlace {
  AggregatorPlace(Pe& pe, const std::vector<AggregatorOptions>& options) : aggregator(pe, options[i]) {}
  Aggregator aggregator;
};
template <class Sequence, class... Aggregator>
struct AggregatorPlaces;
template <std::size_t... i, class... Aggregator>
struct AggregatorPlaces<std::index_sequence<i...>, Aggregator...> : AggregatorPlace<i, Aggregator>... {
  AggregatorPlaces([[maybe_unused]] Pe& pe, [[maybe_unused]] const std::vector<AggregatorOptions>& options)
      : AggregatorPlace<i, Aggregator>(pe, options)... {}
};

/// Aggregators, in the order of the entries. They keep their addresses.
template <class Address, bool with_address, class EntryList>
class AggregatorsOf;
template <class Address, bool with_address, class... Entry>
class AggregatorsOf<Address, with_address, Entries<Entry...>> {
 public:
  static constexpr bool addressed = with_address;

  /// With the options of each entry.
  AggregatorsOf(Pe& pe, const std::vector<AggregatorOptions>& options) : places_(pe, options) {}

  template <std::size_t i>
  auto& get() {
    return static_cast<Place<i>&>(places_).aggregator;
  }
  template <std::size_t i>
  const auto& get() const {
    return static_cast<const Place<i>&>(places_).aggregator;
  }
  template <class F>
  void for_each(F f) {
    for_each(f, std::index_sequence_for<Entry...>());
  }

 private:
  template <std::size_t i>
  using Place = AggregatorPlace<
      i, std::tuple_element_t<i, std::tuple<typename AggregatorOf<Address, with_address, Entry>::Type...>>>;
  template <class F, std::size_t... i>
  void for_each(F& f, std::index_sequence<i...>) {
    (f(get<i>()), ...);
  }

  AggregatorPlaces<std::index_sequence_for<Entry...>, typename AggregatorOf<Address, with_address, Entry>::Type...>
      places_;
};

}  // namespace object

}  // namespace headway
