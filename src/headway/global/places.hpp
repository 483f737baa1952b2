/// Where the elements of an array that is spread over all PEs are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/layout.hpp>
#include <headway/global/pointer.hpp>

namespace headway {

/// Of a DistArray, without its memory: for loops, whose compiler can keep a copy of it in registers.
template <class T>
class Places {
 public:
  /// `begin`: of each PE's part in its pool.
  Places(const BlockCyclic& layout, std::uint64_t begin) : layout_(layout), begin_(begin) {}

  GlobalPtr<T> operator[](std::size_t i) const {
    const Place place = find(i);
    return {place.pe, place.offset};
  }

  struct Place {
    PeId pe;
    std::uint64_t offset;  // bytes, into the PE's pool
  };
  /// Not looked at is whether there is one.
  Place find(std::size_t i) const {
    const BlockCyclic::Place place = layout_.place(i);
    return {place.owner, begin_ + place.local * sizeof(T)};
  }

 private:
  BlockCyclic layout_;
  std::uint64_t begin_;
};

}  // namespace headway
