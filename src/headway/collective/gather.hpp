// SPDX-License-Identifier: BSD-3-Clause
/// Blocks from each member to the root or to all members, and from the root to each member.
#pragma once

#include <headway/collective/blocks.hpp>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {

namespace collective {

template <Kind kind, class Given>
auto start_gather(const TeamRef& team, const Given& given, std::size_t root) {
  using T = Element<Given>;
  using B = std::conditional_t<is_span<Given>, VectorBlock<T>, ValueBlock<T>>;
  using Type = typename B::Type;
  const bool receives = kind == Kind::all_gather || team.rank() == root;
  Promise<std::vector<Type>> promise(team.pe());
  Future<std::vector<Type>> future = promise.future();
  Type own = [&]() -> Type {
    if constexpr (is_span<Given>)
      return copy_of(given);
    else
      return given;
  }();
  start_blocks<kind, T>(
      team, count_of(given), root, false,
      std::make_unique<GatheredBlocks<B>>(*team.state(), receives, std::move(own), std::move(promise)));
  return future;
}

template <class Given>
auto start_scatter(const TeamRef& team, const Given& given, std::size_t root) {
  using B = Block<Given>;
  using Type = typename B::Type;
  std::vector<Type> own;
  if (team.rank() == root) own = blocks_of<Kind::scatter>(team, given);
  const std::uint64_t count = elements_of<B>(own);
  Promise<Type> promise(team.pe());
  Future<Type> future = promise.future();
  start_blocks<Kind::scatter, typename B::Element>(
      team, count, root, false,
      std::make_unique<ScatteredBlocks<B>>(*team.state(), std::move(own), std::move(promise)));
  return future;
}

}  // namespace collective

// The rules are in reduce.hpp. Blocks travel directly from member to member, large ones in segments.

/// The contribution of each member, by rank, on the root: Future<std::vector<std::vector<T>>> for spans, which may
/// differ in length, Future<std::vector<T>> for values. Empty on other members; their future is ready when their
/// contribution has been sent.
template <class Given>
auto gather_async(TeamRef team, Given&& given, std::size_t root) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    return collective::start_gather<collective::Kind::gather>(team, std::as_const(given), root);
  }
}
template <class Given>
auto gather(TeamRef team, Given&& given, std::size_t root) {
  if constexpr (collective::require_elements<Given>()) {
    return collective::wait_for(team, [&] { return gather_async(team, given, root); });
  }
}

/// The same on every member.
template <class Given>
auto all_gather_async(TeamRef team, Given&& given) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_elements<Given>()) {
    return collective::start_gather<collective::Kind::all_gather>(team, std::as_const(given), 0);
  }
}
template <class Given>
auto all_gather(TeamRef team, Given&& given) {
  if constexpr (collective::require_elements<Given>()) {
    return collective::wait_for(team, [&] { return all_gather_async(team, given); });
  }
}

/// Block r of the root, on rank r. The root gives a std::span, which is cut into blocks of equal length:
/// Future<std::vector<T>>; or a std::vector with one block for each member: of vectors of trivially copyable elements,
/// which may differ in length, or of values of any sendable type: Future<V> for a std::vector<V>. The runtime ignores
/// the arguments of other members; an empty one is enough. UsageError on the root where the blocks do not fit the team.
template <class Given>
auto scatter_async(TeamRef team, Given&& given, std::size_t root) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_blocks<Given>()) {
    return collective::start_scatter(team, std::as_const(given), root);
  }
}
template <class Given>
auto scatter(TeamRef team, Given&& given, std::size_t root) {
  if constexpr (collective::require_blocks<Given>()) {
    return collective::wait_for(team, [&] { return scatter_async(team, given, root); });
  }
}

}  // namespace headway
