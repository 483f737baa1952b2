// SPDX-License-Identifier: BSD-3-Clause
/// Sections: some elements of a collection, which get broadcasts along a tree of their PEs and take part in reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/object/collection.hpp>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headway {

namespace object {

template <class T>
class Sections;

struct RegisterSection {
  template <class T, class Addresses>
  void operator()(Collection<T>* there, std::uint64_t section, std::span<const std::uint32_t> children,
                  const Addresses& members) const {
    there->sections().take(section, children, members);
  }
};
struct ForgetSection {
  template <class T>
  void operator()(Pe&, Collection<T>* there, std::uint64_t section) const {
    there->sections().forget(section);
  }
};
template <class T, auto method>
struct SectionBroadcast {
  template <class... Wires>
  void operator()(Collection<T>* there, std::uint64_t section, const Wires&... wires) const {
    there->sections().template broadcast<method>(section, wires...);
  }
};
template <class T, auto method, class Op>
struct StartSectionReduce {
  template <class... Wires>
  void operator()(Collection<T>* there, std::uint64_t section, std::uint64_t total, const Caller& caller,
                  const Wires&... wires) const {
    there->sections().template start_reduce<method, Op>(section, total, caller, wires...);
  }
};
template <class T, auto method, class Op>
struct SectionReduce {
  template <class... Wires>
  void operator()(Collection<T>* there, std::uint64_t section, std::uint32_t number, std::uint64_t total,
                  const Caller& caller, const Wires&... wires) const {
    there->sections().template reduce<method, Op>(section, number, total, caller, wires...);
  }
};
/// Runs a method on a member, and contributes its result to a reduction.
template <class T, auto method, class Op>
struct GiveToSection {
  template <class Address, class... Wires>
  void operator()(Pe&, PeId source, Collection<T>* there, const Address& address, std::uint32_t version,
                  const ReductionId& id, std::uint64_t total, const Caller& caller, const Wires&... wires) const {
    there->template give_to<method, Op>(source, address, version, id, total, caller, wires...);
  }
};

}  // namespace object

/// The name of a section. It can travel and be kept like a Proxy. See Collection::section().
template <class T>
class Section {
 public:
  Section() = default;
  Section(Proxy<T> all, std::uint64_t number, std::uint64_t size) : all_(all), number_(number), size_(size) {}

  /// Runs a method of every member, once each, on any PE. Broadcasts to sections have no order.
  template <auto method, class... Given>
  void broadcast(Given&&... given) const {
    all_.collection().sections().template send<method>(number_, given...);
  }
  /// Runs a method of every member and combines all results with the operator. UsageError for an empty section.
  template <auto method, class Op, class... Given>
  auto reduce(Op, Given&&... given) const {
    return all_.collection().sections().template ask<method, Op>(number_, size_, given...);
  }
  /// The program does not use the section any more: PEs forget its members. Call quiesce() before.
  void release() const { all_.collection().sections().release(number_); }

  std::uint64_t size() const { return size_; }
  std::uint64_t number() const { return number_; }

 private:
  Proxy<T> all_;
  std::uint64_t number_ = 0;  // (number of the PE that made it + 1) << 32 | count of sections on that PE
  std::uint64_t size_ = 0;
};

namespace object {

/// One PE's part of all sections. The PE that makes a section is the root of its tree. Each other PE has the members
/// that were there as far as the root knew. Messages for members that have moved are forwarded as all messages.
template <class T>
class Sections {
 public:
  using Address = typename Collection<T>::Address;

  explicit Sections(Collection<T>& collection) : collection_(&collection) {}

  Section<T> make(std::vector<Address> members) {
    const std::uint64_t number = (std::uint64_t(pe().id()) + 1) << 32 | made_++;
    const std::size_t size = members.size();
    std::map<std::size_t, std::vector<Address>> by_pe;
    for (Address& member : members) by_pe[collection_->where(member)].push_back(std::move(member));
    std::vector<std::pair<std::size_t, std::vector<Address>>> places;  // the root first
    places.emplace_back(pe().id(), std::move(by_pe[pe().id()]));
    by_pe.erase(pe().id());
    for (auto& place : by_pe) places.push_back(std::move(place));
    for (std::size_t i = places.size(); i-- > 0;) {
      std::vector<std::uint32_t> children;
      for (std::size_t bit = 1; (i & bit) == 0 && (i | bit) < places.size(); bit <<= 1) {
        children.push_back(std::uint32_t(places[i | bit].first));
      }
      if (i == 0)
        take(number, children, places[0].second);
      else
        calls().rpc_ff(places[i].first, RegisterSection(), collection_->me(), number,
                       std::span<const std::uint32_t>(children), places[i].second);
    }
    return Section<T>(collection_->proxy(), number, size);
  }

  /// Members that were on this PE when the section was made.
  std::size_t size_here(std::uint64_t number) const {
    const auto found = parts_.find(number);
    return found == parts_.end() ? 0 : found->second.members.size();
  }

  template <auto method, class... Given>
  void send(std::uint64_t number, Given&... given) {
    if constexpr (require_entry_method<T, method, Given&...>()) {
      with_wires<method>(
          [&](const auto&... wires) {
            calls().rpc_ff(root_of(number), SectionBroadcast<T, method>(), collection_->me(), number, wires...);
          },
          given...);
    }
  }
  template <auto method, class Op, class... Given>
  auto ask(std::uint64_t number, std::uint64_t size, Given&... given) {
    if constexpr (require_entry_method<T, method, Given&...>()) {
      using R = AnswerTo<method>;
      static_assert(has_no_steps<T, method>, "headway: a method with steps gives no answer: use send() or broadcast()");
      static_assert(!std::is_void_v<R> && !is_coroutine<method>,
                    "headway: the method of reduce() must return a value and must not be a coroutine");
      if constexpr (require_operator<Op, R>()) {
        if (size == 0) throw_nothing_to_reduce();
        Request<R> request(pe());
        with_wires<method>(
            [&](const auto&... wires) {
              calls().rpc_ff(root_of(number), StartSectionReduce<T, method, Op>(), collection_->me(), number, size,
                             request.caller, wires...);
            },
            given...);
        return request.future();
      }
    }
  }
  void release(std::uint64_t number) { calls().rpc_ff(root_of(number), ForgetSection(), collection_->me(), number); }

  // --- handlers of messages

  void take(std::uint64_t number, std::span<const std::uint32_t> children, const std::vector<Address>& members) {
    parts_[number] = {members, {children.begin(), children.end()}, 0};
    const auto found = early_.find(number);
    if (found == early_.end()) return;
    auto messages = std::move(found->second);
    early_.erase(found);
    for (auto& [scope, run] : messages) calls().take_up(scope, std::move(run));
  }
  void forget(std::uint64_t number) {
    const auto found = parts_.find(number);
    if (found == parts_.end()) return;
    for (const std::uint32_t child : found->second.children)
      calls().rpc_ff(child, ForgetSection(), collection_->me(), number);
    parts_.erase(found);
  }
  template <auto method, class... Wires>
  void broadcast(std::uint64_t number, const Wires&... wires) {
    Part* const part = part_or_later(
        number, [this](std::uint64_t n, const Wires&... w) { broadcast<method>(n, w...); }, wires...);
    if (part == nullptr) return;
    for (const std::uint32_t child : part->children) {
      calls().rpc_ff(child, SectionBroadcast<T, method>(), collection_->me(), number, wires...);
    }
    for (const Address& member : part->members) {
      collection_->template deliver<method>(pe().id(), member, 0, wires...);
    }
  }
  template <auto method, class Op, class... Wires>
  void start_reduce(std::uint64_t number, std::uint64_t total, const Caller& caller, const Wires&... wires) {
    reduce<method, Op>(number, parts_.at(number).reductions++, total, caller, wires...);
  }
  template <auto method, class Op, class... Wires>
  void reduce(std::uint64_t number, std::uint32_t count, std::uint64_t total, const Caller& caller,
              const Wires&... wires) {
    Part* const part = part_or_later(
        number,
        [this](std::uint64_t n, std::uint32_t c, std::uint64_t t, const Caller& a, const Wires&... w) {
          reduce<method, Op>(n, c, t, a, w...);
        },
        count, total, caller, wires...);
    if (part == nullptr) return;
    for (const std::uint32_t child : part->children) {
      calls().rpc_ff(child, SectionReduce<T, method, Op>(), collection_->me(), number, count, total, caller, wires...);
    }
    const ReductionId id{number | by_reduce, count};
    for (const Address& member : part->members) {
      collection_->template give_to<method, Op>(pe().id(), member, 0, id, total, caller, wires...);
    }
  }

 private:
  struct Part {
    std::vector<Address> members;
    std::vector<std::uint32_t> children;
    std::uint32_t reductions = 0;  // started by reduce(), on the root
  };
  /// Set in the stream of reductions that reduce() starts; not set for those that members contribute to.
  static constexpr std::uint64_t by_reduce = std::uint64_t(1) << 63;

  Pe& pe() const { return collection_->pe(); }
  CallAggregator& calls() { return collection_->calls(); }
  static PeId root_of(std::uint64_t number) { return (number >> 32) - 1; }

  /// nullptr if this PE has not heard of the section yet. Then again(number, wires...) runs when it has.
  template <class Again, class... Wires>
  Part* part_or_later(std::uint64_t number, Again again, const Wires&... wires) {
    const auto found = parts_.find(number);
    if (found != parts_.end()) return &found->second;
    std::tuple<OwnedWire<Wires>...> owned(OwnedWire<Wires>(own(wires))...);
    early_[number].push_back({calls().set_aside(), [number, again, owned = std::move(owned)] {
                                std::apply([&](const auto&... mine) { again(number, lend<Wires>(mine)...); }, owned);
                              }});
    return nullptr;
  }

  Collection<T>* collection_;
  std::uint32_t made_ = 0;
  std::unordered_map<std::uint64_t, Part> parts_;
  std::unordered_map<std::uint64_t, std::vector<WaitingMessage>> early_;
};

}  // namespace object

template <class T>
Section<T> Collection<T>::section(const std::vector<Name>& members) {
  std::vector<Address> addresses;
  addresses.reserve(members.size());
  for (const Name& member : members) addresses.push_back(address_of(member));
  return sections_->make(std::move(addresses));
}

template <class T>
std::size_t Collection<T>::section_size_here(std::uint64_t section) const {
  return sections_->size_here(section);
}

template <class T>
template <auto method, class Op, class... Wires>
void Collection<T>::give_to(PeId source, const Address& address, std::uint32_t version, const object::ReductionId& id,
                            std::uint64_t total, const object::Caller& caller, const Wires&... wires) {
  T* const element = find_here(address);
  if (element == nullptr) {
    return forward_or_keep(source, address, version, object::GiveToSection<T, method, Op>(), id, total, caller,
                           wires...);
  }
  using R = object::AnswerTo<method>;
  const Timer timer(*this, state(*element));
  const R result = (element->*method)(wires...);
  timer.stop();
  reductions_.give(id, 1, total, result, Op(), object::ToCaller<R>{caller});
}

template <class T, class Naming>
template <class Value, class Op, class Target>
void Element<T, Naming>::contribute(const Section<T>& section, const Value& value, Op op, Target target) {
  all().contribute_to(static_cast<T&>(*this), section, value, op, target);
}

template <class T>
template <class Value, class Op, class Target>
void Collection<T>::contribute_to(T& element, const Section<T>& section, const Value& value, Op op, Target target) {
  reductions_.give({section.number(), next_section_reduction(base_of(element), section.number())}, 1, section.size(),
                   value, op, target);
}

}  // namespace headway
