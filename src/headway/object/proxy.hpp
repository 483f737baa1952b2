// SPDX-License-Identifier: BSD-3-Clause
/// References to elements, and names of collections that travel in messages.
#pragma once

#include <cstdint>
#include <headway/am/engine.hpp>
#include <headway/call/calls.hpp>
#include <headway/object/collection.hpp>
#include <type_traits>
#include <utility>

namespace headway {

/// A reference to an element, which may be on any PE. It is valid on this PE only; a program sends a Proxy and a name.
template <class T>
class ElementRef {
 public:
  using Address = typename Collection<T>::Address;
  ElementRef(Collection<T>& collection, Address address) : collection_(&collection), address_(std::move(address)) {}

  /// Sends a message that runs the method on the element's PE. There is no answer. Arguments are as those of
  /// Aggregator. For a span, a std::vector may be given, or send_buffer() if its content must not be copied.
  template <auto method, class... Given>
  inline __attribute__((always_inline)) void send(Given&&... given) const {
    const aggregate::ByValueIfSmall<Address> address = address_;
    collection_->template send_to<method>(address, std::forward<Given>(given)...);
  }
  /// Calls the method. The future holds its result, or throws RemoteError with the text of its exception; see rpc().
  template <auto method, class... Given>
  auto rpc(Given&&... given) const {
    return collection_->template rpc_to<method>(address_, std::forward<Given>(given)...);
  }

  /// Makes an element of a sparse array, on its home. The broadcasts and the methods of reduce() that it runs do not
  /// depend on where and when it is made:
  ///
  ///     inserted by a method that a broadcast runs, or by   those after this broadcast
  ///       the constructor of an element inserted so
  ///     inserted otherwise                                  those that this PE has not run yet
  template <class... Args>
  void insert(const Args&... args) const {
    collection_->insert_at(address_, args...);
  }
  /// Destroys an element of a sparse array. Messages that arrived before are handled first.
  void erase() const { collection_->erase_at(address_); }

  Collection<T>& collection() const { return *collection_; }
  const Address& address() const { return address_; }

 private:
  Collection<T>* collection_;
  Address address_;
};

/// The name of a collection, a number of 4 bytes. It is the same on every PE and can be kept in messages, members of
/// elements and checkpoints. On each PE it refers to that PE's part of the collection. Using it is a UsageError before
/// the PE has made the collection, and for a default-constructed Proxy.
template <class T>
class Proxy {
 public:
  Proxy() = default;
  /// Of a Collection<T>. It is a template so that copying a Proxy does not look for conversions to Collection<T>.
  template <class C>
  requires(!std::is_same_v<C, Proxy> && std::is_base_of_v<Collection<T>, C>) explicit Proxy(const C& collection)
      : number_(collection.number()) {}

  Collection<T>& collection() const {
    Collection<T>** const found = DistObject<Collection<T>*>::find(am::Engine::here().pe(), number_);
    if (found == nullptr) object::throw_no_collection(number_);
    return **found;
  }
  /// A template, so that T may be incomplete: classes of elements can have proxies of one another.
  template <class U = T>
  ElementRef<U> operator[](const typename object::NamingOf<typename U::ElementNaming>::Name& name) const {
    return collection()[name];
  }
  template <auto method, class... Given>
  void broadcast(Given&&... given) const {
    collection().template broadcast<method>(std::forward<Given>(given)...);
  }
  template <auto method, class... Given>
  void send(Given&&... given) const {
    collection().template send<method>(std::forward<Given>(given)...);
  }
  template <auto method, class... Given>
  auto rpc(Given&&... given) const {
    return collection().template rpc<method>(std::forward<Given>(given)...);
  }
  template <auto method, class Op, class... Given>
  auto reduce(Op op, Given&&... given) const {
    return collection().template reduce<method>(op, std::forward<Given>(given)...);
  }

  std::uint32_t number() const { return number_; }
  bool operator==(const Proxy&) const = default;

 private:
  std::uint32_t number_ = ~std::uint32_t(0);
};

template <class T>
ElementRef<T> Collection<T>::operator[](const Name& name) {
  return ElementRef<T>(*this, address_of(name));
}
template <class T>
Proxy<T> Collection<T>::proxy() const {
  return Proxy<T>(*this);
}

template <class T, class Naming>
Proxy<T> Element<T, Naming>::proxy() const {
  return Proxy<T>(all());
}

/// The same as element.send<method>(...), for code in templates.
template <auto method, class T, class... Given>
inline __attribute__((always_inline)) void send(const ElementRef<T>& element, Given&&... given) {
  element.template send<method>(std::forward<Given>(given)...);
}
template <auto method, class T, class... Given>
auto rpc(const ElementRef<T>& element, Given&&... given) {
  return element.template rpc<method>(std::forward<Given>(given)...);
}
template <auto method, class T, class... Given>
void broadcast(Collection<T>& collection, Given&&... given) {
  collection.template broadcast<method>(std::forward<Given>(given)...);
}

// --- targets of reductions

namespace object {

/// nullptr if this PE has not made it yet.
template <class T>
Collection<T>* find_for_result(Pe& pe, std::uint32_t collection) {
  Collection<T>** const found = DistObject<Collection<T>*>::find(pe, collection);
  return found == nullptr ? nullptr : *found;
}
/// Sends a result that waited until this PE made the collection.
template <class T, auto method>
struct SendResult {
  template <class Address, class V>
  void operator()(Collection<T>* there, const Address& address, const V& value) const {
    there->template send_to<method>(address, value);
  }
};
template <class T, auto method>
struct BroadcastResult {
  template <class V>
  void operator()(Collection<T>* there, const V& value) const {
    there->template broadcast<method>(value);
  }
};

template <class T, auto method>
struct ToElement {
  std::uint32_t collection;
  typename NamingOf<typename T::ElementNaming>::Address address;
  template <class V>
  void operator()(Pe& pe, const V& value) const {
    if (Collection<T>* const there = find_for_result<T>(pe, collection))
      return there->template send_to<method>(address, value);
    rpc_ff(pe, pe.id(), SendResult<T, method>(), call::DistReference<Collection<T>*>{collection}, address, value);
  }
};
template <class T, auto method>
struct ToAll {
  std::uint32_t collection;
  template <class V>
  void operator()(Pe& pe, const V& value) const {
    if (Collection<T>* const there = find_for_result<T>(pe, collection))
      return there->template broadcast<method>(value);
    rpc_ff(pe, pe.id(), BroadcastResult<T, method>(), call::DistReference<Collection<T>*>{collection}, value);
  }
};
}  // namespace object

/// The target of contribute(): the runtime calls the method with the result, on one element or on all elements of a
/// collection.
template <auto method, class T>
object::ToElement<T, method> to(const ElementRef<T>& element) {
  return {element.collection().number(), element.address()};
}
template <auto method, class T>
object::ToAll<T, method> to(const Proxy<T>& all) {
  return {all.number()};
}
template <auto method, class T>
object::ToAll<T, method> to(const Collection<T>& all) {
  return {all.number()};
}

}  // namespace headway
