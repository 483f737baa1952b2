// SPDX-License-Identifier: BSD-3-Clause
/// The places of the elements of an array that is spread over all PEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/aggregate/layout.hpp>
#include <headway/global/pointer.hpp>

namespace headway::global {

/// The layout of a DistArray without its memory. In a loop the compiler can keep a copy of it in registers.
template <class T>
class Places {
 public:
  /// `begin`: the offset of each PE's part in its pool, in bytes.
  Places(const BlockCyclic& layout, std::uint64_t begin) : layout_(layout), begin_(begin) {}

  GlobalPtr<T> operator[](std::size_t i) const {
    const Place place = find(i);
    return {place.pe, place.offset};
  }

  struct Place {
    PeId pe;
    std::uint64_t offset;  // bytes, into the PE's pool
  };
  /// Does not check i.
  Place find(std::size_t i) const {
    const BlockCyclic::Place place = layout_.place(i);
    return {place.owner, begin_ + place.local * sizeof(T)};
  }

 private:
  BlockCyclic layout_;
  std::uint64_t begin_;
};

}  // namespace headway::global
