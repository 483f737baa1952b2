/// Load balancing: elements move to where there is time for them.
#pragma once

#include <cstdint>
#include <headway/am/future.hpp>
#include <headway/collective/reduce.hpp>
#include <headway/object/balancer.hpp>
#include <headway/object/collection.hpp>
#include <headway/object/strategy.hpp>
#include <memory>
#include <vector>

namespace headway {

/// Moves elements as the strategy says, by the loads that were measured (CollectionOptions::measure_load) since the
/// last time; without any, each counts as 1. A PE's load is the sum over the elements of all these collections.
/// Collective, from the main program, the collections in the same order; quiesces before and after. Linear in all
/// elements on PE 0, in its own on each other.
template <class... T>
BalanceTable balance(const BalanceStrategy& strategy, Collection<T>&... collections) {
  if constexpr (object::require_balanced<T...>()) {
    const std::uint32_t numbers[] = {collections.number()...};
    Pe& pe = object::require_same_pe({&collections.pe()...}, numbers);
    object::Balancer& balancer = object::Balancer::of(pe);
    pe.quiesce();
    balancer.decide_by(strategy);
    balancer.give_loads(0, object::parts_of(collections...));
    pe.quiesce();
    if (pe.id() == 0) balancer.rethrow();
    return broadcast(pe, balancer.table(), 0);
  }
}
/// The same, of one collection.
template <class T>
BalanceTable balance(Collection<T>& collection, const BalanceStrategy& strategy = greedy()) {
  return balance(strategy, collection);
}

/// Asks for the same in the middle of a run: from any PE, in an element's method too, without the others and without a
/// phase. Returns at once. The PE that asks runs the strategy, by loads that each PE gives when it hears of it.
/// Elements move when the methods have returned that run in them, and none of their coroutines lives; those that are on
/// their way meanwhile may be left out. The table is there when every PE has been told what to move; quiesce() waits
/// for it.
///
/// One request is served at a time, in the order in which they reach PE 0. One by a strategy of this library that finds
/// another by the same strategy and of the same collections, waiting or under way, joins it: both get its table.
/// What the strategy throws is thrown by who takes the table, as RemoteError.
template <class... T>
Future<BalanceTable> request_balance(const BalanceStrategy& strategy, Collection<T>&... collections) {
  if constexpr (object::require_balanced<T...>()) {
    const std::uint32_t numbers[] = {collections.number()...};
    Pe& pe = object::require_same_pe({&collections.pe()...}, numbers);
    return object::Balancer::of(pe).request(strategy, numbers, [&pe, ... mine = &collections] {
      object::GiveLoads<T...>()(pe, std::uint32_t(pe.id()), mine...);
    });
  }
}

}  // namespace headway
