// SPDX-License-Identifier: BSD-3-Clause
/// The base class of elements: name, PE, and requests to the collection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/future.hpp>
#include <headway/am/pe.hpp>
#include <headway/object/element_state.hpp>
#include <headway/object/index.hpp>
#include <type_traits>

namespace headway {

template <class T>
class Collection;
template <class T>
class Proxy;
template <class T>
class Section;

namespace object {

[[noreturn]] void throw_not_made_by_collection();
[[noreturn]] void throw_no_collection(std::uint32_t number);
[[noreturn]] void throw_no_such_pe(std::size_t pe, std::size_t pes);

/// Whether a call has `count` arguments, the first of which converts to First.
template <class First, std::size_t count, class... Given>
inline constexpr bool begins_with = false;
template <class First, std::size_t count, class Given, class... Rest>
inline constexpr bool begins_with<First, count, Given, Rest...> =
    1 + sizeof...(Rest) == count&& std::is_convertible_v<const Given&, const First&>;

/// The collection and the address of the T that is being constructed. The constructor of Element takes them.
template <class T, class Naming>
struct Construction {
  CollectionBase* collection;
  typename NamingOf<Naming>::Address address;
  static inline constinit thread_local const Construction* current = nullptr;
};

}  // namespace object

/// The base class of a class T of elements. `Naming` is the kind of their names: Index<d> (dense array), Sparse<Key>,
/// PerPe (group), PerProcess, Single.
///
///     class Cell : public headway::Element<Cell, headway::Index<2>> { ... };
///
/// Any method may be an entry method. It runs on the element's PE, one method at a time. It may send and must not wait.
/// An exception that it throws ends the run. A method that returns a Task is a coroutine and takes its arguments by
/// value.
///
/// Elements that migrate or are checkpointed need a constructor without arguments and a member `template <class A> void
/// serialize(A& archive)`, as types of messages. The runtime calls a member `void arrived()`, if the class has one,
/// after each move.
template <class T, class Naming = Single>
class Element : private object::ElementBase {
 public:
  using ElementNaming = Naming;
  using Name = typename object::NamingOf<Naming>::Name;
  using Address = typename object::NamingOf<Naming>::Address;

  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  /// The element's name: an Index<d>, a key, or a number.
  Name index() const;
  Pe& pe() const;
  /// This PE's part of the element's collection.
  Collection<T>& all() const { return static_cast<Collection<T>&>(*state_.collection); }
  Proxy<T> proxy() const;

  /// Moves the element to `pe`. The move happens when the current method has returned and no coroutine of the element
  /// lives. Messages find the element there. The last call counts. UsageError if `pe` is out of range.
  void migrate_to(PeId pe);
  /// Destroys the element, at the time at which migrate_to() would move it. Only for sparse arrays.
  void erase();

  /// `co_await when<&Cell::ghost>(step, n)` in a coroutine of the element: lets `ghost` run for messages that have
  /// `step` as first argument, and continues after n of them. Messages of later steps wait. A message of an earlier
  /// step is a UsageError. The class lists the method: `static constexpr auto awaited =
  /// headway::awaited<&Cell::ghost>;`.
  template <auto method>
  Future<> when(std::int64_t step, std::uint64_t count);

  /// Gives a value to a reduction over all elements of the collection. The n-th calls of all elements belong together
  /// and give values of the same type. When all elements have given their n-th value, `target` gets op(op(v0, v1),
  /// ...), in any order. See to(). An element of a sparse array may contribute after the first done_inserting() that
  /// follows its insertion; its first value joins the next values of the other elements. UsageError before.
  template <class Value, class Op, class Target>
  void contribute(const Value& value, Op op, Target target);
  /// The same over the members of a section of the collection.
  template <class Value, class Op, class Target>
  void contribute(const Section<T>& section, const Value& value, Op op, Target target);
  /// One line of compile error for other arguments.
  template <class... Given>
  requires(sizeof...(Given) != 3 && !object::begins_with<Section<T>, 4, Given...>) void contribute(const Given&...) {
    static_assert(
        sizeof...(Given) == 3,
        "headway: contribute() takes a value, an operator and a target, and before these a section of the collection "
        "where it is over one");
  }

 protected:
  Element();
  ~Element() = default;

 private:
  friend class Collection<T>;

  Address address_{};
};

}  // namespace headway
