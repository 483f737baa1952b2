// SPDX-License-Identifier: BSD-3-Clause
/// How a collection makes, moves, erases and restores its elements. Included by collection.hpp.
#pragma once

#include <headway/object/collection.hpp>
#include <string>
#include <utility>

namespace headway {

namespace object {

[[noreturn]] void throw_key_exists();
[[noreturn]] void throw_bytes_left(std::size_t bytes, std::size_t left);
[[noreturn]] void throw_name_exists();
/// FormatError if messages wait in an element that is restored. Contributions to sections are dropped: a restart has
/// none.
void check_restored(RareState& rare);

template <class T, class Archive>
void serialize_with_rare(T& element, std::unique_ptr<RareState>& rare, Archive& archive) {
  bool has_rare = rare != nullptr;
  archive(has_rare);
  if (has_rare) {
    if (!rare) rare = std::make_unique<RareState>();
    archive(*rare);
  }
  element.serialize(archive);
}

/// The options of a class's entries: those of the class, unless the program gives others.
template <class T>
std::vector<AggregatorOptions> entry_options(const CollectionOptions& options) {
  std::vector<AggregatorOptions> chosen = declared_options(entries_of<T>());
  std::vector<std::size_t> given;
  for (const auto& of_method : options.methods) given.push_back(entry_of_tag<T>(of_method.tag));
  choose_options(chosen, options, given);
  return chosen;
}

}  // namespace object

// --- making

template <class T>
Collection<T>::Collection(Made, Pe& pe, const CollectionOptions& options, const object::FormOf<Naming>& form)
    : CollectionBase(pe, options,
                     {Traits::dense, form.size(), object::Counters<T>::triggers, object::Counters<T>::count}),
      locations_(pe, options, form),
      aggregators_(pe, object::entry_options<T>(options)),
      sections_(std::make_unique<object::Sections<T>>(*this)),
      me_(pe, this) {
  object::for_each_typed<object::EntriesOf<T>>([&]<std::size_t entry, auto method>() {
    auto& aggregator = aggregators_.template get<entry>();
    if constexpr (!std::is_same_v<std::remove_reference_t<decltype(aggregator)>, CallAggregator>)
      listen<method>(object::WiresOf<method>(), aggregator);
  });
}

template <class T>
template <class... Args>
void Collection<T>::make_all(const CollectionOptions& options, const Args&... args) {
  constexpr bool made = is_made_from<Args...>;
  static_assert(made, "headway: the class of the elements has no constructor for the arguments of the collection");
  if constexpr (made) {
    if (!options.empty) locations_.for_each_home(pe().id(), [&](std::uint32_t number) { make(number, args...); });
  }
  set_complete();
}

template <class T>
template <class... Args>
T& Collection<T>::make(const Address& address, const Args&... args) {
  const object::Construction<T, Naming> construction{this, address};
  object::Construction<T, Naming>::current = &construction;
  std::unique_ptr<T> element(new T(args...));
  enter(locations_.at(address), *element);
  return *element.release();
}

template <class T>
std::unique_ptr<T> Collection<T>::make_from(const Address& address, std::span<const std::byte> content) {
  const object::Construction<T, Naming> construction{this, address};
  object::Construction<T, Naming>::current = &construction;
  std::unique_ptr<T> element(new T());
  ByteReader reader(content);
  object::serialize_with_rare(*element, state(*element).rare, reader);
  if (reader.remaining() != 0) object::throw_bytes_left(content.size(), reader.remaining());
  return element;
}

template <class T>
void Collection<T>::enter(object::Location& location, T& element) {
  const Address& address = address_of_element(element);
  object::ElementState& of = state(element);
  if constexpr (Traits::dense) {
    if (of.target == object::no_target) of.number = address;
  }
  add(base_of(element));
  locations_.set(address, location, &base_of(element));
  location.pe = std::uint32_t(pe().id());
  if (!waiting_.empty()) deliver_waiting(address);
}

template <class T>
void Collection<T>::leave(object::Location& location, T& element) {
  remove(base_of(element));
  locations_.set(address_of_element(element), location, nullptr);
}

template <class T>
template <class... Args>
void Collection<T>::insert(const Address& key, const object::InsertHeader& header, const Args&... args) {
  object::Location& location = locations_.at(key);
  if (location.element != nullptr || location.pe != pe().id()) object::throw_key_exists();
  size_known_ = false;
  ++location.version;
  transit_.hear(header.broadcasts);
  object::Transit::Cause cause(transit_, header.account, header.broadcasts);
  end_insertion(base_of(make(key, args...)), header, cause);
}

// --- moving

template <class T>
bool Collection<T>::apply_move(object::ElementBase& base) {
  T& element = element_of(base);
  object::ElementState& of = state_of(base);
  if (must_stay(of)) return true;
  const std::uint32_t target = std::exchange(of.target, object::no_target);
  if constexpr (Traits::dense) of.number = address_of_element(element);
  if (target == pe().id()) return true;
  if (target != object::erase_target) {
    if constexpr (object::Migratable<T> && Traits::moves) {
      depart(element, target);
      return false;
    }
    return true;
  }
  if constexpr (Traits::sparse) {
    const Address address = address_of_element(element);
    object::Location& location = locations_.at(address);
    leave(location, element);
    destroy(element);
    size_known_ = false;
    location.pe = std::uint32_t(locations_.home(address));
    ++location.version;
    locations_.set_any_moved();
    if (location.pe != pe().id()) tell(location.pe, address, location.pe, location.version);
    return false;
  }
  return true;
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
  const std::vector<std::byte> content = pack(element);
  const Address address = address_of_element(element);
  object::Location& location = locations_.at(address);
  const object::MoveHeader header = begin_move(base_of(element), location.version + 1, content.size());
  leave(location, element);
  destroy(element);
  locations_.learn(address, pe, header.version);
  mark_move(pe, content.size());
  calls_.rpc_ff(pe, object::Arrive<T>(), me_, address, header, std::span<const std::byte>(content));
}

template <class T>
void Collection<T>::arrive(PeId source, const Address& address, const object::MoveHeader& header,
                           std::span<const std::byte> content) {
  if constexpr (object::Migratable<T>) {
    std::unique_ptr<T> element = make_from(address, content);
    object::Location& location = locations_.at(address);
    if (location.element != nullptr) object::throw_key_exists();
    location.version = header.version;
    locations_.set_any_moved();
    T& here = *element.release();
    enter(location, here);
    end_move(base_of(here), header);
    if (const PeId home = locations_.home(address); home != pe().id() && home != source) {
      tell(home, address, pe().id(), header.version);
    }
    transit_.hear(header.broadcasts);
    object::Transit::Cause cause(transit_, std::uint32_t(source), header.broadcasts);
    if constexpr (requires { here.arrived(); }) here.arrived();
    const bool stays = catch_up(base_of(here), cause);
    tell_arrival(header.broadcasts, std::uint32_t(source), cause);
    if (stays) release_all(base_of(here));
  }
}

template <class T>
void Collection<T>::restore(const Address& address, std::span<const std::byte> content) {
  if constexpr (object::require_migratable<T>()) {
    std::unique_ptr<T> element = make_from(address, content);
    if (auto& rare = state(*element).rare) object::check_restored(*rare);
    object::Location& location = locations_.at(address);
    if (location.element != nullptr) object::throw_name_exists();
    enter(location, *element);
    if constexpr (Traits::sparse) state(*element).reductions = object::not_counted;
    element.release();
  }
}

// --- messages for elements that are not on this PE

template <class T>
PeId Collection<T>::next_pe(const Address& address, std::uint32_t version, std::uint32_t& known) {
  ++missed_;
  const object::Location* const location = locations_.find(address);
  known = location != nullptr ? location->version : 0;
  if (version > known) return pe().id();  // the news by which it was sent here arrives later, with the element
  return location != nullptr ? PeId(location->pe) : locations_.home(address);
}

template <class T>
void Collection<T>::deliver_waiting(const Address& address) {
  const auto found = waiting_.find(address);
  if (found == waiting_.end()) return;
  auto messages = std::move(found->second);
  waiting_.erase(found);
  for (auto& [scope, run] : messages) calls_.take_up(scope, std::move(run));
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
      return follow<object::AnswerTo<method>>(self, &base_of(*element), (element->*method)(wires...));
    else
      return (element->*method)(wires...);
  }
};

// --- requests of elements

template <class T, class Naming>
Element<T, Naming>::Element() {
  const auto* const construction = std::exchange(object::Construction<T, Naming>::current, nullptr);
  if (construction == nullptr) object::throw_not_made_by_collection();
  state_.collection = construction->collection;
  address_ = construction->address;
}
template <class T, class Naming>
typename Element<T, Naming>::Name Element<T, Naming>::index() const {
  return all().name_of(address_);
}
template <class T, class Naming>
Pe& Element<T, Naming>::pe() const {
  return state_.collection->pe();
}
template <class T, class Naming>
void Element<T, Naming>::migrate_to(PeId pe) {
  static_assert(object::NamingOf<Naming>::moves, "headway: elements of groups cannot move");
  if constexpr (object::NamingOf<Naming>::moves && object::require_migratable<T>()) {
    const std::size_t pes = state_.collection->pe().size();
    if (pe >= pes) object::throw_no_such_pe(pe, pes);
    state_.collection->request_move(*this, std::uint32_t(pe));
  }
}
template <class T, class Naming>
void Element<T, Naming>::erase() {
  static_assert(object::NamingOf<Naming>::sparse, "headway: only elements of sparse arrays can be erased");
  state_.collection->request_move(*this, object::erase_target);
}
template <class T, class Naming>
template <auto method>
Future<> Element<T, Naming>::when(std::int64_t step, std::uint64_t count) {
  return all().template when<method>(static_cast<T&>(*this), step, count);
}
template <class T, class Naming>
template <class Value, class Op, class Target>
void Element<T, Naming>::contribute(const Value& value, Op op, Target target) {
  all().contribute(static_cast<T&>(*this), value, op, target);
}

}  // namespace headway
