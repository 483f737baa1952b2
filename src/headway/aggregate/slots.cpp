// SPDX-License-Identifier: BSD-3-Clause
#include <headway/aggregate/slots.hpp>

namespace headway::aggregate {

SlotSet::SlotSet(const Route& route) : slots(route.slots()), cold(route.slots()), gatherings(route.slots()) {
  for (std::uint32_t slot = 0; slot < route.slots(); ++slot) {
    cold[slot].target = std::uint32_t(route.target(slot));
    cold[slot].level = std::uint8_t(route.level(slot));
  }
}

void SlotSet::link(std::uint32_t slot) {
  cold[slot].previous = last_open;
  cold[slot].next = none;
  (last_open == none ? first_open : cold[last_open].next) = slot;
  last_open = slot;
}

void SlotSet::unlink(std::uint32_t slot) {
  const ColdSlot& c = cold[slot];
  (c.previous == none ? first_open : cold[c.previous].next) = c.next;
  (c.next == none ? last_open : cold[c.next].previous) = c.previous;
}

SlotSet* SlotSets::find(am::ScopeId scope) {
  for (const auto& set : sets_) {
    if (set->scope == scope) return set.get();
  }
  return nullptr;
}

SlotSet& SlotSets::of(am::ScopeId scope, const Route& route) {
  if (SlotSet* set = find(scope)) return *set;
  for (const auto& set : sets_) {
    if (!set->empty()) continue;
    set->scope = scope;
    return *set;
  }
  sets_.push_back(std::make_unique<SlotSet>(route));
  sets_.back()->scope = scope;
  return *sets_.back();
}

}  // namespace headway::aggregate
