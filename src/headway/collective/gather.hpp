/// Blocks of all members, unchanged, for one or for all, which nobody waits for.
#pragma once

#include <algorithm>
#include <headway/base/error.hpp>
#include <headway/collective/reduce.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace headway {

namespace collective {

/// A block of elements of each member, at the root.
template <class T>
class GatheredVectors final : public Blocks {
 public:
  GatheredVectors(const TeamState& team, bool is_root, std::vector<T> own, Promise<std::vector<std::vector<T>>> promise)
      : own_(std::move(own)), all_(is_root ? team.size : 0), promise_(std::move(promise)) {
    if (is_root) all_[team.rank] = std::move(own_);
  }

  Bytes encoded(std::uint32_t, Part part) override {
    return std::as_bytes(std::span(own_).subspan(part.first, part.count));
  }
  void take(std::uint32_t rank, std::uint64_t count, Part part, Bytes bytes) override {
    std::vector<T>& block = all_[rank];
    if (block.size() != count) {
      if (!block.empty()) throw FormatError("a block changes its length");
      if (bytes.size() != part.count * sizeof(T)) throw FormatError("part of a block has another length than it says");
      block.resize(count);
    }
    Codec<T>::decode_into(std::span(block).subspan(part.first, part.count), bytes);
  }
  void complete() override { promise_.set(std::move(all_)); }

 private:
  std::vector<T> own_;
  std::vector<std::vector<T>> all_;
  Promise<std::vector<std::vector<T>>> promise_;
};

/// A value of each member, at the root.
template <class T>
class GatheredValues final : public Blocks {
 public:
  GatheredValues(const TeamState& team, bool is_root, const T& own, Promise<std::vector<T>> promise)
      : own_(own), promise_(std::move(promise)) {
    if (is_root) all_.resize(team.size, own_);
  }

  Bytes encoded(std::uint32_t, Part) override { return codec_.encode({&own_, 1}); }
  void take(std::uint32_t rank, std::uint64_t count, Part, Bytes bytes) override {
    if (count != 1) throw FormatError("several values come where one was given");
    Codec<T>::decode(bytes, 1, [&](std::size_t, T&& value) { all_[rank] = std::move(value); });
  }
  void complete() override { promise_.set(std::move(all_)); }

 private:
  T own_;
  std::vector<T> all_;
  Promise<std::vector<T>> promise_;
  [[no_unique_address]] Codec<T> codec_;
};

/// A block for each member, and one from each.
template <class T>
class ExchangedBlocks final : public Blocks {
 public:
  ExchangedBlocks(std::vector<T> own, std::size_t block, Promise<std::vector<T>> promise)
      : own_(std::move(own)), all_(own_), block_(block), promise_(std::move(promise)) {}

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

template <class Given>
auto start_gather(const TeamRef& team, const Given& given, std::size_t root) {
  using T = Element<Given>;
  constexpr bool spans = is_span<Given>;
  using All = std::conditional_t<spans, std::vector<std::vector<T>>, std::vector<T>>;
  using BlocksOf = std::conditional_t<spans, GatheredVectors<T>, GatheredValues<T>>;
  Collectives& all = Collectives::of(team.pe());
  all.make_room();
  Call call = all.next_call(team, OperationOf<Kind::gather, T>::operation.number(), count_of(given), per_segment<T>,
                            root, false);
  Promise<All> promise(team.pe());
  Future<All> future = promise.future();
  const bool is_root = team.rank() == root;
  std::unique_ptr<Blocks> blocks;
  if constexpr (spans)
    blocks = std::make_unique<BlocksOf>(*call.team, is_root, copy_of(given), std::move(promise));
  else
    blocks = std::make_unique<BlocksOf>(*call.team, is_root, given, std::move(promise));
  all.start(std::make_unique<BlocksDescriptor>(std::move(call), Kind::gather, std::move(blocks)));
  return future;
}

void require_equal_blocks(std::size_t elements, std::size_t members);

}  // namespace collective

/// What each member gives, by rank, on the root: Future<std::vector<std::vector<T>>> for spans, which may differ in
/// length, Future<std::vector<T>> for values; empty on others, where it is ready when the PE's own is on its way.
/// Blocks go straight to the root, large ones in segments. Otherwise as reduce().
template <class Given>
auto gather(TeamRef team, Given&& given, std::size_t root) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    return collective::start_gather(team, std::as_const(given), root);
  }
}

/// Gives the i-th of as many blocks of equal length as there are members to rank i, and has the one from rank i as its
/// i-th. Messages go straight, or as the aggregator's topology says. UsageError where the span does not hold such
/// blocks.
template <class T, std::size_t extent>
auto all_to_all(TeamRef team, std::span<T, extent> given) {
  using E = std::remove_const_t<T>;
  if constexpr (collective::require_elements<std::span<E>>()) {
    collective::require_equal_blocks(given.size(), team.size());
    collective::Collectives& all = collective::Collectives::of(team.pe());
    all.make_room();
    const std::size_t block = given.size() / team.size();
    using Operation = collective::OperationOf<collective::Kind::all_to_all, E>;
    collective::Call call = all.next_call(team, Operation::operation.number(), block, collective::per_segment<E>, 0);
    Promise<std::vector<E>> promise(team.pe());
    Future<std::vector<E>> future = promise.future();
    auto blocks = std::make_unique<collective::ExchangedBlocks<E>>(std::vector<E>(given.begin(), given.end()), block,
                                                                   std::move(promise));
    all.start(std::make_unique<collective::BlocksDescriptor>(std::move(call), collective::Kind::all_to_all,
                                                             std::move(blocks)));
    return future;
  }
}

}  // namespace headway
