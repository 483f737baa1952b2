// SPDX-License-Identifier: BSD-3-Clause
/// A block from each member to each member: exchanged, or combined.
#pragma once

#include <headway/collective/blocks.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace headway {

namespace collective {

template <class Given>
auto start_all_to_all(const TeamRef& team, const Given& given) {
  using B = Block<Given>;
  if constexpr (is_span<Given>) {
    using T = typename B::Element;
    require_equal_blocks(team, Kind::all_to_all, given.size());
    const std::size_t block = given.size() / team.size();
    Promise<std::vector<T>> promise(team.pe());
    Future<std::vector<T>> future = promise.future();
    start_blocks<Kind::all_to_all, T>(team, block, 0, true,
                                      std::make_unique<ExchangedSpan<T>>(copy_of(given), block, std::move(promise)));
    return future;
  } else {
    using Type = typename B::Type;
    std::vector<Type> own = blocks_of<Kind::all_to_all>(team, given);
    const std::uint64_t count = elements_of<B>(own);
    Promise<std::vector<Type>> promise(team.pe());
    Future<std::vector<Type>> future = promise.future();
    start_blocks<Kind::all_to_all, typename B::Element>(
        team, count, 0, false, std::make_unique<ExchangedBlocks<B>>(*team.state(), std::move(own), std::move(promise)));
    return future;
  }
}

template <class Given, class Op>
auto start_reduce_scatter(const TeamRef& team, const Given& given, Op op) {
  using B = Block<Given>;
  using Type = typename B::Type;
  std::vector<Type> own = blocks_of<Kind::reduce_scatter>(team, given);
  const std::uint64_t count = elements_of<B>(own);
  Promise<Type> promise(team.pe());
  Future<Type> future = promise.future();
  start_blocks<Kind::reduce_scatter, typename B::Element, Op>(
      team, count, 0, false,
      std::make_unique<ReducedBlocks<B, Op>>(*team.state(), op, std::move(own), std::move(promise)));
  return future;
}

template <class Given, class Op>
constexpr bool require_reduced_blocks() {
  if constexpr (require_blocks<Given>())
    return require_operator<Op, typename Block<Given>::Element>();
  else
    return false;
}

}  // namespace collective

// The rules are in reduce.hpp. Each member gives a std::span, which is cut into blocks of equal length, or a
// std::vector with one block for each member: vectors of trivially copyable elements, or values of any sendable type.
// Blocks travel directly from member to member, large ones in segments. UsageError where the blocks do not fit the
// team.

/// Block r of the result is the block that rank r gave for this rank. Future<std::vector<T>> for a span; all members
/// then give as many elements. Future<std::vector<V>> for a std::vector<V>; its blocks may differ in length.
template <class Given>
auto all_to_all_async(TeamRef team, Given&& given) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_blocks<Given>()) {
    return collective::start_all_to_all(team, std::as_const(given));
  }
}
template <class Given>
auto all_to_all(TeamRef team, Given&& given) {
  if constexpr (collective::require_blocks<Given>()) {
    return collective::wait_for(team, [&] { return all_to_all_async(team, given); });
  }
}

/// op(op(b0, b1), ...) over the blocks that the members gave for this rank, element by element and in the order of
/// ranks: Future<std::vector<T>> for a span, Future<V> for a std::vector<V>. The operator need not commute. Blocks for
/// one rank have one length; blocks for different ranks may differ. A rank holds all blocks for it until the last one
/// has arrived.
template <class Given, class Op>
auto reduce_scatter_async(TeamRef team, Given&& given, Op op) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_reduced_blocks<Given, Op>()) {
    return collective::start_reduce_scatter(team, std::as_const(given), op);
  }
}
template <class Given, class Op>
auto reduce_scatter(TeamRef team, Given&& given, Op op) {
  if constexpr (collective::require_reduced_blocks<Given, Op>()) {
    return collective::wait_for(team, [&] { return reduce_scatter_async(team, given, op); });
  }
}

}  // namespace headway
