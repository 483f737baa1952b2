/// What Collection does seldom: making, moving, waiting for steps, broadcasts. Included by collection.hpp.
#pragma once

#include <headway/object/collection.hpp>
#include <string_view>

namespace headway {

namespace object {

[[noreturn]] void throw_wrong_place();
[[noreturn]] void throw_place_of_sparse();
[[noreturn]] void throw_no_entry(std::string_view method);
[[noreturn]] void throw_key_exists();
[[noreturn]] void throw_late_step(std::int64_t step, std::int64_t current);
[[noreturn]] void throw_nothing_expected(std::int64_t step);
[[noreturn]] void throw_waits_already();

template <class T>
concept Migratable = std::is_default_constructible_v<T> && detail::HasSerialize<T>;

/// One line of compile error for what cannot move.
template <class T>
constexpr bool require_migratable() {
  static_assert(Migratable<T>,
                "headway: elements that migrate, or are checkpointed, have a constructor without arguments and a member "
                "template <class A> void serialize(A& archive)");
  return Migratable<T>;
}

template <class T, class Archive>
void serialize_with_rare(T& element, std::unique_ptr<Rare>& rare, Archive& archive) {
  bool has_rare = rare != nullptr;
  archive(has_rare);
  if (has_rare) {
    if (!rare) rare = std::make_unique<Rare>();
    archive(*rare);
  }
  element.serialize(archive);
}

}  // namespace object

// --- making

template <class T>
Collection<T>::Collection(Made, Pe& pe, const CollectionOptions& options, const Extents& extents)
    : pe_(&pe),
      form_(extents),
      directory_homes_(homes_of(pe, options, form_)),
      directory_(directory_homes_, pe.id(), first_row(directory_homes_, form_, pe.id()),
                 rows(directory_homes_, form_, pe.id()), !options.measure_load,
                 absent_),
      size_(Traits::dense ? form_.size() : 0),
      measures_(options.measure_load),
      load_clock_(pe.engine(), options.measure_load),
      transit_(std::uint32_t(pe.id())),
      calls_(pe, named(options.aggregation, options)),
      aggregators_(pe,
                   [&](std::size_t entry) {
                     AggregatorOptions chosen = object::declared_options<T>(entry);
                     if (options.override_all) chosen = *options.override_all;
                     for (const auto& given : options.methods) {
                       if (object::entry_of_tag<T>(given.tag) == entry) chosen = given.options;
                     }
                     return named(chosen, options);
                   }),
      sections_(std::make_unique<object::Sections<T>>(*this)),
      reductions_(calls_,
                  [this](std::uint64_t stream) {
                    return stream <= object::of_broadcasts ? elements_.size() : sections_->size_here(stream << 1 >> 1);
                  }),
      me_(pe, this) {
  object::for_each_typed<object::EntriesOf<T>>([&]<std::size_t entry, auto method>() {
    auto& aggregator = aggregators_.template get<entry>();
    if constexpr (!std::is_same_v<std::remove_reference_t<decltype(aggregator)>, CallAggregator>)
      listen<method>(object::WiresOf<method>(), aggregator);
  });
  for (const auto& given : options.methods) {
    if (object::entry_of_tag<T>(given.tag) == object::no_entry) object::throw_no_entry(given.name);
  }
}

template <class T>
typename Collection<T>::Homes Collection<T>::homes_of(Pe& pe, const CollectionOptions& options, const Form& form) {
  using Kind = Placement::Kind;
  std::function<PeId(const Name&)> own;
  if (options.placement.kind == Kind::own) {
    const auto* const function = std::any_cast<std::function<PeId(const Name&)>>(&options.placement.function);
    if (function == nullptr) object::throw_wrong_place();
    own = *function;
  }
  if constexpr (Traits::sparse) {
    if (options.placement.kind == Kind::block || options.placement.kind == Kind::cyclic) object::throw_place_of_sparse();
    return Homes(pe.size(), own);
  } else if constexpr (std::is_same_v<Naming, PerPe>) {
    return Homes(form.size(), pe.size(), Kind::block, {});
  } else if constexpr (std::is_same_v<Naming, PerProcess>) {
    const std::size_t each = pe.engine().endpoint().host_map().pes_per_process;
    return Homes(form.size(), pe.size(), Kind::own, [each](std::uint32_t process) { return PeId(process * each); });
  } else if constexpr (std::is_same_v<Naming, Single>) {
    if (!own) return Homes(1, pe.size(), Kind::block, {});
    return Homes(1, pe.size(), Kind::own, [own](std::uint32_t number) { return own(number); });
  } else {
    return Homes(form.size(), pe.size(), options.placement.kind, [own, form](std::uint32_t number) {
      Name name;
      name.at = form.index(number);
      return own(name);
    });
  }
}

template <class T>
template <class... Args>
void Collection<T>::insert(const Address& key, const object::Birth& birth, const Args&... args) {
  Entry& entry = directory_.at(key);
  if (entry.element != nullptr || entry.pe != pe_->id()) object::throw_key_exists();
  size_known_ = false;
  ++entry.version;
  transit_.hear(birth.broadcasts);
  object::Transit::Cause cause(transit_, birth.account, birth.broadcasts);
  T& element = make(key, args...);
  state(element).broadcasts = birth.broadcasts;
  state(element).reductions = object::not_counted;
  catch_up(element, cause);
  tell_arrival(birth.broadcasts, birth.account, cause);
}

/// After quiescence. A PE that has left may start reductions everywhere: none leaves before all know the size.
template <class T>
void Collection<T>::count_elements() {
  struct Count {
    std::uint64_t elements;
    std::uint32_t contributed;
  };
  Count count{elements_.size(), contributed_};
  for (T* const element : elements_) {
    const std::uint32_t reductions = state(*element).reductions;
    if (reductions != object::not_counted) count.contributed = std::max(count.contributed, reductions);
  }
  count = allreduce(*pe_, count, [](const Count& a, const Count& b) {
    return Count{a.elements + b.elements, std::max(a.contributed, b.contributed)};
  });
  size_ = count.elements;
  size_known_ = true;
  contributed_ = count.contributed;
  for (T* const element : elements_) {
    if (state(*element).reductions == object::not_counted) state(*element).reductions = contributed_;
  }
  barrier(*pe_);
}

// --- moving

template <class T>
void Collection<T>::settle(T& element) {
  auto& of = state(element);
  if (of.coroutines != 0) return;
  if (staying_ != 0) {
    held_back_ = true;
    return;
  }
  const std::uint32_t wanted = of.wanted;
  set_wanted(of, object::stays);
  if (wanted == pe_->id()) return;
  if (wanted != object::leaves) {
    if constexpr (object::Migratable<T> && Traits::moves) depart(element, wanted);
    return;
  }
  if constexpr (Traits::sparse) {
    const Address address = of.address;
    Entry& entry = directory_.at(address);
    leave(entry, element);
    destroy(&element);
    size_known_ = false;
    entry.pe = std::uint32_t(directory_.home(address));
    ++entry.version;
    directory_.moved();
    if (entry.pe != pe_->id()) calls_.rpc_ff(entry.pe, object::Learn<T>(), me_, address, entry.pe, entry.version);
  }
}

template <class T>
std::vector<std::byte> Collection<T>::pack(T& element) {
  auto& rare = state(element).rare;
  detail::ByteCounter counter;
  object::serialize_with_rare(element, rare, counter);
  std::vector<std::byte> content(counter.position());
  detail::ByteWriter writer(content.data());
  object::serialize_with_rare(element, rare, writer);
  return content;
}

template <class T>
void Collection<T>::depart(T& element, std::size_t pe) {
  auto& of = state(element);
  const std::vector<std::byte> content = pack(element);
  const Address address = of.address;
  Entry& entry = directory_.at(address);
  const object::Passport passport{entry.version + 1, of.broadcasts, of.reductions, of.load_s};
  if (of.rare) {
    for (const object::Gate& gate : of.rare->gates) {
      for (const object::Kept& kept : gate.kept) calls_.count_waiting(kept.scope, -1);
    }
  }
  leave(entry, element);
  destroy(&element);
  directory_.learn(address, pe, passport.version);
  transit_.depart(passport.broadcasts);
  ++departed_;
  departed_bytes_ += content.size();
  calls_.rpc_ff(pe, object::Arrive<T>(), me_, address, passport, std::span<const std::byte>(content));
}

template <class T>
void Collection<T>::arrive(PeId source, const Address& address, const object::Passport& passport,
                           std::span<const std::byte> content) {
  if constexpr (object::Migratable<T>) {
    const object::Making<T, Naming> making{this, address};
    object::Making<T, Naming>::now = &making;
    std::unique_ptr<T> element(new T());
    auto& of = state(*element);
    ByteReader reader(content);
    object::serialize_with_rare(*element, of.rare, reader);
    if (reader.remaining() != 0) throw FormatError("an element's serialize() reads less than it writes");
    Entry& entry = directory_.at(address);
    if (entry.element != nullptr) object::throw_key_exists();
    entry.version = passport.version;
    directory_.moved();
    T& here = *element.release();
    enter(entry, here);
    of.broadcasts = passport.broadcasts;
    of.reductions = passport.reductions;
    of.load_s = passport.load_s;
    if (of.rare) {
      for (const object::Gate& gate : of.rare->gates) {
        for (const object::Kept& kept : gate.kept) calls_.count_waiting(kept.scope, 1);
      }
    }
    const PeId home = directory_.home(address);
    if (home != pe_->id() && home != source) {
      calls_.rpc_ff(home, object::Learn<T>(), me_, address, std::uint32_t(pe_->id()), passport.version);
    }
    transit_.hear(passport.broadcasts);
    object::Transit::Cause cause(transit_, std::uint32_t(source), passport.broadcasts);
    if constexpr (requires { here.arrived(); }) here.arrived();
    const bool stays = catch_up(here, cause);
    tell_arrival(passport.broadcasts, std::uint32_t(source), cause);
    if (!stays) return;
    for (std::size_t gate = 0; of.rare && gate < of.rare->gates.size(); ++gate) let_in(here, gate);
  }
}

template <class T>
void Collection<T>::restore(const Address& address, std::span<const std::byte> content) {
  if constexpr (object::require_migratable<T>()) {
    const object::Making<T, Naming> making{this, address};
    object::Making<T, Naming>::now = &making;
    std::unique_ptr<T> element(new T());
    ByteReader reader(content);
    object::serialize_with_rare(*element, state(*element).rare, reader);
    if (reader.remaining() != 0) throw FormatError("an element is longer than its serialize() reads");
    if (auto& rare = state(*element).rare) {
      for (const object::Gate& gate : rare->gates) {
        if (!gate.kept.empty()) throw FormatError("an element was checkpointed while messages waited in it");
      }
      rare->contributions.clear();  // to sections that are no more
    }
    Entry& entry = directory_.at(address);
    if (entry.element != nullptr) throw FormatError("two elements have the same name");
    enter(entry, *element);
    if constexpr (Traits::sparse) state(*element).reductions = object::not_counted;
    element.release();
  }
}

// --- coroutines as answers

template <class T>
template <auto method>
struct Collection<T>::Bound {
  Collection* self;
  T* element;

  template <class... Wires>
  auto operator()(const Wires&... wires) const -> decltype((element->*method)(wires...)) {
    if constexpr (object::is_coroutine<method>)
      return follow<object::AnswerTo<method>>(self, element, (element->*method)(wires...));
    else
      return (element->*method)(wires...);
  }
};

// --- gates

template <class T>
template <auto method, class... Wires>
void Collection<T>::pass_gate(T& element, const Wires&... wires) {
  constexpr std::size_t number = object::gate_of<T, method>;
  constexpr bool triggers = number < object::Gates<T>::triggers;
  object::Gate& mine = gate(element, number);
  const auto step = static_cast<std::int64_t>(object::first_of(wires...));
  if constexpr (triggers) {
    if (!mine.open) {
      mine.wanted = expected_of<number>(element, mine.step);
      if (mine.wanted == 0) object::throw_nothing_expected(mine.step);
      mine.open = true;
    }
  }
  if (step < mine.step) object::throw_late_step(step, mine.step);
  if (step > mine.step || !mine.open) return keep<method>(mine, step, wires...);
  run_now<method>(element, wires...);
  if (++mine.arrived < mine.wanted) return;
  mine.arrived = 0;
  mine.open = false;
  ++mine.step;
  if constexpr (triggers) {
    trigger<number>(element, step);
    let_in(element, number);
  } else if (mine.waiter) {
    Promise<> waiter = std::move(*mine.waiter);
    mine.waiter.reset();
    waiter.set();
  }
}

template <class T>
template <auto method, class Step, class... Wires>
void Collection<T>::keep(object::Gate& mine, Step step, const Wires&... wires) {
  using Format = aggregate::MessageFormat<Wires...>;
  static_assert(Format::alignment <= sizeof(std::uint64_t),
                "headway: arguments of methods that wait for their step are aligned to 8 bytes at most");
  std::size_t bytes = Format::prefix_bytes;
  if constexpr (!Format::fixed) bytes = Format::bytes(wires...);
  object::Kept kept{std::uint32_t(object::gated_index<T, method>()), calls_.set_aside(), step, std::uint64_t(bytes), {}};
  kept.words.resize((bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  if (!kept.words.empty()) Format::pack(reinterpret_cast<std::byte*>(kept.words.data()), wires...);
  mine.kept.push_back(std::move(kept));
}

template <class T>
void Collection<T>::let_in(T& element, std::size_t number) {
  auto& of = state(element);
  object::Gate& mine = of.rare->gates[number];
  const auto ready = std::stable_partition(mine.kept.begin(), mine.kept.end(),
                                           [&](const object::Kept& kept) { return kept.step != mine.step; });
  if (number >= object::Gates<T>::triggers && !mine.open) return;  // nobody waits yet
  for (auto kept = ready; kept != mine.kept.end(); ++kept) {
    const am::ScopeId scope = kept->scope;
    calls_.take_up(scope, [this, address = of.address, message = std::move(*kept)] { pass_again(address, message); });
  }
  mine.kept.erase(ready, mine.kept.end());
}

template <class T>
void Collection<T>::pass_again(const Address& address, const object::Kept& kept) {
  std::uint32_t index = 0;
  object::for_each_gated_method<T>([&]<auto method>() {
    if (index++ == kept.method) object::with_message<method>(kept, [&](const auto&... wires) {
      deliver<method>(pe_->id(), address, 0, wires...);
    });
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
  const Timer timer(*this, element);
  if constexpr (object::MethodTraits<Then>::parameters == 0)
    (element.*then)();
  else
    (element.*then)(static_cast<object::FirstParameter<Then>>(step));
  timer.stop();
}

template <class T>
template <auto method>
Future<> Collection<T>::when(T& element, std::int64_t step, std::uint64_t count) {
  constexpr std::size_t number = object::gate_of<T, method>;
  static_assert(number != object::no_gate && number >= object::Gates<T>::triggers,
                "headway: list what coroutines wait for: static constexpr auto awaited = headway::awaited<&Class::method>;");
  object::Gate& mine = gate(element, number);
  if (mine.open) object::throw_waits_already();
  if (step < mine.step) object::throw_late_step(step, mine.step);
  Promise<> done(*pe_);
  Future<> future = done.future();
  mine.step = step;
  if (count == 0) {
    ++mine.step;
    done.set();
    return future;
  }
  mine.wanted = count;
  mine.arrived = 0;
  mine.open = true;
  mine.waiter.emplace(std::move(done));
  let_in(element, number);
  return future;
}

// --- broadcasts

template <class T>
constexpr bool Collection<T>::keeps_history() {
  return Traits::sparse || (Traits::moves && object::Migratable<T>);
}

template <class T>
template <class PassOn, class RunIt>
void Collection<T>::run_broadcast(PassOn pass_on, RunIt run_it) {
  const std::size_t me = pe_->id();
  for (std::size_t bit = 1; (me & bit) == 0 && (me | bit) < pe_->size(); bit <<= 1) pass_on(me | bit);
  const std::uint32_t number = broadcasts_++;
  transit_.hear(broadcasts_);
  if constexpr (keeps_history()) history_.push_back(run_it);
  {
    const object::Transit::Cause cause(transit_, std::uint32_t(me), broadcasts_);
    for (std::size_t i = 0; i < elements_.size();) {
      T* const element = elements_[i];
      auto& of = state(*element);
      if (of.broadcasts == number) {
        if (of.wanted != object::stays) {
          settle(*element);
          if (i == elements_.size() || elements_[i] != element) continue;  // it has left, and another one may have its place
        }
        ++of.broadcasts;
        run_it(*element);
      }
      ++i;
    }
  }
  if constexpr (keeps_history()) {
    if (broadcasts_ % object::history_kept == 0) need_history(broadcasts_ / object::history_kept, transit_.needed(broadcasts_));
  }
  take_up_broadcast();
}

template <class T>
void Collection<T>::take_up_broadcast() {
  const auto next = early_broadcasts_.find(broadcasts_);
  if (next == early_broadcasts_.end()) return;
  calls_.take_up(next->second.scope, std::move(next->second.run));
  early_broadcasts_.erase(next);
}

template <class T>
template <auto method, class... Wires>
void Collection<T>::take_broadcast(std::uint32_t number, const Wires&... wires) {
  std::tuple<Owned<Wires>...> owned(Owned<Wires>(object::own(wires))...);
  if (number != broadcasts_ || !complete_) {
    early_broadcasts_[number] = {calls_.set_aside(), [this, number, owned = std::move(owned)] {
                                   std::apply(
                                       [&](const auto&... mine) {
                                         take_broadcast<method>(number, object::lend<Wires>(mine)...);
                                       },
                                       owned);
                                 }};
    return;
  }
  run_broadcast([&](std::size_t pe) { calls_.rpc_ff(pe, object::RunBroadcast<T, method>(), me_, number, wires...); },
                [this, owned = std::move(owned)](T& element) {
                  std::apply([&](const auto&... mine) { run<method>(element, object::lend<Wires>(mine)...); }, owned);
                });
}

template <class T>
template <auto method, class Op, class... Given>
auto Collection<T>::reduce(Op, Given&&... given) {
  if constexpr (object::require_entry_method<T, method, Given...>()) {
    using R = object::AnswerTo<method>;
    static_assert(!std::is_void_v<R>, "headway: the method returns nothing that could be reduced");
    static_assert(object::has_no_steps<T, method>, "headway: a method whose messages wait for their step is sent to: it answers nobody");
    static_assert(!object::is_coroutine<method>, "headway: a method that is a coroutine is no part of reduce(): let it contribute()");
    if constexpr (object::require_operator<Op, R>()) {
      require_size();
      am::Hold<am::CompletionOf<R>> completion(new am::CompletionOf<R>(am::Completions::of(*pe_)));
      call::PendingCalls& pending = call::PendingCalls::of(*pe_);
      if (size_ == 0) object::throw_nothing_to_reduce();
      const object::Asker asker{std::uint32_t(pe_->id()), pending.add(*completion, call::any_pe)};
      with_wires<method>(
          [&](const auto&... wires) { calls_.rpc_ff(0, object::StartReduce<T, method, Op>(), me_, asker, wires...); },
          given...);
      return Future<R>(std::move(completion));
    }
  }
}

template <class T>
template <auto method, class Op, class... Wires>
void Collection<T>::start_reduce(const object::Asker& asker, const Wires&... wires) {
  take_reduce<method, Op>(broadcasts_started_++, asker, wires...);
}

template <class T>
template <auto method, class Op, class... Wires>
void Collection<T>::take_reduce(std::uint32_t number, const object::Asker& asker, const Wires&... wires) {
  std::tuple<Owned<Wires>...> owned(Owned<Wires>(object::own(wires))...);
  if (number != broadcasts_ || !complete_) {
    early_broadcasts_[number] = {calls_.set_aside(), [this, number, asker, owned = std::move(owned)] {
                                   std::apply(
                                       [&](const auto&... mine) {
                                         take_reduce<method, Op>(number, asker, object::lend<Wires>(mine)...);
                                       },
                                       owned);
                                 }};
    return;
  }
  using R = object::AnswerTo<method>;
  run_broadcast(
      [&](std::size_t pe) { calls_.rpc_ff(pe, object::RunReduce<T, method, Op>(), me_, number, asker, wires...); },
      [this, number, asker, owned = std::move(owned)](T& element) {
        const Timer timer(*this, element);
        const R result = std::apply(
            [&](const auto&... mine) -> R { return (element.*method)(object::lend<Wires>(mine)...); }, owned);
        timer.stop();
        reductions_.give({object::of_broadcasts, number}, 1, size_, result, Op(), object::ToAsker<R>{asker});
      });
}

/// What has arrived here, or was made here, is on its way no longer.
template <class T>
void Collection<T>::tell_arrival(std::uint32_t broadcasts, std::uint32_t account, const object::Transit::Cause& cause) {
  if (account == pe_->id()) return transit_.arrived(broadcasts, cause.inserted());
  calls_.rpc_ff(account, object::ArrivalKnown<T>(), me_, broadcasts, cause.inserted());
}

/// Runs what the element has missed. False: it has erased itself.
template <class T>
bool Collection<T>::catch_up(T& element, object::Transit::Cause& cause) {
  auto& of = state(element);
  const Address address = of.address;
  while (of.broadcasts < broadcasts_) {
    if (of.wanted == object::leaves && find_here(address) == nullptr) return false;
    const std::size_t behind = broadcasts_ - of.broadcasts;
    cause.set(++of.broadcasts);
    history_[history_.size() - behind](element);
  }
  return true;
}

/// Broadcasts from number `first` on are needed by elements on this PE's account, or on that of PEs below it. All PEs come
/// here after the same broadcasts. The root, PE 0, hears from all, and tells them what nobody needs. An element that leaves
/// later has had all that its PE has run.
template <class T>
void Collection<T>::need_history(std::uint32_t look, std::uint32_t first) {
  const std::size_t me = pe_->id();
  std::size_t children = 0;
  for (std::size_t bit = 1; (me & bit) == 0 && (me | bit) < pe_->size(); bit <<= 1) ++children;
  const auto at = looks_.try_emplace(look, Look{children + 1, first}).first;
  at->second.first = std::min(at->second.first, first);
  if (--at->second.missing != 0) return;
  const std::uint32_t needed = at->second.first;
  looks_.erase(at);
  if (me == 0) return drop_history(needed);
  calls_.rpc_ff(me & (me - 1), object::NeedHistory<T>(), me_, look, needed);
}

template <class T>
void Collection<T>::drop_history(std::uint32_t first) {
  const std::size_t me = pe_->id();
  for (std::size_t bit = 1; (me & bit) == 0 && (me | bit) < pe_->size(); bit <<= 1) {
    calls_.rpc_ff(me | bit, object::DropHistory<T>(), me_, first);
  }
  while (history_.size() > broadcasts_ - first) history_.pop_front();
}

// --- what elements ask for

template <class T, class Naming>
Element<T, Naming>::Element() {
  const auto* const making = std::exchange(object::Making<T, Naming>::now, nullptr);
  if (making == nullptr) object::throw_not_made_by_collection();
  state_.collection = making->collection;
  state_.address = making->address;
}
template <class T, class Naming>
typename Element<T, Naming>::Name Element<T, Naming>::index() const {
  return state_.collection->name_of(state_.address);
}
template <class T, class Naming>
Pe& Element<T, Naming>::pe() const {
  return state_.collection->pe();
}
template <class T, class Naming>
void Element<T, Naming>::migrate_to(PeId pe) {
  static_assert(object::NamingOf<Naming>::moves, "headway: elements of groups stay where they are");
  if constexpr (object::NamingOf<Naming>::moves && object::require_migratable<T>()) {
    const std::size_t pes = state_.collection->pe().size();
    if (pe >= pes) object::throw_no_such_pe(pe, pes);
    state_.collection->want(static_cast<T&>(*this), std::uint32_t(pe));
  }
}
template <class T, class Naming>
void Element<T, Naming>::erase() {
  static_assert(object::NamingOf<Naming>::sparse, "headway: only elements of sparse arrays can be erased");
  state_.collection->want(static_cast<T&>(*this), object::leaves);
}
template <class T, class Naming>
template <auto method>
Future<> Element<T, Naming>::when(std::int64_t step, std::uint64_t count) {
  return state_.collection->template when<method>(static_cast<T&>(*this), step, count);
}
template <class T, class Naming>
template <class Value, class Op, class Target>
void Element<T, Naming>::contribute(const Value& value, Op op, Target target) {
  state_.collection->contribute(static_cast<T&>(*this), value, op, target);
}

}  // namespace headway
