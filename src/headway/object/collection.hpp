// SPDX-License-Identifier: BSD-3-Clause
/// Collections of elements: construction, sending to elements, and delivery to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/future.hpp>
#include <headway/am/task.hpp>
#include <headway/call/calls.hpp>
#include <headway/call/rpc.hpp>
#include <headway/object/collection_base.hpp>
#include <headway/object/element.hpp>
#include <headway/object/entry.hpp>
#include <headway/object/index.hpp>
#include <headway/object/locations.hpp>
#include <headway/object/messages.hpp>
#include <headway/object/options.hpp>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headway {

template <class T>
class ElementRef;
template <class T>
class Section;
namespace object {
template <class T>
class Sections;
}

/// One PE's part of a collection of elements of a class T : Element<T, Naming>, which live on all PEs. Made
/// collectively, in the same order and with the same options on every PE. The constructor of a dense collection makes
/// all elements. Programs write Array<T>, SparseArray<T>, Group<T>, ProcessGroup<T>, Singleton<T>.
///
///     headway::Array<Cell> cells(pe, {rows, columns}, {.placement = headway::cyclic()}, parameters);
///     cells[{i, j}].send<&Cell::recv_forces>(forces, step);
///     const double e = co_await cells[{i, j}].rpc<&Cell::energy>();
///     cells.broadcast<&Cell::start>(steps);
///     pe.quiesce();
///
/// The runtime counts these messages as all others: quiesce() and epochs wait for them, also while their element moves.
/// Each message is handled exactly once. A message for an element that does not exist waits for it. Call quiesce()
/// before the destructor, even if every call has been answered: PEs tell one another where elements have moved.
template <class T>
class Collection : public object::CollectionBase {
 public:
  using Naming = typename T::ElementNaming;
  using Traits = object::NamingOf<Naming>;
  using Name = typename Traits::Name;
  using Address = typename Traits::Address;

  /// A dense array. Each element is made from `args`, on its home. SettingError for extents that are negative or too
  /// large.
  template <class... Args>
  Collection(Pe& pe, const Naming& extents, const CollectionOptions& options = {},
             const Args&... args) requires(Traits::dense && !object::is_named_by_number<Naming>)
      : Collection(Made(), pe, options, object::FormOf<Naming>(extents.at)) {
    make_all(options, args...);
  }
  /// A group or a singleton; or a sparse array, which is empty at first.
  template <class... Args>
  explicit Collection(Pe& pe, const CollectionOptions& options = {},
                      const Args&... args) requires(Traits::sparse || object::is_named_by_number<Naming>)
      : Collection(Made(), pe, options, object::number_form<Naming>(pe)) {
    if constexpr (Traits::sparse)
      static_assert(sizeof...(Args) == 0,
                    "headway: a sparse array is constructed without arguments for elements: insert() takes them");
    else
      make_all(options, args...);
  }
  ~Collection() override {
    for (object::ElementBase* const element : elements_) destroy(element_of(*element));
  }

  /// An element, on any PE. UsageError for an index outside of a dense array.
  ElementRef<T> operator[](const Name& name);
  /// This PE's element of a group.
  T& local() requires std::is_same_v<Naming, PerPe> { return element_of(*elements_.front()); }
  /// To the element of a singleton.
  template <auto method, class... Given>
  void send(Given&&... given) requires std::is_same_v<Naming, Single> {
    send_to<method>(0, std::forward<Given>(given)...);
  }
  template <auto method, class... Given>
  auto rpc(Given&&... given) requires std::is_same_v<Naming, Single> {
    return rpc_to<method>(0, std::forward<Given>(given)...);
  }

  /// Runs a method of every element, once each, also while elements move. All elements run the broadcasts of their
  /// collection in the same order. An element that the method inserts does not run it: see ElementRef::insert().
  template <auto method, class... Given>
  void broadcast(Given&&... given) {
    if constexpr (object::require_entry_method<T, method, Given...>()) {
      object::with_wires<method>(
          [&](const auto&... wires) { calls_.rpc_ff(0, object::StartBroadcast<T, method>(), me_, wires...); },
          given...);
    }
  }

  /// Runs a method of every element as broadcast() does, and combines all results with `op`, in any order. UsageError
  /// for a collection without elements.
  template <auto method, class Op, class... Given>
  auto reduce(Op op, Given&&... given);

  /// A section: some elements, for broadcasts and reductions. Sends a message to each PE that has a member. Until
  /// release() a member takes 4 bytes, or the size of its key, on its PE. UsageError for an index outside.
  Section<T> section(const std::vector<Name>& members);

  /// Of a sparse array, collective, from the main program: quiesces and counts the elements. From then on reductions
  /// know how many contributions to expect, and the elements that were inserted before contribute. Call it after
  /// inserting and erasing, before the next reduction.
  void done_inserting() requires(Traits::sparse) {
    pe().quiesce();
    count_elements();
  }

  /// Calls f(T&) for each element on this PE, also for those that arrive meanwhile. Elements that ask to move or to be
  /// erased stay until the last call has returned. From the main program.
  template <class F>
  void for_each_local(F f) {
    const MovePause pause(*this);
    for (std::size_t i = 0; i < elements_.size(); ++i) f(element_of(*elements_[i]));
  }
  /// nullptr if the element is not on this PE.
  T* find_local(const Name& name) {
    const object::Location* const location = locations_.find(address_of(name));
    return location == nullptr || location->element == nullptr ? nullptr : &element_of(*location->element);
  }
  /// The extents of a dense array.
  Name extents() const requires(Traits::dense) { return locations_.extents(); }

  Proxy<T> proxy() const;
  /// The number of this collection, the same on every PE.
  std::uint32_t number() const { return me_.number(); }

  /// Posts open buffers. Never waits.
  void flush() {
    calls_.flush();
    aggregators_.for_each([](auto& aggregator) { aggregator.flush(); });
  }
  /// Of the buffers of the method's entry; of the collection's own buffers for a method without an entry.
  template <auto method>
  AggregatorStatistics statistics() const {
    return aggregator_of<method>().statistics();
  }
  /// The options that these buffers use.
  template <auto method>
  const AggregatorOptions& options() const {
    return aggregator_of<method>().options();
  }

  // --- for elements and proxies

  Address address_of(const Name& name) const { return locations_.address_of(name); }
  Name name_of(const Address& address) const { return locations_.name_of(address); }

  /// The path of each message: looks up the element's PE, and writes the message into the buffer for that PE.
  template <auto method, class... Given>
  inline __attribute__((always_inline)) void send_to(const Address& address, Given&&... given) {
    if constexpr (object::require_entry_method<T, method, Given...>()) {
      if constexpr (!is_typed<method>)
        call<method>(locations_.where(address), address, given...);
      else
        send_typed<method>(object::WiresOf<method>(), address, given...);
    }
  }

  template <auto method, class... Given>
  auto rpc_to(const Address& address, Given&&... given) {
    am::require_named_arguments<Given...>();
    if constexpr (object::require_entry_method<T, method, Given...>()) {
      using R = object::AnswerTo<method>;
      static_assert(object::has_no_steps<T, method>,
                    "headway: a method with steps gives no answer: use send() or broadcast()");
      const PeId there = locations_.where(address);
      object::Request<R> request(pe());
      object::with_wires<method>(
          [&](const auto&... wires) {
            calls_.rpc_ff(there, object::RunForAnswer<T, method>(), me_, address, std::uint32_t(0), request.caller,
                          wires...);
          },
          given...);
      return request.future();
    }
  }

  /// Makes an element on its home, from this PE. UsageError, on the home, if an element has that key already.
  template <class... Args>
  void insert_at(const Address& key, const Args&... args) requires(Traits::sparse) {
    constexpr bool made = is_made_from<std::remove_reference_t<typename call::ArrivesAs<Args>::Type>...>;
    static_assert(made, "headway: the class of the elements has no constructor for the arguments of insert()");
    if constexpr (made) calls_.rpc_ff(locations_.home(key), object::Insert<T>(), me_, key, transit_.insert(), args...);
  }
  void erase_at(const Address& key) requires(Traits::sparse) {
    calls_.rpc_ff(locations_.where(key), object::Erase<T>(), me_, key, std::uint32_t(0));
  }

  template <auto method>
  Future<> when(T& element, std::int64_t step, std::uint64_t count);
  template <class Value, class Op, class Target>
  void contribute(T& element, const Value& value, Op op, Target target) {
    reductions_.give({object::of_elements, next_reduction(base_of(element))}, 1, size(), value, op, target);
  }

  template <class Value, class Op, class Target>
  void contribute_to(T& element, const Section<T>& section, const Value& value, Op op, Target target);
  object::Sections<T>& sections() { return *sections_; }

  // --- handlers of messages

  template <auto method, class... Wires>
  inline __attribute__((always_inline)) void deliver(PeId source, const Address& address, std::uint32_t version,
                                                     const Wires&... wires) {
    constexpr bool plain = object::counter_of<T, method> == object::no_counter && !object::is_coroutine<method>;
    if constexpr (plain && Traits::dense) {
      if (object::ElementBase& element = locations_.cached(address); state_of(element).number == address) [[likely]] {
        (element_of(element).*method)(wires...);
        return;
      }
    }
    deliver_uncached<method>(source, address, version, wires...);
  }
  template <auto method, class... Wires>
  void answer(PeId source, const Address& address, std::uint32_t version, const object::Caller& caller,
              const Wires&... wires) {
    T* const element = find_here(address);
    if (element == nullptr)
      return forward_or_keep(source, address, version, object::RunForAnswer<T, method>(), caller, wires...);
    const Timer timer(*this, state(*element));
    call::call_and_answer(pe(), caller.pe, caller.number, Bound<method>{this, element}, wires...);
    timer.stop();
  }
  void learn(const Address& address, std::uint32_t pe, std::uint32_t version) {
    locations_.learn(address, pe, version);
  }
  void arrive(PeId source, const Address& address, const object::MoveHeader& header,
              std::span<const std::byte> content);
  template <class... Args>
  void insert(const Address& key, const object::InsertHeader& header, const Args&... args);
  void erase_here(PeId source, const Address& key, std::uint32_t version) {
    T* const element = find_here(key);
    if (element == nullptr) return forward_or_keep(source, key, version, object::Erase<T>());
    move_now(*element, object::erase_target);
  }
  template <auto method, class... Wires>
  void start_broadcast(const Wires&... wires) {
    take_broadcast<method>(broadcasts_started_++, wires...);
  }
  template <auto method, class... Wires>
  void take_broadcast(std::uint32_t number, const Wires&... wires);
  template <auto method, class Op, class... Wires>
  void give_to(PeId source, const Address& address, std::uint32_t version, const object::ReductionId& id,
               std::uint64_t total, const object::Caller& caller, const Wires&... wires);
  template <auto method, class Op, class... Wires>
  void start_reduce(const object::Caller& caller, const Wires&... wires) {
    take_reduce<method, Op>(broadcasts_started_++, caller, wires...);
  }
  template <auto method, class Op, class... Wires>
  void take_reduce(std::uint32_t number, const object::Caller& caller, const Wires&... wires);

  // --- for balance() and checkpoints

  static object::ElementState& state(T& element) { return state_of(base_of(element)); }
  static const Address& address_of_element(const T& element) { return static_cast<const Base&>(element).address_; }
  /// Moves (or with erase_target erases) an element that runs no method, unless it must stay: see apply_move().
  void move_now(T& element, std::uint32_t target) {
    object::ElementState& of = state(element);
    of.target = target;
    of.number = object::no_number;
    apply_move(base_of(element));
  }
  /// nullptr if the element is not on this PE, or leaves it now because it has asked for that.
  T* find_here(const Address& address) {
    object::Location* const location = locations_.find(address);
    if (location == nullptr || location->element == nullptr) return nullptr;
    if (state_of(*location->element).target != object::no_target && !apply_move(*location->element)) return nullptr;
    return &element_of(*location->element);
  }
  PeId home_of(const Address& address) const { return locations_.home(address); }
  /// The last known PE of an element.
  PeId where(const Address& address) { return locations_.where(address); }
  /// The bytes of an element, with the runtime's part of its state.
  static std::vector<std::byte> pack(T& element);
  /// Makes an element from its bytes. FormatError, and no element, if they are not those of an element.
  void restore(const Address& address, std::span<const std::byte> content);
  const DistObject<Collection*>& me() const { return me_; }

 private:
  using Base = Element<T, Naming>;
  using Aggregators = object::AggregatorsOf<Address, Traits::moves || Traits::sparse || !std::is_same_v<Naming, PerPe>,
                                            object::EntriesOf<T>>;
  template <auto method>
  static constexpr bool is_typed = [] {
    if constexpr (object::entry_index<T, method> == object::no_entry)
      return false;
    else
      return !std::is_same_v<
          std::remove_cvref_t<decltype(std::declval<Aggregators&>().template get<object::entry_index<T, method>>())>,
          CallAggregator>;
  }();
  struct Made {};
  template <auto method>
  struct Bound;

  /// Elements can be in transit during a broadcast.
  static constexpr bool keeps_history();
  Collection(Made, Pe& pe, const CollectionOptions& options, const object::FormOf<Naming>& form);

  static T& element_of(object::ElementBase& element) { return static_cast<T&>(static_cast<Base&>(element)); }
  static object::ElementBase& base_of(T& element) { return static_cast<Base&>(element); }

  // --- elements: see collection_elements.hpp

  template <class... Args>
  void make_all(const CollectionOptions& options, const Args&... args);
  template <class... Args>
  static constexpr bool is_made_from = requires(const Args&... args) {
    new T(args...);
  };
  template <class... Args>
  T& make(const Address& address, const Args&... args);
  std::unique_ptr<T> make_from(const Address& address, std::span<const std::byte> content);
  void enter(object::Location& location, T& element);
  void leave(object::Location& location, T& element);
  static void destroy(T& element) { delete &element; }
  bool apply_move(object::ElementBase& element) override;
  void apply_move_later(const object::ElementBase& element) override {
    am::Engine& engine = pe().engine();
    engine.run_later(engine.scope(),
                     [this, address = static_cast<const Base&>(element).address_] { find_here(address); });
  }
  void depart(T& element, std::size_t pe);

  // --- running methods

  template <auto method, class... Wires>
  __attribute__((noinline)) void deliver_uncached(PeId source, const Address& address, std::uint32_t version,
                                                  const Wires&... wires) {
    if (T* const element = find_here(address))
      run<method>(*element, wires...);
    else
      forward_or_keep(source, address, version, object::Forward<T, method>(), wires...);
  }
  template <auto method, class... Wires>
  void run(T& element, const Wires&... wires) {
    if constexpr (object::counter_of<T, method> != object::no_counter)
      run_in_step<method>(element, wires...);
    else
      run_now<method>(element, wires...);
  }
  template <auto method, class... Wires>
  void run_now(T& element, const Wires&... wires) {
    const Timer timer(*this, state(element));
    if constexpr (object::is_coroutine<method>) {
      if constexpr (aggregate::require_kept_arguments<decltype(method)>()) {
        spawn(pe(), follow<object::AnswerTo<method>>(this, &base_of(element), (element.*method)(wires...)));
      }
    } else {
      (element.*method)(wires...);
    }
    timer.stop();
  }

  // --- messages for elements that are not on this PE

  /// Forwards a message if its element has left, or keeps it until the element arrives or is inserted. `again` handles
  /// the message, as a function of address, version and `wires`.
  template <class Again, class... Wires>
  __attribute__((noinline)) void forward_or_keep(PeId source, const Address& address, std::uint32_t version,
                                                 Again again, const Wires&... wires) {
    std::uint32_t known = 0;
    if (const PeId pe = next_pe(address, version, known); pe != this->pe().id()) {
      calls_.rpc_ff(pe, again, me_, address, known, wires...);
      if (source != this->pe().id()) tell(source, address, pe, known);
      return;
    }
    std::tuple<object::OwnedWire<Wires>...> owned(object::OwnedWire<Wires>(object::own(wires))...);
    waiting_[address].push_back(
        {calls_.set_aside(), [this, source, address, version, again, owned = std::move(owned)] {
           std::apply(
               [&](const auto&... mine) { again(pe(), source, this, address, version, object::lend<Wires>(mine)...); },
               owned);
         }});
  }
  /// The PE to which the message goes if its element is not here, and the version of the element there; or this PE, if
  /// the element will arrive here. `version` is that of the news by which the message was sent here.
  PeId next_pe(const Address& address, std::uint32_t version, std::uint32_t& known);
  void tell(PeId target, const Address& address, PeId pe, std::uint32_t version) {
    calls_.rpc_ff(target, object::Learn<T>(), me_, address, std::uint32_t(pe), version);
  }
  void deliver_waiting(const Address& address);

  // --- sending

  template <auto method>
  auto& aggregator_of() {
    if constexpr (object::entry_index<T, method> == object::no_entry)
      return calls_;
    else
      return aggregators_.template get<object::entry_index<T, method>>();
  }
  template <auto method>
  const auto& aggregator_of() const {
    return const_cast<Collection*>(this)->template aggregator_of<method>();
  }
  template <auto method, class... Given>
  void call(PeId pe, const Address& address, Given&... given) {
    object::with_wires<method>(
        [&](const auto&... wires) {
          aggregator_of<method>().rpc_ff(pe, object::Run<T, method>(), me_, address, wires...);
        },
        given...);
  }
  /// A message for an element at its known home costs only arithmetic. Other cases go to a function of their own as the
  /// last step, so that the arguments stay in registers.
  template <auto method, class... Wires, class... Given>
  inline __attribute__((always_inline)) void send_typed(object::TypeList<Wires...>, const Address& address,
                                                        Given&... given) {
    auto& aggregator = aggregators_.template get<object::entry_index<T, method>>();
    if constexpr (!Aggregators::addressed)
      aggregator.send(address, object::as_wire<Wires>(given)...);
    else if constexpr (!Traits::dense || (aggregate::is_send_buffer<std::remove_cv_t<Given>> || ...))
      aggregator.send(locations_.where(address), address, object::as_wire<Wires>(given)...);
    else if (locations_.is_at_home(address)) [[likely]]
      aggregator.send(locations_.home_by_arithmetic(address), address, object::as_wire<Wires>(given)...);
    else
      send_to_moved<method, Wires...>(address, object::as_wire<Wires>(given)...);
  }
  template <auto method, class... Wires>
  __attribute__((noinline)) void send_to_moved(Address address, aggregate::ByValueIfSmall<Wires>... wires) {
    aggregators_.template get<object::entry_index<T, method>>().send(locations_.where(address), address, wires...);
  }
  template <auto method, class... Wires>
  void listen(object::TypeList<Wires...>, auto& aggregator) {
    if constexpr (Aggregators::addressed) {
      aggregator.on([this](PeId source, const Address& address, object::Arriving<Wires>... wires) {
        deliver<method>(source, address, 0, wires...);
      });
    } else {
      aggregator.on(
          [this](object::Arriving<Wires>... wires) { run<method>(element_of(*elements_.front()), wires...); });
    }
  }
  std::size_t section_size_here(std::uint64_t section) const override;

  // --- steps: see collection_steps.hpp

  template <auto method, class... Wires>
  void run_in_step(T& element, const Wires&... wires);
  template <auto method, class Step, class... Wires>
  void delay(object::StepCounter& counter, Step step, const Wires&... wires);
  std::function<void()> delivery_of(const object::ElementBase& element, object::DelayedMessage message) override {
    return [this, address = static_cast<const Base&>(element).address_, message = std::move(message)] {
      deliver_delayed(address, message);
    };
  }
  void deliver_delayed(const Address& address, const object::DelayedMessage& message);
  template <std::size_t i>
  std::uint64_t expected_of(T& element, std::int64_t step);
  template <std::size_t i>
  void trigger(T& element, std::int64_t step);

  object::Locations<Naming> locations_;
  std::unordered_map<Address, std::vector<object::WaitingMessage>> waiting_;  // for elements that have not arrived
  Aggregators aggregators_;
  std::unique_ptr<object::Sections<T>> sections_;
  DistObject<Collection*> me_;  // last: messages arrive from here on
};

template <class T>
requires(object::NamingOf<typename T::ElementNaming>::dimensions > 0 &&
         !object::is_named_by_number<typename T::ElementNaming>) using Array = Collection<T>;
template <class T>
requires(object::NamingOf<typename T::ElementNaming>::sparse) using SparseArray = Collection<T>;
template <class T>
requires std::is_same_v<typename T::ElementNaming, PerPe>
using Group = Collection<T>;
template <class T>
requires std::is_same_v<typename T::ElementNaming, PerProcess>
using ProcessGroup = Collection<T>;
template <class T>
requires std::is_same_v<typename T::ElementNaming, Single>
using Singleton = Collection<T>;

}  // namespace headway

#include <headway/object/collection_broadcasts.hpp>
#include <headway/object/collection_elements.hpp>
#include <headway/object/collection_steps.hpp>
#include <headway/object/proxy.hpp>
#include <headway/object/section.hpp>
