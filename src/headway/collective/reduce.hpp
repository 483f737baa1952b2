/// Collectives that nobody waits in: each returns a future at once, and goes on by itself, in handlers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/future.hpp>
#include <headway/base/sendable.hpp>
#include <headway/collective/collectives.hpp>
#include <headway/collective/descriptor.hpp>
#include <headway/collective/operation.hpp>
#include <headway/collective/team.hpp>
#include <headway/collective/values.hpp>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {

/// Of reductions.
struct ReduceOptions {
  /// Values are combined in the order of ranks, always with the same brackets, whatever comes first and whichever the
  /// root is: the result is the same to the bit in every run of as many members, and the operator need not commute.
  /// Takes a message more where the root is not rank 0, and copies of what comes before its turn.
  bool ordered = false;
};

namespace collective {

template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;

/// What is combined where a span, or one value, is given.
template <class Given>
struct ElementOf {
  using Type = Given;
};
template <class T, std::size_t extent>
struct ElementOf<std::span<T, extent>> {
  using Type = std::remove_const_t<T>;
};
template <class Given>
using Element = typename ElementOf<std::remove_cvref_t<Given>>::Type;

template <class Given>
constexpr bool require_elements() {
  using T = Element<Given>;
  if constexpr (is_span<std::remove_cvref_t<Given>>) {
    static_assert(
        FixedSize<T> && !std::is_same_v<T, bool>,
        "headway: the elements of a span in a collective are trivially copyable, carry no address, and are not bool");
    return FixedSize<T> && !std::is_same_v<T, bool>;
  } else {
    require_sendable<T>();
    return Sendable<T>;
  }
}

/// An operator runs when contributions come, after the call has returned, and on whichever PE: it has no captures.
template <class Op, class T>
constexpr bool require_operator() {
  constexpr bool can_be_kept =
      std::is_empty_v<Op> || (std::is_pointer_v<Op> && std::is_function_v<std::remove_pointer_t<Op>>) || FixedSize<Op>;
  static_assert(
      can_be_kept,
      "headway: the operator of a collective outlives the call: it is a function, a closure without captures, or "
      "a trivially copyable object that carries no address");
  if constexpr (can_be_kept) {
    constexpr bool combines = [] {
      if constexpr (std::is_invocable_v<const Op&, const T&, const T&>)
        return std::is_convertible_v<std::invoke_result_t<const Op&, const T&, const T&>, T>;
      else
        return false;
    }();
    static_assert(
        combines,
        "headway: the operator of a collective takes two elements and gives one: for the elements of a vector "
        "give std::span(vector)");
    return combines;
  }
  return false;
}

/// Elements of a call on their way into it.
template <class Given, class Op, class Place>
std::unique_ptr<Values> make_values(Op op, Place place) {
  return std::make_unique<ValuesOf<Element<Given>, Op, Place>>(op, std::move(place));
}

template <class Given>
std::size_t count_of(const Given& given) {
  if constexpr (is_span<Given>)
    return given.size();
  else
    return 1;
}
template <class T>
constexpr std::size_t per_segment = FixedSize<T> ? Codec<T>::per_segment : unsegmented;

/// Of what travels as it lies, else 0.
template <class T>
constexpr std::size_t element_bytes = FixedSize<T> ? sizeof(T) : 0;

template <class Given>
std::vector<Element<Given>> copy_of(const Given& given) {
  if constexpr (is_span<Given>)
    return {given.begin(), given.end()};
  else
    return {given};
}

/// Of FixedSize elements.
template <class Given>
Bytes bytes_of(const Given& given) {
  if constexpr (is_span<Given>)
    return std::as_bytes(given);
  else
    return std::as_bytes(std::span(&given, 1));
}

/// Whether this PE is through with a reduction once it has given its part, which it has then.
template <class T, class Op>
bool gives_at_once(Collectives& all, const Call& call, bool ordered, Bytes bytes) {
  if (all.give_in_cell(call, sizeof(T), reduce_of<T, Op>(), bytes)) return true;
  const std::uint32_t to = all.only_gives_to(call, ordered, sizeof(T), reduces_by_type<T, Op>);
  if (to == nobody) return false;
  all.give(call, to, bytes);
  return true;
}

/// Starts what goes along a tree. `Value` is the place of a single value.
template <Kind kind, template <class> class Value, class Given, class Op>
auto start_tree(const TeamRef& team, const Given& given, Op op, std::size_t root, bool ordered) {
  using T = Element<Given>;
  Collectives& all = Collectives::of(team.pe());
  all.make_room();
  const bool same_count = kind != Kind::broadcast || !is_span<Given> || team.rank() == root;
  Call call = all.next_call(team, OperationOf<kind, T, Op>::operation.number(ordered), count_of(given), per_segment<T>,
                            root, same_count);
  if constexpr (kind == Kind::reduce && FixedSize<T>) {
    if (gives_at_once<T, Op>(all, call, ordered, bytes_of(given))) {  // first: another waits for it
      using Place = std::conditional_t<is_span<Given>, OwnedVector<T>, Value<T>>;
      decltype(Place::promise) promise(team.pe());
      auto future = promise.future();
      Place::complete_without(promise);
      return future;
    }
  }
  const auto go = [&](auto place) {
    auto future = place.promise.future();
    all.start(all.make(std::move(call), kind, make_values<Given>(op, std::move(place)), ordered, element_bytes<T>,
                       reduces_by_type<T, Op>));
    return future;
  };
  if constexpr (is_span<Given>)
    return go(OwnedVector<T>{copy_of(given), Promise<std::vector<T>>(team.pe())});
  else
    return go(Value<T>{given, decltype(Value<T>::promise)(team.pe())});
}

/// The same in memory of the caller's.
template <Kind kind, class T, class Op>
Future<> start_tree_in_place(const TeamRef& team, std::span<T> values, Op op, std::size_t root, bool ordered) {
  Collectives& all = Collectives::of(team.pe());
  all.make_room();
  Call call =
      all.next_call(team, OperationOf<kind, T, Op>::operation.number(ordered), values.size(), per_segment<T>, root);
  if constexpr (kind == Kind::reduce) {
    if (gives_at_once<T, Op>(all, call, ordered, std::as_bytes(values))) {
      Promise<> promise(team.pe());
      Future<> future = promise.future();
      promise.set();
      return future;
    }
  }
  Borrowed<T> place{values, Promise<>(team.pe())};
  Future<> future = place.promise.future();
  all.start(all.make(std::move(call), kind, make_values<std::span<T>>(op, std::move(place)), ordered, element_bytes<T>,
                     reduces_by_type<T, Op>));
  return future;
}

}  // namespace collective

// Collective calls of a team: every member calls the same ones, with elements of the same type, as many, an operator of
// the same type, and the same root, in the same order; a member that differs ends the run where messages of the two
// meet, with a text that names both calls. Any number may be under way; they may be called in handlers. They never wait
// for other members: the main program waits where there is no room for more messages, running handlers. Who gets() a
// future, or co_awaits it, waits for it alone. What is given has been copied when the call returns.
//
// Given a std::span, elements are combined one by one, and the future has a std::vector; anything else is one value.
// Elements of spans are trivially copyable and carry no address; a value may be of any type that may travel in a
// message.
//
// The operator is a pure function of two elements, associative and, but for `ordered` and scans, commutative. It runs
// in handlers; what it throws ends the run.
//
// Contributions are messages of the epoch in which the call, or for those that are passed on what arrived last, was
// made: where all members call in one epoch, that, or else quiesce(), waits until the futures of all that every member
// has called are ready.

/// op(op(v0, v1), ...) over all members' elements, on the root: Future<std::vector<T>> for a span, empty on others,
/// Future<std::optional<T>> for a value, without one on others. There it is ready when what the PE and those behind it
/// have given is on its way.
template <class Given, class Op>
auto reduce(TeamRef team, Given&& given, Op op, std::size_t root, ReduceOptions options = {}) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    if constexpr (collective::require_operator<Op, collective::Element<Given>>()) {
      return collective::start_tree<collective::Kind::reduce, collective::RootValue>(team, given, op, root,
                                                                                     options.ordered);
    }
  }
}

/// The same on every member: Future<std::vector<T>> for a span, Future<T> for a value.
template <class Given, class Op>
auto allreduce_async(TeamRef team, Given&& given, Op op, ReduceOptions options = {}) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    if constexpr (collective::require_operator<Op, collective::Element<Given>>()) {
      return collective::start_tree<collective::Kind::allreduce, collective::OwnedValue>(team, given, op, 0,
                                                                                         options.ordered);
    }
  }
}

/// The same without a copy: the elements are borrowed until the future is ready, and become the result; on other PEs
/// than the root of a reduction they become what nobody specifies.
template <class T, std::size_t extent, class Op>
Future<> reduce_in_place(TeamRef team, std::span<T, extent> values, Op op, std::size_t root,
                         ReduceOptions options = {}) {
  static_assert(collective::require_elements<std::span<T>>() && collective::require_operator<Op, T>());
  return collective::start_tree_in_place<collective::Kind::reduce, T>(team, values, op, root, options.ordered);
}
template <class T, std::size_t extent, class Op>
Future<> allreduce_in_place(TeamRef team, std::span<T, extent> values, Op op, ReduceOptions options = {}) {
  static_assert(collective::require_elements<std::span<T>>() && collective::require_operator<Op, T>());
  return collective::start_tree_in_place<collective::Kind::allreduce, T>(team, values, op, 0, options.ordered);
}

/// The root's value, or elements, on every member: Future<T>, or Future<std::vector<T>>. What others give is not looked
/// at: an empty span does.
template <class Given>
auto broadcast(TeamRef team, Given&& given, std::size_t root) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    return collective::start_tree<collective::Kind::broadcast, collective::OwnedValue>(
        team, given, collective::NoOperator(), root, false);
  }
}
/// The same without a copy, of as many elements on every member: borrowed until the future is ready.
template <class T, std::size_t extent>
Future<> broadcast_in_place(TeamRef team, std::span<T, extent> values, std::size_t root) {
  static_assert(collective::require_elements<std::span<T>>());
  return collective::start_tree_in_place<collective::Kind::broadcast, T>(team, values, collective::NoOperator(), root,
                                                                         false);
}

/// Ready when every member has called it.
Future<> barrier_async(TeamRef team);

}  // namespace headway
