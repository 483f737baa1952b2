// SPDX-License-Identifier: BSD-3-Clause
/// The same search by one processor with a set of the standard library, to compare with.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model.hpp"

namespace headway::murphi {

/// Equal for the same model in any search that visits its states level by level.
struct Counts {
  std::uint64_t states = 0, rules = 0, levels = 0, violations = 0;  // states that violate an invariant
  bool operator==(const Counts&) const = default;
};

/// Searches until nothing is new, until a level has a state that violates an invariant, or until there are more than
/// `states_max` states.
template <IsModel Model>
Counts search_alone(const Model& model, std::uint64_t states_max) {
  using State = typename Model::State;
  constexpr std::size_t bytes = sizeof(State);
  struct Hash {
    std::size_t operator()(const Packed<bytes>& state) const {
      return std::hash<std::string_view>()({reinterpret_cast<const char*>(state.data()), bytes});
    }
  };
  Counts counts;
  std::unordered_set<Packed<bytes>, Hash> seen;
  std::vector<State> level, next;
  const auto visit = [&](const State& state) {
    if (!seen.insert(pack(state)).second) return;
    next.push_back(state);
    counts.violations += model.violated(state) != nullptr;
  };
  model.for_each_initial(visit);
  while (!next.empty()) {
    ++counts.levels;
    if (counts.violations > 0 || seen.size() > states_max) break;
    level.swap(next);
    next.clear();
    for (const State& state : level) {
      model.for_each_successor(state, [&](Rule, const State& successor) {
        ++counts.rules;
        visit(successor);
      });
    }
  }
  counts.states = seen.size();
  return counts;
}

}  // namespace headway::murphi
