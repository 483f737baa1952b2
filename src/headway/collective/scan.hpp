// SPDX-License-Identifier: BSD-3-Clause
/// Prefix sums over the ranks of a team, with any operator.
#pragma once

#include <headway/collective/reduce.hpp>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace headway {

namespace collective {

/// `init` points to an Element<Given> in an exclusive scan.
template <Kind kind, class Given, class Op>
auto start_scan(const TeamRef& team, const Given& given, Op op, const Element<Given>* init) {
  using T = Element<Given>;
  using Result = std::conditional_t<is_span<Given>, OwnedVector<T>, OwnedValue<T>>;
  using Outcome = ValuesOf<T, Op, Result>;
  using Sum = ValuesOf<T, Op, Intermediate<T>>;
  Pe& pe = team.pe();
  Collectives& all = Collectives::of(pe);
  all.make_room();

  static_assert(!std::is_same_v<T, bool>, "headway: scans of bool are not there: give a number");
  const std::vector<T> own = copy_of(given);
  const bool exclusive = kind == Kind::exclusive_scan;
  Call call = all.next_call(team, OperationOf<kind, T, Op>::operation.number(), own.size(), per_segment<T>, 0);
  decltype(Result::promise) promise(pe);
  auto future = promise.future();
  std::unique_ptr<Values> outcome;
  if constexpr (is_span<Given>) {
    outcome =
        std::make_unique<Outcome>(op, Result{exclusive ? std::vector<T>(own.size(), *init) : own, std::move(promise)});
  } else {
    outcome = std::make_unique<Outcome>(op, Result{exclusive ? *init : given, std::move(promise)});
  }

  std::vector<std::unique_ptr<Values>> sums;
  for (std::size_t i = 0; i < ScanDescriptor::sums(*call.team); ++i) {
    sums.push_back(!exclusive && i == 0 ? std::move(outcome) : std::make_unique<Sum>(op, Intermediate<T>{own}));
  }
  if (exclusive && team.rank() == 0) {  // its children's prefixes begin with `init`
    for (T& value : static_cast<Sum&>(*sums[0]).place().values) value = static_cast<T>(op(*init, std::as_const(value)));
  }
  all.start(std::make_unique<ScanDescriptor>(std::move(call), std::move(sums), std::move(outcome)));
  return future;
}

}  // namespace collective

/// On each member op(op(v0, v1), ...) over the elements of the ranks up to and including its own, in the order of
/// ranks: Future<std::vector<T>> for a span, Future<T> for a value. The operator need not commute, and the brackets are
/// the same in every run. The rules are in reduce.hpp.
template <class Given, class Op>
auto scan_async(TeamRef team, Given&& given, Op op) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::start_scan<collective::Kind::scan>(team, std::as_const(given), op, nullptr);
  }
}
template <class Given, class Op>
auto scan(TeamRef team, Given&& given, Op op) {
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::wait_for(team, [&] { return scan_async(team, given, op); });
  }
}

/// The same over the ranks before its own, starting with the `init` of rank 0. Rank 0 gets `init`; the runtime ignores
/// the `init` of other members.
template <class Given, class Op>
auto exclusive_scan_async(TeamRef team, Given&& given, const collective::Element<Given>& init, Op op) {
  am::require_named_arguments<Given>();
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::start_scan<collective::Kind::exclusive_scan>(team, std::as_const(given), op, &init);
  }
}
template <class Given, class Op>
auto exclusive_scan(TeamRef team, Given&& given, const collective::Element<Given>& init, Op op) {
  if constexpr (collective::require_reduction<Given, Op>()) {
    return collective::wait_for(team, [&] { return exclusive_scan_async(team, given, init, op); });
  }
}

}  // namespace headway
