// SPDX-License-Identifier: BSD-3-Clause
/// The home PE of each element.
#pragma once

#include <algorithm>
#include <any>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/object/index.hpp>
#include <headway/transport/frame.hpp>
#include <memory>
#include <type_traits>
#include <utility>

namespace headway {

/// Assigns a home to each element: the PE on which the element is made. Other PEs send messages to the home if they do
/// not know where the element has moved. The functions below make a Placement. `automatic` is block() for dense arrays
/// and hashed() for sparse arrays.
struct Placement {
  enum class Kind : std::uint8_t { automatic, block, cyclic, hashed, own };
  Kind kind = Kind::automatic;
  std::any function;  // of own: std::function<PeId(const Name&)>
};

/// Each PE is the home of consecutive elements of a dense array, which is numbered row by row.
inline Placement block() { return {Placement::Kind::block, {}}; }
/// PE i % pes is the home of element number i of a dense array.
inline Placement cyclic() { return {Placement::Kind::cyclic, {}}; }
/// The hash of the name gives the home.
inline Placement hashed() { return {Placement::Kind::hashed, {}}; }
/// function(name) gives the home, for an Index or a key. It must return the same PE for a name on every PE and at every
/// call.
///
///     headway::place<headway::Index<2>>([n](const auto& index) { return headway::PeId(index[0] % n); })
template <class Name, class Function>
Placement place(Function function) {
  return {Placement::Kind::own, std::function<PeId(const Name&)>(std::move(function))};
}

namespace object {

/// Mixes the bits of a hash, because the standard hash of an integer is the integer itself.
inline std::uint64_t mixed(std::uint64_t hash) {
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  return hash ^ hash >> 32;
}

/// The homes of a dense array's elements, by number.
class DenseHomes {
 public:
  DenseHomes(std::uint32_t size, std::size_t pes, Placement::Kind kind, std::function<PeId(std::uint32_t)> own);

  /// The home of an element. UsageError for a number of size() or more.
  PeId operator()(std::uint32_t number) const {
    if (number >= size_) throw_outside(number, size_);
    if (factor_ != 0) return block_of(number, factor_);
    return elsewhere(number);
  }
  /// floor(number * pes / size) without a division: the upper 64 bits of number * factor, with the factor
  /// ceil(2^64 * pes / size). Exact for numbers below 2^32.
  static std::size_t block_of(std::uint32_t number, std::uint64_t factor) {
    return std::size_t(__extension__(unsigned __int128)(number) * factor >> 64);
  }
  /// The factor for block_of(). 0 with another placement than block(), and if there are no more elements than PEs.
  std::uint64_t factor() const { return factor_; }
  std::uint32_t size() const { return size_; }
  std::size_t pes() const { return pes_; }
  bool is_block() const { return kind_ == Placement::Kind::block; }
  /// With block(): the smallest number with its home on that PE.
  std::uint32_t first(std::size_t pe) const { return std::uint32_t((std::uint64_t(pe) * size_ + pes_ - 1) / pes_); }

 private:
  PeId elsewhere(std::uint32_t number) const;

  std::uint32_t size_;
  std::size_t pes_;
  Placement::Kind kind_;
  std::uint64_t factor_ = 0;
  std::function<PeId(std::uint32_t)> own_;
};

}  // namespace object

}  // namespace headway
