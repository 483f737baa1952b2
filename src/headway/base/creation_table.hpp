// SPDX-License-Identifier: BSD-3-Clause
/// Objects that all PEs make in the same order and name by their number in that order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/base/error.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace headway::base {

/// A number counts all objects made before, so it is never used again. PEs may remove objects in different orders.
/// Memory is proportional to the existing objects. The address of an object does not change until it is removed.
template <class T>
class CreationTable {
 public:
  static constexpr std::uint32_t no_number = ~std::uint32_t(0);

  /// Returns the number of the new object. UsageError after 2^32 - 1 objects.
  std::uint32_t add(T thing) {
    if (made_ == no_number)
      throw UsageError("4294967295 objects of one kind were made in this run; more are not allowed");
    places_.push_back({made_, std::make_unique<T>(std::move(thing))});
    recent_[made_ % recent_.size()] = {};  // an earlier look-up may have found no object
    return made_++;
  }

  /// nullptr if the object was removed or is not made yet. A repeated look-up costs one comparison.
  T* find(std::uint32_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number != number) [[unlikely]]
      recent = {number, search(number)};
    return recent.thing;
  }
  const T* find(std::uint32_t number) const { return search(number); }

  /// True if an object with that number was made; it may have been removed.
  bool was_made(std::uint32_t number) const { return number < made_; }

  /// Removes an existing object.
  void remove(std::uint32_t number) {
    recent_[number % recent_.size()] = {};
    const auto place = place_of(places_, number);
    const std::unique_ptr<T> thing = std::move(place->thing);
    ++gone_;
    while (!places_.empty() && places_.back().thing == nullptr) {
      places_.pop_back();
      --gone_;
    }
    if (gone_ <= places_.size() / 2) return;
    std::erase_if(places_, [](const Place& one) { return one.thing == nullptr; });
    gone_ = 0;
  }

  /// Calls f(number, object) for each object, in the order of their numbers. f may add objects.
  template <class F>
  void for_each(F f) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (T* const thing = places_[i].thing.get()) f(places_[i].number, *thing);
    }
  }
  template <class F>
  void for_each(F f) const {
    for (const Place& place : places_) {
      if (place.thing != nullptr) f(place.number, std::as_const(*place.thing));
    }
  }

 private:
  struct Place {
    std::uint32_t number;
    std::unique_ptr<T> thing;  // nullptr: removed
  };
  /// The result of the last look-up; nullptr: no such object.
  struct Recent {
    std::uint32_t number = no_number;
    T* thing = nullptr;
  };

  template <class Places>
  static auto place_of(Places& places, std::uint32_t number) {
    return std::ranges::lower_bound(places, number, {}, &Place::number);
  }
  T* search(std::uint32_t number) const {
    const auto place = place_of(places_, number);
    return place != places_.end() && place->number == number ? place->thing.get() : nullptr;
  }

  std::vector<Place> places_;  // by number
  std::size_t gone_ = 0;       // of these
  std::uint32_t made_ = 0;
  std::array<Recent, 64> recent_;
};

}  // namespace headway::base
