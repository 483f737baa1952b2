/// Things that all PEs make in the same order and know by their number in that order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <headway/base/error.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace headway {

/// A number counts all things made before, so it names one thing for ever: the number of a removed thing names nothing.
/// PEs may remove things in different order. Memory is proportional to the things that are there. A thing stays where
/// it is until it is removed.
template <class T>
class CreationTable {
 public:
  static constexpr std::uint32_t no_number = ~std::uint32_t(0);

  /// Returns the number of the new thing. UsageError after 2^32 - 1 things.
  std::uint32_t add(T thing) {
    if (made_ == no_number) throw UsageError("more than 4294967295 of a kind were made in one run");
    places_.push_back({made_, std::make_unique<T>(std::move(thing))});
    recent_[made_ % recent_.size()] = {};  // somebody may have looked for it already
    return made_++;
  }

  /// nullptr for a thing that is gone, or not made yet. A look-up that repeats costs a comparison.
  T* find(std::uint32_t number) {
    Recent& recent = recent_[number % recent_.size()];
    if (recent.number != number) [[unlikely]]
      recent = {number, search(number)};
    return recent.thing;
  }
  const T* find(std::uint32_t number) const { return search(number); }

  /// Whether a thing of that number was made; it may be gone.
  bool was_made(std::uint32_t number) const { return number < made_; }

  /// Of a thing that is there.
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

  /// f(number, thing) for each, in the order of their numbers. f may add things.
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
    std::unique_ptr<T> thing;  // nullptr: it is gone
  };
  /// The result of the last look-up; nullptr for a thing that is not there.
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

}  // namespace headway
