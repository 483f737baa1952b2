// SPDX-License-Identifier: BSD-3-Clause
/// Names of elements in programs, and their addresses in messages.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace headway {

namespace object {

[[noreturn]] void throw_coordinate(std::int64_t coordinate);
[[noreturn]] void throw_outside(const std::int32_t* index, const std::int32_t* extents, unsigned dimensions);
[[noreturn]] void throw_outside(std::uint32_t number, std::uint32_t size);

/// UsageError for a coordinate that is negative or at least 2^31.
template <class I>
constexpr std::int32_t coordinate(I i) {
  const auto narrow = static_cast<std::int32_t>(i);
  if constexpr (sizeof(I) >= sizeof(std::int32_t) && !std::is_same_v<I, std::int32_t>) {
    if (!std::in_range<std::int32_t>(i)) throw_coordinate(static_cast<std::int64_t>(i));
  }
  return narrow;
}

}  // namespace object

/// The place of an element in a dense array of 1 to 6 dimensions: `cells[{i, j}]`, `cells[i]`.
template <unsigned dimensions>
requires(dimensions >= 1 && dimensions <= 6) struct Index {
  std::array<std::int32_t, dimensions> at{};

  constexpr Index() = default;
  template <class... I>
  requires(sizeof...(I) == dimensions && (std::integral<I> && ...)) constexpr Index(I... i)
      : at{object::coordinate(i)...} {}

  constexpr std::int32_t operator[](unsigned dimension) const { return at[dimension]; }
  constexpr std::int32_t& operator[](unsigned dimension) { return at[dimension]; }
  auto operator<=>(const Index&) const = default;
};

/// How the elements of a collection are named: the second argument of Element is Index<d> or one of these types.
template <class Key>
struct Sparse {};      // by a hashable, sendable key; the program inserts and erases elements
struct PerPe {};       // one on each PE, named by the PE's number (a group)
struct PerProcess {};  // one in each process, named by its number; on the first PE of the process
struct Single {};      // only one

namespace object {

/// `Name` is the type that programs use, `Address` the type that messages carry.
template <class Naming>
struct NamingOf;
template <unsigned d>
struct NamingOf<Index<d>> {
  using Name = Index<d>;
  using Address = std::uint32_t;
  static constexpr unsigned dimensions = d;
  static constexpr bool dense = true, sparse = false, moves = true;
};
template <class Key>
struct NamingOf<Sparse<Key>> {
  using Name = Key;
  using Address = Key;
  static constexpr unsigned dimensions = 0;
  static constexpr bool dense = false, sparse = true, moves = true;
};
struct NamingByNumber {
  using Name = std::size_t;
  using Address = std::uint32_t;
  static constexpr unsigned dimensions = 1;
  static constexpr bool dense = true, sparse = false;
};
template <>
struct NamingOf<PerPe> : NamingByNumber {
  static constexpr bool moves = false;
};
template <>
struct NamingOf<PerProcess> : NamingByNumber {
  static constexpr bool moves = false;
};
template <>
struct NamingOf<Single> : NamingByNumber {
  static constexpr bool moves = true;
};

/// The extents of a dense array. Converts an index to a number, row by row, and back.
template <unsigned d>
class Form {
 public:
  /// SettingError for a negative extent, and for 2^32 - 1 elements or more.
  explicit Form(const std::array<std::int32_t, d>& extents);

  std::uint32_t size() const { return size_; }
  const std::array<std::int32_t, d>& extents() const { return extents_; }

  /// UsageError for an index outside. In one dimension the result is the index; DenseHomes compares it with the size.
  std::uint32_t number(const std::array<std::int32_t, d>& index) const {
    if constexpr (d == 1) {
      return std::uint32_t(index[0]);
    } else {
      std::uint32_t sum = 0;
      bool outside = false;
      for (unsigned k = 0; k < d; ++k) {
        sum = sum * std::uint32_t(extents_[k]) + std::uint32_t(index[k]);
        outside |= std::uint32_t(index[k]) >= std::uint32_t(extents_[k]);
      }
      if (outside) [[unlikely]]
        refuse(index);
      return sum;
    }
  }
  std::array<std::int32_t, d> index(std::uint32_t number) const {
    std::array<std::int32_t, d> index;
    for (unsigned k = d; k-- > 0; number /= std::uint32_t(extents_[k])) {
      index[k] = std::int32_t(number % std::uint32_t(extents_[k]));
    }
    return index;
  }

 private:
  [[noreturn]] __attribute__((noinline, cold)) void refuse(std::array<std::int32_t, d> index) const {
    throw_outside(index.data(), extents_.data(), d);
  }

  std::array<std::int32_t, d> extents_;
  std::uint32_t size_;
};

/// The number of elements. SettingError as in Form.
std::uint32_t checked_size(const std::int32_t* extents, unsigned dimensions);

template <unsigned d>
Form<d>::Form(const std::array<std::int32_t, d>& extents) : extents_(extents), size_(checked_size(extents.data(), d)) {}

}  // namespace object

}  // namespace headway

template <unsigned d>
struct std::hash<headway::Index<d>> {
  std::size_t operator()(const headway::Index<d>& index) const noexcept {
    std::uint64_t mixed = 0;
    for (const std::int32_t i : index.at) mixed = (mixed ^ std::uint32_t(i)) * 0x9e3779b97f4a7c15 + (mixed >> 29);
    return std::size_t(mixed ^ mixed >> 32);
  }
};
