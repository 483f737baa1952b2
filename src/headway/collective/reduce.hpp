// SPDX-License-Identifier: BSD-3-Clause
/// Reductions, broadcasts and barriers. The plain name blocks and returns the value; the name with `_async` returns a
/// future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/future.hpp>
#include <headway/base/sendable.hpp>
#include <headway/collective/allreduce.hpp>
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

namespace collective {

template <class T>
inline constexpr bool is_span = false;
template <class T, std::size_t extent>
inline constexpr bool is_span<std::span<T, extent>> = true;

/// The type of one element: of a span its element, else the value itself.
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

template <class T>
constexpr bool require_span_of() {
  constexpr bool travels = FixedSize<T> && !std::is_same_v<T, bool>;
  static_assert(
      travels,
      "headway: the elements of a span in a collective are trivially copyable, carry no address, and are not bool");
  return travels;
}

template <class Given>
constexpr bool require_elements() {
  using T = Element<Given>;
  if constexpr (is_span<std::remove_cvref_t<Given>>) {
    return require_span_of<T>();
  } else {
    base::require_sendable<T>();
    return Sendable<T>;
  }
}

/// The operator runs on any PE when contributions arrive, after the call has returned. So it has no captures.
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

template <class Given, class Op>
constexpr bool require_reduction() {
  if constexpr (require_elements<Given>())
    return require_operator<Op, Element<Given>>();
  else
    return false;
}

/// The blocking form of a collective: start() returns the future. Throws UsageError inside a handler, before the call
/// starts.
template <class Start>
auto wait_for(const TeamRef& team, Start start) {
  team.pe().engine().require_may_block(report::Phase::collective);
  return start().get();
}

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

/// Bytes of an element that travels as it lies in memory; 0 for a serialized one.
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

/// Contributes to a reduction without a descriptor where this PE has nothing else to do for it. Returns whether it did.
template <class T, class Op>
bool gives_at_once(Collectives& all, const Call& call, bool ordered, Bytes bytes) {
  if (all.give_in_cell(call, sizeof(T), reduce_of<T, Op>(), bytes)) return true;
  const std::uint32_t to = all.only_gives_to(call, ordered, sizeof(T), reduces_by_type<T, Op>);
  if (to == nobody) return false;
  all.give(call, to, bytes);
  return true;
}

/// Starts a call along a tree or in a cell. `Value` is the place of a single value.
template <Kind kind, template <class> class Value, class Given, class Op>
auto start_tree(const TeamRef& team, const Given& given, Op op, std::size_t root, bool ordered) {
  using T = Element<Given>;
  Collectives& all = Collectives::of(team.pe());
  all.make_room();
  const bool same_count = kind != Kind::broadcast || !is_span<Given> || team.rank() == root;
  Call call = all.next_call(team, OperationOf<kind, T, Op>::operation.number(ordered), count_of(given), per_segment<T>,
                            root, same_count);
  if constexpr (kind == Kind::reduce && FixedSize<T>) {
    if (gives_at_once<T, Op>(all, call, ordered, bytes_of(given))) {  // before the promise: the root waits for it
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

/// The same in memory of the caller.
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

// Rules for all collectives of a team; a Pe& stands for the team of all PEs.
//
// Names. The plain name blocks and returns the value: it runs handlers meanwhile, and is a UsageError inside a handler.
// The same name with `_async` returns a future at once. Members may use different forms of one call, but for
// allreduce(pe, short value) and barrier(pe), which all PEs call in the blocking form.
//
// Matching. Every member calls the same collectives in the same order, with the same root, as many elements of the same
// type, and an operator of the same type. A member that differs ends the run where its message meets another; the text
// names both calls. Any number of calls may be in flight.
//
// Values. Elements of a std::span are trivially copyable, carry no address, and are combined one by one; the result is
// a std::vector. Any other argument is one value of any sendable type. The call copies its argument, but for calls in
// place.
//
// Operators. A pure function of two elements. It is associative, and commutative unless the call is `ordered` or a
// scan. It runs in handlers; an exception that it throws ends the run.
//
// Waiting. An asynchronous call never waits for other members. The main program waits in it until memory for messages
// is free, and runs handlers meanwhile. get() or co_await of a future waits for that call alone.
//
// Quiescence. Contributions are messages of the epoch of the call. If all members call in one epoch, its end, or else
// quiesce(), waits until all futures are ready.

/// op(op(v0, v1), ...) over the elements of all members, on the root: Future<std::vector<T>> for a span, empty on other
/// members; Future<std::optional<T>> for a value, nullopt on other members. Their future is ready when their
/// contribution, and those of the members below them in the tree, have been sent.
template <class Given, class Op>
auto reduce_async(TeamRef team, Given&& given, Op op, std::size_t root, ReduceOptions options = {}) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::start_tree<collective::Kind::reduce, collective::RootValue>(team, given, op, root,
                                                                                   options.ordered);
  }
}
template <class Given, class Op>
auto reduce(TeamRef team, Given&& given, Op op, std::size_t root, ReduceOptions options = {}) {
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::wait_for(team, [&] { return reduce_async(team, given, op, root, options); });
  }
}

/// The same on every member: Future<std::vector<T>> for a span, Future<T> for a value.
template <class Given, class Op>
auto allreduce_async(TeamRef team, Given&& given, Op op, ReduceOptions options = {}) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::start_tree<collective::Kind::allreduce, collective::OwnedValue>(team, given, op, 0,
                                                                                       options.ordered);
  }
}
/// For teams, spans, serialized and long values; allreduce.hpp has the overload for a short value of all PEs.
template <class Given, class Op>
auto allreduce(TeamRef team, Given&& given, Op op, ReduceOptions options = {}) {
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::wait_for(team, [&] { return allreduce_async(team, given, op, options); });
  }
}

/// Without a copy: the runtime borrows the elements until the future is ready, and writes the result there. On members
/// other than the root of a reduction the elements are then unspecified.
template <class T, std::size_t extent, class Op>
Future<> reduce_in_place_async(TeamRef team, std::span<T, extent> values, Op op, std::size_t root,
                               ReduceOptions options = {}) {
  static_assert(collective::require_reduction<std::span<T>, Op>());
  return collective::start_tree_in_place<collective::Kind::reduce, T>(team, values, op, root, options.ordered);
}
template <class T, std::size_t extent, class Op>
void reduce_in_place(TeamRef team, std::span<T, extent> values, Op op, std::size_t root, ReduceOptions options = {}) {
  collective::wait_for(team, [&] { return reduce_in_place_async(team, values, op, root, options); });
}
template <class T, std::size_t extent, class Op>
Future<> allreduce_in_place_async(TeamRef team, std::span<T, extent> values, Op op, ReduceOptions options = {}) {
  static_assert(collective::require_reduction<std::span<T>, Op>());
  return collective::start_tree_in_place<collective::Kind::allreduce, T>(team, values, op, 0, options.ordered);
}
template <class T, std::size_t extent, class Op>
void allreduce_in_place(TeamRef team, std::span<T, extent> values, Op op, ReduceOptions options = {}) {
  collective::wait_for(team, [&] { return allreduce_in_place_async(team, values, op, options); });
}

/// The root's value or elements, on every member: Future<T>, or Future<std::vector<T>>. The runtime ignores the
/// arguments of other members; an empty span is enough.
template <class Given>
auto broadcast_async(TeamRef team, Given&& given, std::size_t root) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    return collective::start_tree<collective::Kind::broadcast, collective::OwnedValue>(
        team, given, collective::NoOperator(), root, false);
  }
}
template <class Given>
auto broadcast(TeamRef team, Given&& given, std::size_t root) {
  if constexpr (collective::require_elements<Given>()) {
    return collective::wait_for(team, [&] { return broadcast_async(team, given, root); });
  }
}
/// Without a copy, of as many elements on every member: the runtime borrows them until the future is ready.
template <class T, std::size_t extent>
Future<> broadcast_in_place_async(TeamRef team, std::span<T, extent> values, std::size_t root) {
  static_assert(collective::require_elements<std::span<T>>());
  return collective::start_tree_in_place<collective::Kind::broadcast, T>(team, values, collective::NoOperator(), root,
                                                                         false);
}
template <class T, std::size_t extent>
void broadcast_in_place(TeamRef team, std::span<T, extent> values, std::size_t root) {
  collective::wait_for(team, [&] { return broadcast_in_place_async(team, values, root); });
}

/// Ready when every member has called it. **A barrier drains no messages**: messages sent before it may arrive after
/// it. `quiesce()` waits for messages.
Future<> barrier_async(TeamRef team);
/// Returns when every member has called it. **A barrier drains no messages**; `quiesce()` does. allreduce.hpp has the
/// overload for all PEs.
void barrier(TeamRef team);

}  // namespace headway
