// SPDX-License-Identifier: BSD-3-Clause
/// Blocks of collectives: how a block travels, and the blocks of one call on one PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/collective/reduce.hpp>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway::collective {

// FormatErrors that state the actual and the expected value.
[[noreturn]] void fail_value_count(std::uint64_t count);
[[noreturn]] void fail_block_length(std::uint64_t count, std::uint64_t expected);
[[noreturn]] void fail_segment_length(std::uint64_t bytes, std::uint64_t expected);

/// A block that is one value.
template <class V>
struct ValueBlock {
  using Type = V;
  using Element = V;

  static std::uint64_t count(const V&) { return 1; }
  static std::span<const V> part(const V& block, Part) { return {&block, 1}; }
  /// One of each of `like`, to be replaced.
  static std::vector<V> places(const std::vector<V>& like) { return like; }
  static std::vector<V> places(std::size_t members, const V& like) { return std::vector<V>(members, like); }

  template <class Place>
  static void take(Place& place, std::uint64_t count, Part, Bytes bytes) {
    if (count != 1) fail_value_count(count);
    Codec<V>::decode(bytes, 1, [&](std::size_t, V&& value) { place = std::move(value); });
  }
  template <class Op>
  static void reduce(const Op& op, V& running, const V& other) {
    running = static_cast<V>(op(std::as_const(running), other));
  }
};

/// A block of trivially copyable elements, which travels in segments.
template <class T>
struct VectorBlock {
  using Type = std::vector<T>;
  using Element = T;

  static std::uint64_t count(const Type& block) { return block.size(); }
  static std::span<const T> part(const Type& block, Part part) {
    return std::span(block).subspan(part.first, part.count);
  }
  static std::vector<Type> places(const std::vector<Type>& like) { return std::vector<Type>(like.size()); }
  static std::vector<Type> places(std::size_t members, const Type&) { return std::vector<Type>(members); }

  static void take(Type& block, std::uint64_t count, Part part, Bytes bytes) {
    if (block.size() != count) {
      if (!block.empty()) fail_block_length(count, block.size());
      if (bytes.size() != part.count * sizeof(T)) fail_segment_length(bytes.size(), part.count * sizeof(T));
      block.resize(count);
    }
    Codec<T>::decode_into(std::span(block).subspan(part.first, part.count), bytes);
  }
  static void take(std::optional<Type>& place, std::uint64_t count, Part part, Bytes bytes) {
    if (!place) place.emplace();
    take(*place, count, part, bytes);
  }
  template <class Op>
  static void reduce(const Op& op, Type& running, const Type& other) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      running[i] = static_cast<T>(op(std::as_const(running[i]), other[i]));
    }
  }
};

template <class V>
struct BlockOf {
  using Type = ValueBlock<V>;
};
template <class T>
requires FixedSize<T> &&(!std::is_same_v<T, bool>)struct BlockOf<std::vector<T>> {
  using Type = VectorBlock<T>;
};

/// A vector gives a block for each member; a span gives blocks of equal length.
template <class Given>
struct BlocksOf {
  static constexpr bool are_blocks = false;
};
template <class V>
struct BlocksOf<std::vector<V>> {
  static constexpr bool are_blocks = !std::is_same_v<V, bool>;
  using Block = typename BlockOf<V>::Type;
};
template <class T, std::size_t extent>
struct BlocksOf<std::span<T, extent>> {
  static constexpr bool are_blocks = true;
  using Block = VectorBlock<std::remove_const_t<T>>;
};
template <class Given>
using Block = typename BlocksOf<std::remove_cvref_t<Given>>::Block;

template <class Given>
constexpr bool require_blocks() {
  constexpr bool are_blocks = BlocksOf<std::remove_cvref_t<Given>>::are_blocks;
  static_assert(are_blocks,
                "headway: give a std::span, which is cut into blocks of equal length, or a std::vector with a block "
                "for each member; blocks are not bool");
  if constexpr (are_blocks) {
    using Element = typename Block<Given>::Element;
    if constexpr (is_span<std::remove_cvref_t<Given>>) {
      return require_span_of<Element>();
    } else {
      base::require_sendable<Element>();
      return Sendable<Element>;
    }
  }
  return false;
}

/// UsageError that names the call and the PE unless there are as many blocks as members.
void require_block_for_each(const TeamRef& team, Kind kind, std::size_t blocks);
/// UsageError that names the call and the PE unless the elements can be cut into as many equal blocks as members.
void require_equal_blocks(const TeamRef& team, Kind kind, std::size_t elements);

/// A copy of the caller's blocks, by rank. UsageError where they do not fit the team.
template <Kind kind, class Given>
std::vector<typename Block<Given>::Type> blocks_of(const TeamRef& team, const Given& given) {
  if constexpr (is_span<Given>) {
    require_equal_blocks(team, kind, given.size());
    const std::size_t length = given.size() / team.size();
    std::vector<typename Block<Given>::Type> blocks(team.size());
    for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
      const auto block = given.subspan(rank * length, length);
      blocks[rank].assign(block.begin(), block.end());
    }
    return blocks;
  } else {
    require_block_for_each(team, kind, given.size());
    return given;
  }
}

template <class B>
std::uint64_t elements_of(const std::vector<typename B::Type>& blocks) {
  std::uint64_t elements = 0;
  for (const auto& block : blocks) elements += B::count(block);
  return elements;
}

/// Starts a call with `blocks` of elements of type T. `count`: for the texts of errors.
template <Kind kind, class T, class Op = NoOperator>
void start_blocks(const TeamRef& team, std::uint64_t count, std::size_t root, bool same_count,
                  std::unique_ptr<Blocks> blocks) {
  Collectives& all = Collectives::of(team.pe());
  all.make_room();
  Call call =
      all.next_call(team, OperationOf<kind, T, Op>::operation.number(), count, per_segment<T>, root, same_count);
  all.start(std::make_unique<BlocksDescriptor>(std::move(call), kind, std::move(blocks)));
}

/// The block of each member, at the root or on all members.
template <class B>
class GatheredBlocks final : public Blocks {
 public:
  using Type = typename B::Type;
  GatheredBlocks(const TeamState& team, bool receives, Type own, Promise<std::vector<Type>> promise)
      : rank_(team.rank), own_(std::move(own)), promise_(std::move(promise)) {
    if (!receives) return;
    all_ = B::places(team.size, own_);
    all_[rank_] = std::move(own_);
  }

  std::uint64_t count(std::uint32_t) const override { return B::count(own()); }
  Bytes encoded(std::uint32_t, Part part) override { return codec_.encode(B::part(own(), part)); }
  void take(std::uint32_t rank, std::uint64_t count, Part part, Bytes bytes) override {
    B::take(all_[rank], count, part, bytes);
  }
  void complete() override { promise_.set(std::move(all_)); }

 private:
  const Type& own() const { return all_.empty() ? own_ : all_[rank_]; }

  std::uint32_t rank_;
  Type own_;  // moved from where this PE receives
  std::vector<Type> all_;
  Promise<std::vector<Type>> promise_;
  [[no_unique_address]] Codec<typename B::Element> codec_;
};

/// A block for each member from the root.
template <class B>
class ScatteredBlocks final : public Blocks {
 public:
  using Type = typename B::Type;
  /// `own`: empty on members other than the root.
  ScatteredBlocks(const TeamState& team, std::vector<Type> own, Promise<Type> promise)
      : own_(std::move(own)), promise_(std::move(promise)) {
    if (!own_.empty()) block_ = std::move(own_[team.rank]);
  }

  std::uint64_t count(std::uint32_t rank) const override { return B::count(own_[rank]); }
  Bytes encoded(std::uint32_t rank, Part part) override { return codec_.encode(B::part(own_[rank], part)); }
  void take(std::uint32_t, std::uint64_t count, Part part, Bytes bytes) override {
    B::take(block_, count, part, bytes);
  }
  void complete() override { promise_.set(std::move(*block_)); }

 private:
  std::vector<Type> own_;
  std::optional<Type> block_;  // for this PE
  Promise<Type> promise_;
  [[no_unique_address]] Codec<typename B::Element> codec_;
};

/// A block for each member, and one from each.
template <class B>
class ExchangedBlocks final : public Blocks {
 public:
  using Type = typename B::Type;
  ExchangedBlocks(const TeamState& team, std::vector<Type> own, Promise<std::vector<Type>> promise)
      : own_(std::move(own)), all_(B::places(own_)), promise_(std::move(promise)) {
    all_[team.rank] = std::move(own_[team.rank]);
  }

  std::uint64_t count(std::uint32_t rank) const override { return B::count(own_[rank]); }
  Bytes encoded(std::uint32_t rank, Part part) override { return codec_.encode(B::part(own_[rank], part)); }
  void take(std::uint32_t rank, std::uint64_t count, Part part, Bytes bytes) override {
    B::take(all_[rank], count, part, bytes);
  }
  void complete() override { promise_.set(std::move(all_)); }

 private:
  std::vector<Type> own_, all_;
  Promise<std::vector<Type>> promise_;
  [[no_unique_address]] Codec<typename B::Element> codec_;
};

/// The same for blocks of equal length that lie one after the other.
template <class T>
class ExchangedSpan final : public Blocks {
 public:
  ExchangedSpan(std::vector<T> own, std::size_t block, Promise<std::vector<T>> promise)
      : own_(std::move(own)), all_(own_), block_(block), promise_(std::move(promise)) {}

  std::uint64_t count(std::uint32_t) const override { return block_; }
  Bytes encoded(std::uint32_t rank, Part part) override { return std::as_bytes(of(own_, rank, part)); }
  void take(std::uint32_t rank, std::uint64_t, Part part, Bytes bytes) override {
    Codec<T>::decode_into(of(all_, rank, part), bytes);
  }
  void complete() override { promise_.set(std::move(all_)); }

 private:
  std::span<T> of(std::vector<T>& blocks, std::uint32_t rank, Part part) const {
    return std::span(blocks).subspan(rank * block_ + part.first, part.count);
  }

  std::vector<T> own_, all_;
  std::size_t block_;
  Promise<std::vector<T>> promise_;
};

/// A block for each member; those for this PE are combined in the order of ranks when all have arrived.
template <class B, class Op>
class ReducedBlocks final : public Blocks {
 public:
  using Type = typename B::Type;
  ReducedBlocks(const TeamState& team, Op op, std::vector<Type> own, Promise<Type> promise)
      : op_(op),
        length_(B::count(own[team.rank])),
        own_(std::move(own)),
        all_(B::places(own_)),
        promise_(std::move(promise)) {
    all_[team.rank] = std::move(own_[team.rank]);
  }

  std::uint64_t count(std::uint32_t rank) const override { return B::count(own_[rank]); }
  std::optional<std::uint64_t> expected() const override { return length_; }
  Bytes encoded(std::uint32_t rank, Part part) override { return codec_.encode(B::part(own_[rank], part)); }
  void take(std::uint32_t rank, std::uint64_t count, Part part, Bytes bytes) override {
    B::take(all_[rank], count, part, bytes);
  }
  void complete() override {
    for (std::size_t rank = 1; rank < all_.size(); ++rank) B::reduce(op_, all_[0], all_[rank]);
    promise_.set(std::move(all_[0]));
  }

 private:
  [[no_unique_address]] Op op_;
  std::uint64_t length_;  // of each block for this PE
  std::vector<Type> own_, all_;
  Promise<Type> promise_;
  [[no_unique_address]] Codec<typename B::Element> codec_;
};

}  // namespace headway::collective
