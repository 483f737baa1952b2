/// Collections of elements: how messages find an element, and how elements move.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <headway/aggregate/aggregator.hpp>
#include <headway/call/calls.hpp>
#include <headway/call/rpc.hpp>
#include <headway/am/engine.hpp>
#include <headway/am/future.hpp>
#include <headway/am/task.hpp>
#include <headway/base/error.hpp>
#include <headway/base/serialize.hpp>
#include <headway/collective/allreduce.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/object/directory.hpp>
#include <headway/object/element.hpp>
#include <headway/object/entry.hpp>
#include <headway/object/index.hpp>
#include <headway/object/load_clock.hpp>
#include <headway/object/messages.hpp>
#include <headway/object/options.hpp>
#include <headway/object/reduction.hpp>
#include <headway/object/transit.hpp>
#include <map>
#include <memory>
#include <span>
#include <string>
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

/// Elements of a class T : Element<T, Naming>, spread over all PEs, as one PE has them. Made collectively, in the same
/// order on every PE, with the same options; all elements of a dense one are there at once. Programs write Array<T>,
/// SparseArray<T>, Group<T>, ProcessGroup<T>, Singleton<T>.
///
///     headway::Array<Cell> cells(pe, {rows, columns}, {.placement = headway::cyclic()}, parameters);
///     cells[{i, j}].send<&Cell::recv_forces>(forces, step);
///     const double e = co_await cells[{i, j}].rpc<&Cell::energy>();
///     cells.broadcast<&Cell::start>(steps);
///     pe.quiesce();
///
/// Messages are counted as all are: quiesce() and epochs wait for them, wherever the element goes meanwhile. Each is
/// handled exactly once. A message for an element that does not exist waits for it. quiesce() before it is destroyed, also
/// where every call has been answered: PEs tell one another where elements have gone.
template <class T>
class Collection {
 public:
  using Naming = typename T::ElementNaming;
  using Traits = object::NamingOf<Naming>;
  using Name = typename Traits::Name;
  using Address = typename Traits::Address;

  /// A dense array. SettingError for extents that cannot be. Each of its elements is made from `args`, on its home.
  template <class... Args>
  Collection(Pe& pe, const Naming& extents, const CollectionOptions& options = {}, const Args&... args)
    requires(Traits::dense && !std::is_base_of_v<object::NamingByNumber, Traits>)
      : Collection(Made(), pe, options, extents.at) {
    make_all(options, args...);
  }
  /// A group, or a single one; a sparse array, which is empty at first.
  template <class... Args>
  explicit Collection(Pe& pe, const CollectionOptions& options = {}, const Args&... args)
    requires(Traits::sparse || std::is_base_of_v<object::NamingByNumber, Traits>)
      : Collection(Made(), pe, options, number_extents(pe)) {
    if constexpr (Traits::sparse)
      static_assert(sizeof...(Args) == 0, "headway: elements of a sparse array are made by insert(), with its arguments");
    else
      make_all(options, args...);
  }
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;
  ~Collection() {
    for (T* element : elements_) destroy(element);
  }

  Pe& pe() const { return *pe_; }

  /// An element, wherever it is. UsageError for an index outside of a dense array.
  ElementRef<T> operator[](const Name& name);
  /// This PE's own, of a group.
  T& local()
    requires std::is_same_v<Naming, PerPe>
  {
    return *elements_.front();
  }
  /// The only one.
  template <auto method, class... Given>
  void send(Given&&... given)
    requires std::is_same_v<Naming, Single>
  {
    send_to<method>(0, std::forward<Given>(given)...);
  }
  template <auto method, class... Given>
  auto rpc(Given&&... given)
    requires std::is_same_v<Naming, Single>
  {
    return rpc_to<method>(0, std::forward<Given>(given)...);
  }

  /// Runs a method of every element, once each, whether they move meanwhile or not. Each element runs those of the same
  /// collection in the same order. An element that the method inserts does not run it: see ElementRef::insert().
  template <auto method, class... Given>
  void broadcast(Given&&... given) {
    if constexpr (object::require_entry_method<T, method, Given...>()) {
      with_wires<method>(
          [&](const auto&... wires) { calls_.rpc_ff(0, object::StartBroadcast<T, method>(), me_, wires...); }, given...);
    }
  }

  /// Runs a method of every element, as broadcast() does, and gives what op makes of all results, in any order. UsageError
  /// for no elements at all.
  template <auto method, class Op, class... Given>
  auto reduce(Op op, Given&&... given);

  /// Some of the elements, as something to broadcast to and to reduce over: see Section. Sends a message to each PE that has
  /// any of them; costs each of these 4 bytes, or a key, a member until it is released. UsageError for an index outside.
  Section<T> section(const std::vector<Name>& members);

  /// For a sparse array, collective, from the main program: quiesces, and learns how many elements there are; from then on
  /// reductions know whom to wait for, and elements that were inserted before contribute beside the others. Call it
  /// after inserting and erasing, before the next reduction.
  void done_inserting()
    requires(Traits::sparse)
  {
    pe_->quiesce();
    count_elements();
  }

  /// Of all elements; of a sparse array as of done_inserting().
  std::uint64_t size() const { return size_; }
  /// Of those on this PE now.
  std::size_t local_size() const { return elements_.size(); }
  /// Calls f(T&) for each element on this PE, also for those that come meanwhile; those that are to leave do so
  /// afterwards. From the main program.
  template <class F>
  void for_each_local(F f) {
    const Staying staying(*this);
    for (std::size_t i = 0; i < elements_.size(); ++i) f(*elements_[i]);
  }
  /// nullptr: it is not on this PE.
  T* find_local(const Name& name) {
    const Entry* const entry = directory_.find(address_of(name));
    return entry == nullptr ? nullptr : entry->element;
  }
  /// The extents of a dense array.
  Name extents() const
    requires(Traits::dense)
  {
    if constexpr (std::is_base_of_v<object::NamingByNumber, Traits>) {
      return size_;
    } else {
      Name extents;
      extents.at = form_.extents();
      return extents;
    }
  }

  Proxy<T> proxy() const;
  /// The same on every PE.
  std::uint32_t number() const { return me_.number(); }

  /// Posts what is in open buffers. Never waits.
  void flush() {
    calls_.flush();
    aggregators_.for_each([](auto& aggregator) { aggregator.flush(); });
  }
  /// Of the buffers of the entry that lists the method, or else of the collection's own.
  template <auto method>
  AggregatorStatistics statistics() const {
    if constexpr (object::entry_index<T, method> == object::no_entry)
      return calls_.statistics();
    else
      return aggregators_.template get<object::entry_index<T, method>>().statistics();
  }
  /// That these buffers have settled on.
  template <auto method>
  const AggregatorOptions& options() const {
    if constexpr (object::entry_index<T, method> == object::no_entry)
      return calls_.options();
    else
      return aggregators_.template get<object::entry_index<T, method>>().options();
  }
  /// Messages that came here for an element that had left, or was still to come.
  std::uint64_t missed() const { return missed_; }

  // --- for elements and proxies

  Address address_of(const Name& name) const {
    if constexpr (Traits::sparse) {
      return name;
    } else if constexpr (std::is_base_of_v<object::NamingByNumber, Traits>) {
      return form_.number({object::coordinate(name)});
    } else {
      return form_.number(name.at);
    }
  }
  Name name_of(const Address& address) const {
    if constexpr (Traits::sparse) {
      return address;
    } else if constexpr (std::is_base_of_v<object::NamingByNumber, Traits>) {
      return address;
    } else {
      Name name;
      name.at = form_.index(address);
      return name;
    }
  }

  /// The per-message path: where the element is, and into the buffer for there.
  template <auto method, class... Given>
  inline __attribute__((always_inline)) void send_to(const Address& address, Given&&... given) {
    if constexpr (object::require_entry_method<T, method, Given...>()) {
      if constexpr (!is_typed<method>)
        call<method>(directory_.where(address), address, given...);
      else
        send_typed<method>(object::WiresOf<method>(), address, given...);
    }
  }

  template <auto method, class... Given>
  auto rpc_to(const Address& address, Given&&... given) {
    am::require_named_arguments<Given...>();
    if constexpr (object::require_entry_method<T, method, Given...>()) {
      using R = object::AnswerTo<method>;
      static_assert(object::has_no_steps<T, method>, "headway: a method whose messages wait for their step is sent to: it answers nobody");
      const PeId there = directory_.where(address);
      am::Hold<am::CompletionOf<R>> completion(new am::CompletionOf<R>(am::Completions::of(*pe_)));
      call::PendingCalls& pending = call::PendingCalls::of(*pe_);
      const object::Asker asker{std::uint32_t(pe_->id()), pending.add(*completion, call::any_pe)};
      with_wires<method>(
          [&](const auto&... wires) {
            calls_.rpc_ff(there, object::RunForAnswer<T, method>(), me_, address, std::uint32_t(0),
                          asker, wires...);
          },
          given...);
      return Future<R>(std::move(completion));
    }
  }

  /// Makes an element on its home, from there. UsageError, there, if there is one of that key already.
  template <class... Args>
  void insert_at(const Address& key, const Args&... args)
    requires(Traits::sparse)
  {
    constexpr bool made = is_made_from<std::remove_reference_t<typename call::ArrivesAs<Args>::Type>...>;
    static_assert(made, "headway: the class of elements has no constructor for the arguments of insert()");
    if constexpr (made) calls_.rpc_ff(directory_.home(key), object::Insert<T>(), me_, key, transit_.insert(), args...);
  }
  void erase_at(const Address& key)
    requires(Traits::sparse)
  {
    calls_.rpc_ff(directory_.where(key), object::Erase<T>(), me_, key, std::uint32_t(0));
  }

  template <auto method>
  Future<> when(T& element, std::int64_t step, std::uint64_t count);
  template <class Value, class Op, class Target>
  void contribute(T& element, const Value& value, Op op, Target target) {
    require_size();
    if (Traits::sparse && state(element).reductions == object::not_counted) object::throw_not_counted();
    reductions_.give({object::of_elements, state(element).reductions++}, 1, size_, value, op, target);
  }

  template <class Value, class Op, class Target>
  void contribute_to(T& element, const Section<T>& section, const Value& value, Op op, Target target);
  object::Sections<T>& sections() { return *sections_; }

  // --- what comes in messages

  template <auto method, class... Wires>
  inline __attribute__((always_inline)) void deliver(PeId source, const Address& address, std::uint32_t version,
                                                     const Wires&... wires) {
    constexpr bool plain = object::gate_of<T, method> == object::no_gate && !object::is_coroutine<method>;
    if constexpr (plain && Traits::dense) {
      if (Base& base = directory_.here(address); base.state_.number == address) [[likely]] {
        (static_cast<T&>(base).*method)(wires...);
        return;
      }
    }
    look_for<method>(source, address, version, wires...);
  }
  template <auto method, class... Wires>
  void answer(PeId source, const Address& address, std::uint32_t version, const object::Asker& asker, const Wires&... wires) {
    T* const element = find_here(address);
    if (element == nullptr) return miss(source, address, version, object::RunForAnswer<T, method>(), asker, wires...);
    const Timer timer(*this, *element);
    call::call_and_answer(*pe_, asker.pe, asker.number, Bound<method>{this, element}, wires...);
    timer.stop();
  }
  void learn(const Address& address, std::uint32_t pe, std::uint32_t version) { directory_.learn(address, pe, version); }
  void arrive(PeId source, const Address& address, const object::Passport& passport, std::span<const std::byte> content);
  void arrival_known(std::uint32_t broadcasts, std::span<const std::uint32_t> inserted) {
    transit_.arrived(broadcasts, inserted);
  }
  void need_history(std::uint32_t look, std::uint32_t first);
  void drop_history(std::uint32_t first);
  template <class... Args>
  void insert(const Address& key, const object::Birth& birth, const Args&... args);
  void erase_here(PeId source, const Address& key, std::uint32_t version) {
    T* const element = find_here(key);
    if (element == nullptr) return miss(source, key, version, object::Erase<T>());
    set_wanted(state(*element), object::leaves);
    settle(*element);
  }
  template <auto method, class... Wires>
  void start_broadcast(const Wires&... wires) {
    take_broadcast<method>(broadcasts_started_++, wires...);
  }
  template <auto method, class... Wires>
  void take_broadcast(std::uint32_t number, const Wires&... wires);
  template <auto method, class Op, class... Wires>
  void give_to(PeId source, const Address& address, std::uint32_t version, const object::ReductionId& id, std::uint64_t total,
               const object::Asker& asker, const Wires&... wires);
  template <auto method, class Op, class... Wires>
  void start_reduce(const object::Asker& asker, const Wires&... wires);
  template <auto method, class Op, class... Wires>
  void take_reduce(std::uint32_t number, const object::Asker& asker, const Wires&... wires);

  /// An element wants to move, or to be erased.
  void want(T& element, std::uint32_t what) {
    auto& of = state(element);
    if (of.wanted == object::stays) settle_later(of.address);
    set_wanted(of, what);
  }

  // --- for balance() and checkpoints

  static object::State<T, Naming>& state(T& element) { return static_cast<Element<T, Naming>&>(element).state_; }
  /// Moves an element that nothing runs in, now.
  void move_now(T& element, PeId pe) {
    set_wanted(state(element), std::uint32_t(pe));
    settle(element);
  }
  /// nullptr: it is not here, or leaves now.
  T* find_here(const Address& address) {
    Entry* const entry = directory_.find(address);
    if (entry == nullptr || entry->element == nullptr) return nullptr;
    if (state(*entry->element).wanted != object::stays) settle(*entry->element);
    return entry->element;
  }
  /// Elements that have left this PE, and what they were as bytes.
  std::uint64_t departed() const { return departed_; }
  std::uint64_t departed_bytes() const { return departed_bytes_; }
  PeId home_of(const Address& address) const { return directory_.home(address); }
  /// Where it is, as far as is known here.
  PeId where(const Address& address) { return directory_.where(address); }
  /// An element as bytes, with all that the library keeps of it.
  static std::vector<std::byte> pack(T& element);
  /// Makes one of them. FormatError, and nothing is made, where they are none.
  void restore(const Address& address, std::span<const std::byte> content);
  /// Reductions that are not over, as far as is known here.
  std::size_t reducing() const { return reductions_.size(); }
  CallAggregator& calls() { return calls_; }
  const DistObject<Collection*>& me() const { return me_; }

 private:
  using Homes = std::conditional_t<Traits::sparse, object::SparseHomes<Address>, object::DenseHomes>;
  using Form = object::Form<Traits::dense ? Traits::dimensions : 1>;
  using Base = Element<T, Naming>;
  using Entry = object::Whereabouts<T>;
  using Aggregators = object::AggregatorsOf<Address, Traits::moves || Traits::sparse || !std::is_same_v<Naming, PerPe>,
                                            object::EntriesOf<T>>;
  template <auto method>
  static constexpr bool is_typed = [] {
    if constexpr (object::entry_index<T, method> == object::no_entry)
      return false;
    else
      return !std::is_same_v<std::remove_cvref_t<decltype(std::declval<Aggregators&>()
                                                               .template get<object::entry_index<T, method>>())>,
                             CallAggregator>;
  }();
  struct Made {};
  template <auto method>
  struct Bound;

  static constexpr unsigned dimensions = Traits::dense ? Traits::dimensions : 1;
  /// Elements may be on their way while a broadcast runs.
  static constexpr bool keeps_history();
  using Extents = std::array<std::int32_t, dimensions>;
  Collection(Made, Pe& pe, const CollectionOptions& options, const Extents& extents);
  static Extents number_extents(Pe& pe) {
    if constexpr (Traits::sparse) return {0};
    if constexpr (std::is_same_v<Naming, PerPe>) return {std::int32_t(pe.size())};
    if constexpr (std::is_same_v<Naming, Single>) return {1};
    const std::size_t each = pe.engine().endpoint().host_map().pes_per_process;
    return {std::int32_t((pe.size() + each - 1) / each)};
  }
  static Homes homes_of(Pe& pe, const CollectionOptions& options, const Form& form);
  static AggregatorOptions named(AggregatorOptions options, const CollectionOptions& given) {
    if (options.name.empty()) options.name = given.name;
    return options;
  }

  template <class... Args>
  void make_all(const CollectionOptions& options, const Args&... args) {
    constexpr bool made = is_made_from<Args...>;
    static_assert(made, "headway: the class of elements has no constructor for the arguments that the collection has");
    if constexpr (made) {
      if (!options.empty) for_each_home([&](std::uint32_t number) { make(number, args...); });
    }
    complete_ = true;
    take_up_broadcast();
  }
  template <class F>
  void for_each_home(F f) {
    const std::size_t pe = pe_->id();
    const std::uint32_t first = first_row(directory_homes_, form_, pe), end = first + rows(directory_homes_, form_, pe);
    for (std::uint32_t number = first; number < end; ++number) f(number);
    if (first != end || directory_homes_.is_block()) return;
    for (std::uint32_t number = 0; number < form_.size(); ++number) {
      if (directory_homes_(number) == pe) f(number);
    }
  }
  static std::uint32_t first_row(const Homes& homes, const Form& form, std::size_t pe) {
    if constexpr (Traits::dense) {
      if (homes.is_block() && form.size() != 0) return homes.first(pe);
    }
    return 0;
  }
  static std::uint32_t rows(const Homes& homes, const Form& form, std::size_t pe) {
    if constexpr (Traits::dense) {
      if (homes.is_block() && form.size() != 0) return homes.first(pe + 1) - homes.first(pe);
    }
    return 0;
  }

  template <class... Args>
  static constexpr bool is_made_from = requires(const Args&... args) { new T(args...); };

  template <class... Args>
  T& make(const Address& address, const Args&... args) {
    const object::Making<T, Naming> making{this, address};
    object::Making<T, Naming>::now = &making;
    std::unique_ptr<T> element(new T(args...));
    enter(directory_.at(address), *element);
    return *element.release();
  }
  /// It is here from now on.
  void enter(Entry& entry, T& element) {
    auto& of = state(element);
    of.place = std::uint32_t(elements_.size());
    of.broadcasts = broadcasts_;
    set_wanted(of, of.wanted);
    elements_.push_back(&element);
    directory_.set(of.address, entry, &element);
    entry.pe = std::uint32_t(pe_->id());
    if (!awaited_.empty()) take_up_messages(of.address);
  }
  void leave(Entry& entry, T& element) {
    const std::uint32_t place = state(element).place;
    elements_[place] = elements_.back();
    state(*elements_[place]).place = place;
    elements_.pop_back();
    directory_.set(state(element).address, entry, nullptr);
  }
  static void destroy(T* element) { delete element; }
  static void set_wanted(object::State<T, Naming>& of, std::uint32_t what) {
    of.wanted = what;
    if constexpr (Traits::dense) of.number = what == object::stays ? of.address : object::no_number;
  }

  // --- running methods

  class Timer {
   public:
    Timer(Collection& collection, T& element)
        : element_(collection.measures_ ? &element : nullptr), clock_(&collection.load_clock_) {
      if (element_ != nullptr) [[unlikely]]
        begin_ = clock_->read();
    }
    void stop() const {
      if (element_ != nullptr) [[unlikely]]
        state(*element_).load_s += clock_->seconds(begin_, clock_->read());
    }

   private:
    T* element_;
    const object::LoadClock* clock_;
    std::uint64_t begin_ = 0;
  };

  template <auto method, class... Wires>
  __attribute__((noinline)) void look_for(PeId source, const Address& address, std::uint32_t version, const Wires&... wires) {
    if (T* const element = find_here(address))
      run<method>(*element, wires...);
    else
      miss(source, address, version, object::Forward<T, method>(), wires...);
  }
  template <auto method, class... Wires>
  void run(T& element, const Wires&... wires) {
    if constexpr (object::gate_of<T, method> != object::no_gate)
      pass_gate<method>(element, wires...);
    else
      run_now<method>(element, wires...);
  }
  template <auto method, class... Wires>
  void run_now(T& element, const Wires&... wires) {
    const Timer timer(*this, element);
    if constexpr (object::is_coroutine<method>) {
      if constexpr (aggregate::require_kept_arguments<decltype(method)>()) {
        spawn(*pe_, follow<object::AnswerTo<method>>(this, &element, (element.*method)(wires...)));
      }
    } else {
      (element.*method)(wires...);
    }
    timer.stop();
  }
  template <class R>
  static Task<R> follow(Collection* self, T* element, Task<R> task) {
    auto& of = state(*element);
    ++of.coroutines;
    const Leaving leaving{self, element};
    if constexpr (std::is_void_v<R>)
      co_await task;
    else
      co_return co_await task;
  }
  /// The last coroutine of an element that is to move lets it.
  struct Leaving {
    Collection* self;
    T* element;
    ~Leaving() {
      auto& of = state(*element);
      if (--of.coroutines == 0 && of.wanted != object::stays) self->settle_later(of.address);
    }
  };

  /// As long as one is there, elements stay where they are.
  class Staying {
   public:
    explicit Staying(Collection& collection) : collection_(&collection) { ++collection.staying_; }
    Staying(const Staying&) = delete;
    Staying& operator=(const Staying&) = delete;
    ~Staying() {
      if (--collection_->staying_ != 0 || !std::exchange(collection_->held_back_, false)) return;
      for (T* const element : collection_->elements_) {
        const auto& of = state(*element);
        if (of.wanted != object::stays) collection_->settle_later(of.address);
      }
    }

   private:
    Collection* collection_;
  };

  /// Does what the element wants, if nothing of it lives. The next message for it does, or a task if none comes before.
  void settle(T& element);
  void settle_later(const Address& address) {
    am::Engine& engine = pe_->engine();
    engine.run_later(engine.scope(), [this, address] { find_here(address); });
  }
  void depart(T& element, std::size_t pe);

  // --- messages for elements that are not here

  /// What a message needs to be sent on, or kept: arguments without views.
  template <class Wire>
  using Owned = object::OwnedWire<Wire>;

  /// `again` is what the message runs, of its address, version and what follows that.
  template <class Again, class... Wires>
  __attribute__((noinline)) void miss(PeId source, const Address& address, std::uint32_t version, Again again,
                                      const Wires&... wires) {
    ++missed_;
    const Entry* const entry = directory_.find(address);
    const std::uint32_t known = entry != nullptr ? entry->version : 0;
    const PeId pe = entry != nullptr ? PeId(entry->pe) : directory_.home(address);
    if (pe == pe_->id() || version > known) {  // it is still to be made, or to come
      std::tuple<Owned<Wires>...> owned(Owned<Wires>(object::own(wires))...);
      awaited_[address].push_back(
          {calls_.set_aside(), [this, source, address, version, again, owned = std::move(owned)] {
             std::apply(
                 [&](const auto&... mine) { again(*pe_, source, this, address, version, object::lend<Wires>(mine)...); }, owned);
           }});
      return;
    }
    calls_.rpc_ff(pe, again, me_, address, known, wires...);
    if (source != pe_->id()) calls_.rpc_ff(source, object::Learn<T>(), me_, address, std::uint32_t(pe), known);
  }
  void take_up_messages(const Address& address) {
    const auto found = awaited_.find(address);
    if (found == awaited_.end()) return;
    auto messages = std::move(found->second);
    awaited_.erase(found);
    for (auto& [scope, run_it] : messages) calls_.take_up(scope, std::move(run_it));
  }

  // --- sending

  friend class object::Sections<T>;
  template <auto method, class F, class... Given>
  void with_wires(F f, Given&... given) {
    with_wires_of(object::WiresOf<method>(), f, given...);
  }
  template <class... Wires, class F, class... Given>
  void with_wires_of(object::TypeList<Wires...>, F& f, Given&... given) {
    f(aggregate::content_of<Wires>(object::as_wire<Wires>(given))...);
    (object::finish(given), ...);
  }
  template <auto method>
  CallAggregator& calls_of() {
    if constexpr (object::entry_index<T, method> == object::no_entry)
      return calls_;
    else
      return aggregators_.template get<object::entry_index<T, method>>();
  }
  template <auto method, class... Given>
  void call(PeId pe, const Address& address, Given&... given) {
    with_wires<method>(
        [&](const auto&... wires) { calls_of<method>().rpc_ff(pe, object::Run<T, method>(), me_, address, wires...); },
        given...);
  }
  /// An element that is at home, as far as is known, costs nothing but arithmetic. What is not so goes apart, and does not
  /// come back: the arguments stay in registers then.
  template <auto method, class... Wires, class... Given>
  inline __attribute__((always_inline)) void send_typed(object::TypeList<Wires...>, const Address& address, Given&... given) {
    auto& aggregator = aggregators_.template get<object::entry_index<T, method>>();
    if constexpr (!Aggregators::addressed)
      aggregator.send(address, object::as_wire<Wires>(given)...);
    else if constexpr (!Traits::dense || (aggregate::is_send_buffer<std::remove_cv_t<Given>> || ...))
      aggregator.send(directory_.where(address), address, object::as_wire<Wires>(given)...);
    else if (directory_.is_at_home(address)) [[likely]]
      aggregator.send(directory_.home_by_arithmetic(address), address, object::as_wire<Wires>(given)...);
    else
      send_elsewhere<method, Wires...>(address, object::as_wire<Wires>(given)...);
  }
  template <auto method, class... Wires>
  __attribute__((noinline)) void send_elsewhere(Address address, aggregate::Kept<Wires>... wires) {
    aggregators_.template get<object::entry_index<T, method>>().send(directory_.where(address), address, wires...);
  }
  template <auto method, class... Wires>
  void listen(object::TypeList<Wires...>, auto& aggregator) {
    if constexpr (Aggregators::addressed) {
      aggregator.on([this](PeId source, const Address& address, object::Arriving<Wires>... wires) {
        deliver<method>(source, address, 0, wires...);
      });
    } else {
      aggregator.on([this](object::Arriving<Wires>... wires) { run<method>(*elements_.front(), wires...); });
    }
  }
  void require_size() const {
    if (!size_known_) object::throw_size_unknown();
  }
  void count_elements();

  // --- gates

  object::Gate& gate(T& element, std::size_t number) {
    auto& of = state(element);
    if (!of.rare) of.rare = std::make_unique<object::Rare>();
    if (of.rare->gates.empty()) of.rare->gates.resize(object::Gates<T>::count);
    return of.rare->gates[number];
  }
  template <auto method, class... Wires>
  void pass_gate(T& element, const Wires&... wires);
  template <auto method, class Step, class... Wires>
  void keep(object::Gate& gate, Step step, const Wires&... wires);
  void let_in(T& element, std::size_t number);
  void pass_again(const Address& address, const object::Kept& kept);
  template <std::size_t i>
  std::uint64_t expected_of(T& element, std::int64_t step);
  template <std::size_t i>
  void trigger(T& element, std::int64_t step);

  // --- broadcasts

  /// Runs the next one, and passes it on before.
  template <class PassOn, class RunIt>
  void run_broadcast(PassOn pass_on, RunIt run_it);
  void take_up_broadcast();
  void tell_arrival(std::uint32_t broadcasts, std::uint32_t account, const object::Transit::Cause& cause);
  bool catch_up(T& element, object::Transit::Cause& cause);

  struct Early {
    am::ScopeId scope;
    std::function<void()> run;
  };

  Pe* pe_;
  Form form_;
  Homes directory_homes_;
  Base absent_{typename Base::Absent()};
  object::Directory<T, Base, Address, Homes> directory_;
  std::vector<T*> elements_;  // those here
  unsigned staying_ = 0;
  bool held_back_ = false;  // some wanted to leave meanwhile
  std::uint64_t size_ = 0;
  bool size_known_ = Traits::dense;
  bool complete_ = !Traits::dense;  // all elements that are there at once have been made: broadcasts may begin
  std::uint32_t contributed_ = 0;  // reductions that elements of a sparse array had given to, as of done_inserting()
  const bool measures_;
  const object::LoadClock load_clock_;
  std::uint64_t missed_ = 0, departed_ = 0, departed_bytes_ = 0;
  std::unordered_map<Address, std::vector<Early>> awaited_;  // messages for elements that are not there, or not yet
  std::uint32_t broadcasts_started_ = 0;                     // on PE 0
  std::uint32_t broadcasts_ = 0;                             // of which all elements here have seen so many
  std::map<std::uint32_t, Early> early_broadcasts_;
  std::deque<std::function<void(T&)>> history_;  // the last broadcasts, which an element on its way may not have had
  object::Transit transit_;
  /// A look at which broadcasts are needed: this PE's and those of the PEs below.
  struct Look {
    std::size_t missing;  // PEs that have not said
    std::uint32_t first;
  };
  std::map<std::uint32_t, Look> looks_;  // by number
  CallAggregator calls_;
  Aggregators aggregators_;
  std::unique_ptr<object::Sections<T>> sections_;
  object::Reductions reductions_;
  DistObject<Collection*> me_;  // last: messages come from here on
};

template <class T>
  requires(object::NamingOf<typename T::ElementNaming>::dimensions > 0 &&
           !std::is_base_of_v<object::NamingByNumber, object::NamingOf<typename T::ElementNaming>>)
using Array = Collection<T>;
template <class T>
  requires(object::NamingOf<typename T::ElementNaming>::sparse)
using SparseArray = Collection<T>;
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

#include <headway/object/collection_parts.hpp>
#include <headway/object/proxy.hpp>
#include <headway/object/section.hpp>
