// SPDX-License-Identifier: BSD-3-Clause
/// The arrays of a case, and the values by which received elements are checked.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <halo/lists.hpp>
#include <headway/base/random.hpp>
#include <span>
#include <type_traits>
#include <vector>

namespace headway::bench {

/// An element of so many bytes. Sizes that are multiples of 8 consist of words.
template <std::size_t Bytes>
struct HaloElement {
  using Word = std::conditional_t<Bytes % 8 == 0, std::uint64_t, std::uint32_t>;
  static constexpr std::size_t words = Bytes / sizeof(Word);
  std::array<Word, words> word;
  bool operator==(const HaloElement&) const = default;
};

/// Calls body(std::type_identity<HaloElement<bytes>>()); `bytes` is one of halo_element_bytes.
template <class Body>
auto with_halo_element(std::size_t bytes, Body body) {
  if (bytes == 4) return body(std::type_identity<HaloElement<4>>());
  if (bytes == 16) return body(std::type_identity<HaloElement<16>>());
  if (bytes == 24) return body(std::type_identity<HaloElement<24>>());
  if (bytes == 88) return body(std::type_identity<HaloElement<88>>());
  return body(std::type_identity<HaloElement<8>>());
}

/// The arrays of a PE, one for each field.
template <class T>
using HaloArrays = std::vector<std::span<T>>;

/// The value of an element in a round; it depends on owner, field, index and round.
template <class T>
T halo_value(std::size_t owner, std::size_t field, std::uint64_t index, std::uint64_t round) {
  Random random(((owner * 64 + field) << 40) + (round << 32) + index);
  T value;
  for (auto& word : value.word) word = static_cast<typename T::Word>(random.next() >> 8);
  return value;
}

/// Gives all elements of the arrays, ghosts too, this PE's values of a round. No value of a ghost is the expected one.
template <class T>
void fill_halo(const HaloArrays<T>& arrays, std::size_t me, std::uint64_t round) {
  for (std::size_t field = 0; field < arrays.size(); ++field) {
    for (std::size_t i = 0; i < arrays[field].size(); ++i) arrays[field][i] = halo_value<T>(me, field, i, round);
  }
}

/// The received elements that are not their senders' of this round.
template <class T>
std::uint64_t count_halo_errors(const HaloLists& lists, const HaloArrays<T>& arrays, std::uint64_t round) {
  std::uint64_t errors = 0;
  for (std::size_t field = 0; field < arrays.size(); ++field) {
    for (const HaloPartner& from : lists.receives) {
      for (std::size_t i = 0; i < from.indices.size(); ++i)
        errors += arrays[field][from.indices[i]] != halo_value<T>(from.pe, field, from.remote[i], round);
    }
  }
  return errors;
}

/// Changes one bit of the last received element, if there is one.
template <class T>
void corrupt_halo(const HaloLists& lists, const HaloArrays<T>& arrays) {
  if (!lists.receives.empty()) arrays.back()[lists.receives.back().indices.back()].word.back() ^= 1;
}

}  // namespace headway::bench
