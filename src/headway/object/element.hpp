/// What every element has: its name, its place, and the way to the rest of its collection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/am/future.hpp>
#include <headway/am/pe.hpp>
#include <headway/am/scope.hpp>
#include <headway/object/index.hpp>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

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

/// Whether a call is given so many arguments, and a First before the others.
template <class First, std::size_t count, class... Given>
inline constexpr bool begins_with = false;
template <class First, std::size_t count, class Given, class... Rest>
inline constexpr bool begins_with<First, count, Given, Rest...> =
    1 + sizeof...(Rest) == count && std::is_convertible_v<const Given&, const First&>;

/// A message that waits in an element until its step is the current one.
struct Kept {
  std::uint32_t method;  // of those that may wait, in their order
  am::ScopeId scope;     // in which it was sent
  std::int64_t step;
  std::uint64_t bytes;  // of its arguments
  std::vector<std::uint64_t> words;  // these, as they lie in a message

  template <class Archive>
  void serialize(Archive& archive) {
    archive(method, scope, step, bytes, words);
  }
};

/// Of one trigger, or of a coroutine that waits.
struct Gate {
  std::int64_t step = 0;        // the current one
  std::uint64_t wanted = 0;     // so many messages of it
  std::uint64_t arrived = 0;    // of these
  bool open = false;            // wanted is known: messages of the step are let in
  std::vector<Kept> kept;
  std::optional<Promise<>> waiter;  // of a coroutine; such elements do not move

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, wanted, arrived, open, kept);
  }
};

/// What few elements have.
struct Rare {
  std::vector<Gate> gates;
  std::unordered_map<std::uint64_t, std::uint32_t> contributions;  // to reductions over sections, by section

  template <class Archive>
  void serialize(Archive& archive) {
    archive(gates, contributions);
  }
};

/// What an element wants, if not to move to a PE.
inline constexpr std::uint32_t stays = ~std::uint32_t(0), leaves = stays - 1;
/// In the place of a number of reductions: the element was inserted after the last done_inserting().
inline constexpr std::uint32_t not_counted = ~std::uint32_t(0);
/// In the place of a number, matches none: there are fewer elements.
inline constexpr std::uint32_t no_number = ~std::uint32_t(0);

/// The library's part of an element.
template <class T, class Naming>
struct State {
  using Address = typename NamingOf<Naming>::Address;

  Collection<T>* collection = nullptr;
  std::uint32_t number = no_number;  // of a dense one: its address, while it wants to stay
  Address address{};
  std::uint32_t wanted = stays;  // the PE to move to, or leaves: it is to be erased
  std::uint32_t place = 0;       // among the elements of its PE
  std::uint32_t coroutines = 0;  // of its methods, alive
  std::uint32_t broadcasts = 0;  // how many it has seen, all told
  std::uint32_t reductions = 0;  // how often it has contributed
  double load_s = 0;             // in its methods, since the last balance
  std::unique_ptr<Rare> rare;
};

/// Where the element that is being made now belongs; taken by its base's constructor.
template <class T, class Naming>
struct Making {
  Collection<T>* collection;
  typename NamingOf<Naming>::Address address;
  static inline constinit thread_local const Making* now = nullptr;
};

}  // namespace object

/// The base of a class T whose objects are elements of a collection; `Naming` says how they are named: Index<d> (a dense
/// array), Sparse<Key>, PerPe (a group), PerProcess, Single.
///
///     class Cell : public headway::Element<Cell, headway::Index<2>> { ... };
///
/// Any method may be an entry method. It runs on the element's PE, one at a time; it may send, must not wait, and what it
/// throws ends the run. One that returns a Task is a coroutine: it takes its arguments by value.
///
/// Elements that migrate, or that are checkpointed, can be made without arguments and have a member `template <class A> void
/// serialize(A& archive)`, as messages' types. A member `void arrived()`, if there is one, is called after each move.
template <class T, class Naming = Single>
class Element {
 public:
  using ElementNaming = Naming;
  using Name = typename object::NamingOf<Naming>::Name;
  using Address = typename object::NamingOf<Naming>::Address;

  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;

  /// Its name: an Index<d>, a key, or a number.
  Name index() const;
  Pe& pe() const;
  /// The collection that it belongs to, as this PE has it.
  Collection<T>& all() const { return *state_.collection; }
  Proxy<T> proxy() const;

  /// Moves it when the method has returned that runs now, and none of its coroutines lives: messages find it. The last
  /// call counts. UsageError for a PE out of range.
  void migrate_to(PeId pe);
  /// Destroys it, as soon. Only of sparse collections.
  void erase();

  /// `co_await when<&Cell::ghost>(step, n)`, in a coroutine of the element: lets `ghost` run for the messages whose first
  /// argument is `step`, and goes on when it has for n of them. Messages of later steps wait; one of an earlier step is a
  /// UsageError. The class lists the method: `static constexpr auto awaited = headway::awaited<&Cell::ghost>;`.
  template <auto method>
  Future<> when(std::int64_t step, std::uint64_t count);

  /// Gives a value to a reduction over all elements of the collection: each gives as many, in the order of its own calls,
  /// and of the same types. When all have given their n-th, `target` gets op(op(v0, v1), ...), in any order. See to().
  /// Elements of a sparse array give from the first done_inserting() after their insertion on, beside the next values of the
  /// others. UsageError before.
  template <class Value, class Op, class Target>
  void contribute(const Value& value, Op op, Target target);
  /// The same, over the members of a section of the collection.
  template <class Value, class Op, class Target>
  void contribute(const Section<T>& section, const Value& value, Op op, Target target);
  /// One line of compile error for all else.
  template <class... Given>
    requires(sizeof...(Given) != 3 && !object::begins_with<Section<T>, 4, Given...>)
  void contribute(const Given&...) {
    static_assert(sizeof...(Given) == 3,
                  "headway: contribute() takes a value, an operator and a target, and before these a section of the collection "
                  "where it is over one");
  }

 protected:
  Element();
  ~Element() = default;

 private:
  friend class Collection<T>;
  struct Absent {};
  explicit Element(Absent) {}

  object::State<T, Naming> state_;
};

}  // namespace headway
