// SPDX-License-Identifier: BSD-3-Clause
/// Objects that other PEs know by a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace headway::transfer {

/// A number has the place of an object and the earlier uses of that place, so the number of a removed object stays
/// invalid. Objects do not move.
template <class T>
class NumberedTable {
 public:
  struct Added {
    std::uint64_t number;
    T& object;
  };
  std::uint64_t add(T object) { return emplace(std::move(object)).number; }
  /// Adds T(args...).
  template <class... Args>
  Added emplace(Args&&... args) {
    if (free_.empty()) {
      free_.push_back(std::uint32_t(places_.size()));
      places_.emplace_back();
    }
    const std::uint32_t at = free_.back();
    Place& place = places_[at];
    T& object = place.object.emplace(std::forward<Args>(args)...);
    free_.pop_back();
    return {std::uint64_t(place.uses) << 32 | at, object};
  }

  /// nullptr if the object was removed or never added.
  T* find(std::uint64_t number) {
    const std::uint64_t at = number & 0xffffffff;
    if (at >= places_.size() || places_[at].uses != number >> 32 || !places_[at].object) return nullptr;
    return &*places_[at].object;
  }
  /// Whether the object was removed.
  bool is_gone(std::uint64_t number) const {
    const std::uint64_t at = number & 0xffffffff;
    return at < places_.size() && number >> 32 < places_[at].uses;
  }

  /// Removes and returns an object that is in the table.
  T take(std::uint64_t number) {
    T object = std::move(*places_[std::uint32_t(number)].object);
    remove(number);
    return object;
  }
  void remove(std::uint64_t number) {
    const auto at = std::uint32_t(number);
    places_[at].object.reset();
    ++places_[at].uses;
    free_.push_back(at);
  }

 private:
  struct Place {
    std::optional<T> object;
    std::uint32_t uses = 0;
  };
  std::deque<Place> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace headway::transfer
