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

/// How homes are assigned. An element is made on its home, and other PEs send there if they do not know where it has
/// moved. See block() and the functions below it.
struct Placement {
  enum class Kind : std::uint8_t { automatic, block, cyclic, hashed, own };
  Kind kind = Kind::automatic;
  std::any function;  // of own: std::function<PeId(const Name&)>
};

/// Consecutive numbers of a dense array, row by row, on each PE. The default of dense arrays.
inline Placement block() { return {Placement::Kind::block, {}}; }
/// Number i of a dense array on PE i % pes.
inline Placement cyclic() { return {Placement::Kind::cyclic, {}}; }
/// By the hash of the name. The default of sparse arrays.
inline Placement hashed() { return {Placement::Kind::hashed, {}}; }
/// By a function of the name (an Index or a key). It must give the same PE for a name on every PE and at every call.
///
///     headway::place<headway::Index<2>>([n](const auto& index) { return headway::PeId(index[0] % n); })
template <class Name, class Function>
Placement place(Function function) {
  return {Placement::Kind::own, std::function<PeId(const Name&)>(std::move(function))};
}

namespace object {

/// Mixes bits: the standard hash of an integer is the integer itself.
inline std::uint64_t mixed(std::uint64_t hash) {
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  return hash ^ hash >> 32;
}

/// The homes of a dense array's elements, by number.
class DenseHomes {
 public:
  DenseHomes(std::uint32_t size, std::size_t pes, Placement::Kind kind, std::function<PeId(std::uint32_t)> own);

  /// UsageError for a number outside.
  PeId operator()(std::uint32_t number) const {
    if (number >= size_) throw_outside(number, size_);
    if (factor_ != 0) return block_of(number, factor_);
    return elsewhere(number);
  }
  /// floor(number * pes / size) without a division: the upper half of number * ceil(2^64 * pes / size). Exact for
  /// numbers below 2^32.
  static std::size_t block_of(std::uint32_t number, std::uint64_t factor) {
    return std::size_t(__extension__(unsigned __int128)(number) * factor >> 64);
  }
  /// The factor for block_of(); 0 if homes are not computed like that.
  std::uint64_t factor() const { return factor_; }
  std::uint32_t size() const { return size_; }
  std::size_t pes() const { return pes_; }
  bool is_block() const { return kind_ == Placement::Kind::block; }
  /// With block(): the first number of a PE.
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
