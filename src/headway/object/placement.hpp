/// Where elements begin: which PE is the home of each.
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

/// The home of each element: where it is made, and where others ask for it once it has moved. See block() and so on.
struct Placement {
  enum class Kind : std::uint8_t { automatic, block, cyclic, hashed, own };
  Kind kind = Kind::automatic;
  std::any function;  // of own: std::function<PeId(const Name&)>
};

/// Neighbours together: PEs have consecutive numbers, row by row, of a dense array. What a dense one has unless told
/// otherwise.
inline Placement block() { return {Placement::Kind::block, {}}; }
/// Number i of a dense array on PE i % pes.
inline Placement cyclic() { return {Placement::Kind::cyclic, {}}; }
/// By the hash of the name. What a sparse one has unless told otherwise.
inline Placement hashed() { return {Placement::Kind::hashed, {}}; }
/// By the program's function, of the name (an Index, a key) alone: the same on every PE, a PE each time.
///
///     headway::place<headway::Index<2>>([n](const auto& index) { return headway::PeId(index[0] % n); })
template <class Name, class Function>
Placement place(Function function) {
  return {Placement::Kind::own, std::function<PeId(const Name&)>(std::move(function))};
}

namespace object {

/// Mixes bits: standard hashes of integers are the integers.
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
  /// floor(number * pes / size): the upper half of number * ceil(2^64 * pes / size), exactly, for numbers below 2^32.
  static std::size_t block_of(std::uint32_t number, std::uint64_t factor) {
    return std::size_t(__extension__(unsigned __int128)(number) * factor >> 64);
  }
  /// Of that; 0: it is found in another way.
  std::uint64_t factor() const { return factor_; }
  std::uint32_t size() const { return size_; }
  std::size_t pes() const { return pes_; }
  bool is_block() const { return kind_ == Placement::Kind::block; }
  /// With block: the first number of a PE.
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
