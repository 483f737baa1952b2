// SPDX-License-Identifier: BSD-3-Clause
/// Cells are divided where the water is steep, and joined where it is flat.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mesh.hpp"

namespace headway::amr {

/// Differences of height between neighbours: a cell is divided above the first, and joined to its family below the
/// second.
inline constexpr double steep = 0.04, flat = 0.01;

/// The level that a cell should have, for its own sake.
template <class Pes>
std::uint8_t wanted_level(const Mesh<Pes>& mesh, std::size_t i, unsigned level_max_wanted) {
  double difference = 0;
  for (const std::uint32_t other : mesh.neighbours(i)) {
    if (other == wall) continue;
    difference = std::max(difference, std::abs(mesh.state(other).height - mesh.state(i).height));
  }
  const auto level = std::uint8_t(mesh.square(i).level);
  if (difference > steep && level < level_max_wanted) return std::uint8_t(level + 1);
  if (difference < flat && level > mesh.level_min()) return std::uint8_t(level - 1);
  return level;
}

/// Whether all four cells of a family are there and may be joined.
template <class Pes>
bool can_join(Mesh<Pes>& mesh, std::size_t i) {
  return std::ranges::all_of(mesh.family(i), [&](std::uint32_t sibling) {
    return mesh.square(sibling).level == mesh.square(i).level && mesh.targets()[sibling] < mesh.square(i).level;
  });
}

/// Collective. Raises targets until those of neighbours differ by at most one, and only whole families are joined.
/// The least targets of this kind are found, in any order of cells, so they are the same for any number of PEs.
template <class Pes>
void limit_targets(Mesh<Pes>& mesh) {
  std::vector<std::uint8_t>& targets = mesh.targets();
  std::uint64_t raised = 1;
  while (raised != 0) {
    mesh.exchange_targets();
    std::uint64_t own = 0;
    for (std::size_t i = 0; i != mesh.owned(); ++i) {
      std::uint8_t target = targets[i];
      for (const std::uint32_t other : mesh.neighbours(i))
        if (other != wall && targets[other] > target + 1) target = std::uint8_t(targets[other] - 1);
      if (target < mesh.square(i).level && !can_join(mesh, i)) target = std::uint8_t(mesh.square(i).level);
      own += target != targets[i];
      targets[i] = target;
    }
    raised = mesh.pes().sum(own);
  }
}

/// Collective. Sets targets, and returns how many cells of all PEs will be divided or joined.
template <class Pes>
std::uint64_t set_targets(Mesh<Pes>& mesh, unsigned level_max_wanted) {
  mesh.exchange();
  for (std::size_t i = 0; i != mesh.owned(); ++i) mesh.targets()[i] = wanted_level(mesh, i, level_max_wanted);
  limit_targets(mesh);
  std::uint64_t changes = 0;
  for (std::size_t i = 0; i != mesh.owned(); ++i) changes += mesh.targets()[i] != mesh.square(i).level;
  return mesh.pes().sum(changes);
}

/// Collective. Divides and joins cells by their targets. Children have the state of their parent, and a parent has the
/// mean of its children, added in their order. The PE of the first child has the parent.
template <class Pes>
void apply_targets(Mesh<Pes>& mesh) {
  std::vector<Square> squares;
  std::vector<State> states;
  add_time(mesh.pes(), mesh.times().refinement, [&] {
    for (std::size_t i = 0; i != mesh.owned(); ++i) {
      const Square& square = mesh.square(i);
      const std::uint8_t target = mesh.targets()[i];
      if (target > square.level) {
        for (std::size_t child = 0; child != 4; ++child) {
          squares.push_back(square.child(child));
          states.push_back(mesh.state(i));
        }
      } else if (target == square.level) {
        squares.push_back(square);
        states.push_back(mesh.state(i));
      } else if (square.child_number() == 0) {
        State sum;
        for (const std::uint32_t sibling : mesh.family(i)) sum = sum + mesh.state(sibling);
        squares.push_back(square.parent());
        states.push_back(0.25 * sum);
      }
    }
  });
  mesh.replace(std::move(squares), std::move(states));
}

/// Collective. Returns whether the mesh has changed.
template <class Pes>
bool refine(Mesh<Pes>& mesh, unsigned level_max_wanted) {
  bool changes = false;
  add_time(mesh.pes(), mesh.times().refinement, [&] { changes = set_targets(mesh, level_max_wanted) != 0; });
  if (changes) apply_targets(mesh);
  return changes;
}

}  // namespace headway::amr
