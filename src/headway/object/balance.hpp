// SPDX-License-Identifier: BSD-3-Clause
/// Load balancing: moves elements from busy PEs to others.
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

/// Moves elements as the strategy decides. It uses the loads since the last balance, if CollectionOptions::measure_load
/// is set; else the load of each element is 1. The load of a PE is the sum over its elements of all these collections.
/// Collective, from the main program, with the collections in the same order on every PE; quiesces before and after.
/// Takes time linear in all elements on PE 0, and linear in its own elements on the other PEs.
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
/// The same for one collection.
template <class T>
BalanceTable balance(Collection<T>& collection, const BalanceStrategy& strategy = greedy()) {
  return balance(strategy, collection);
}

/// Starts the same during a run, from any PE, also in a method of an element. It is not collective, needs no
/// quiescence, and returns at once. The requesting PE runs the strategy; each PE sends the loads that it has when the
/// request reaches it. An element moves when its current method has returned and none of its coroutines lives. Elements
/// in transit may be left out. The future is ready when every PE has been told what to move; quiesce() waits for it.
///
/// PE 0 serves one request at a time, in the order of their arrival. A request joins an earlier one that is not
/// finished, and gets the same table, if both have the same collections and the same strategy of this library. An
/// exception of the strategy reaches the requester as RemoteError when it takes the table.
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
