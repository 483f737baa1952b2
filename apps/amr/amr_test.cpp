// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <headway/base/random.hpp>
#include <utility>
#include <vector>

#include "simulation.hpp"

namespace headway::amr {
namespace {

using OneMesh = Mesh<OnePe>;
OnePe alone;

struct Cells {
  std::vector<Square> squares;
  std::vector<State> states;
};
Cells cells_of(const OneMesh& mesh) {
  Cells cells;
  for (std::size_t i = 0; i != mesh.owned(); ++i) {
    cells.squares.push_back(mesh.square(i));
    cells.states.push_back(mesh.state(i));
  }
  return cells;
}
/// Each cell for which `divides` returns true becomes four.
void divide(OneMesh& mesh, const std::function<bool(const Square&)>& divides) {
  for (std::size_t i = 0; i != mesh.owned(); ++i)
    mesh.targets()[i] = std::uint8_t(mesh.square(i).level + (divides(mesh.square(i)) ? 1 : 0));
  limit_targets(mesh);
  apply_targets(mesh);
}
bool has_point(const Square& square, std::uint32_t x, std::uint32_t y) {
  return square.x() <= x && x < square.x() + square.side() && square.y() <= y && y < square.y() + square.side();
}
/// Cells of many levels around one point.
OneMesh mesh_around(std::uint32_t x, std::uint32_t y) {
  OneMesh mesh(alone, 1);
  for (unsigned level = 1; level != 7; ++level)
    divide(mesh, [&](const Square& square) { return has_point(square, x, y) && square.level == level; });
  return mesh;
}

TEST(Key, leads_back_to_its_point) {
  Random random(1);
  for (int i = 0; i != 1000; ++i) {
    const auto x = std::uint32_t(random.below(extent)), y = std::uint32_t(random.below(extent));
    const Square point{key_of(x, y), depth};
    EXPECT_EQ(point.x(), x);
    EXPECT_EQ(point.y(), y);
  }
  EXPECT_EQ(key_of(1, 0), 1u);
  EXPECT_EQ(key_of(0, 1), 2u);
  EXPECT_EQ(key_of(3, 5), 0b100111u);
}

TEST(Square, is_divided_into_four_that_follow_each_other_on_the_curve) {
  const Square square{key_of(3u << 11, 5u << 11), 5};
  Key at = square.key;
  for (std::size_t number = 0; number != 4; ++number) {
    const Square child = square.child(number);
    EXPECT_EQ(child.key, at);
    EXPECT_EQ(child.child_number(), number);
    EXPECT_EQ(child.parent(), square);
    EXPECT_EQ(child.x(), square.x() + (number % 2) * child.side());
    EXPECT_EQ(child.y(), square.y() + (number / 2) * child.side());
    at = child.end();
  }
  EXPECT_EQ(at, square.end());
}

TEST(Mesh, finds_the_cells_beside_each_half_of_each_face) {
  const OneMesh mesh = mesh_around(40'000, 21'000);
  const Cells cells = cells_of(mesh);
  ASSERT_GT(cells.squares.size(), 40u);
  std::size_t smaller = 0, larger = 0, walls = 0;
  for (std::size_t i = 0; i != mesh.owned(); ++i) {
    const Square& square = cells.squares[i];
    for (std::size_t k = 0; k != 8; ++k) {
      // A point next to the middle of the half.
      const std::int64_t along = square.side() / 4 + (k % 2) * square.side() / 2, side = square.side();
      const std::int64_t x = square.x() + (k / 2 == west ? -1 : k / 2 == east ? side : along);
      const std::int64_t y = square.y() + (k / 2 == south ? -1 : k / 2 == north ? side : along);
      const std::uint32_t found = mesh.neighbours(i)[k];
      if (std::min(x, y) < 0 || std::max(x, y) >= std::int64_t(extent)) {
        EXPECT_EQ(found, wall);
        ++walls;
        continue;
      }
      ASSERT_LT(found, mesh.owned());
      EXPECT_TRUE(has_point(cells.squares[found], std::uint32_t(x), std::uint32_t(y))) << i << ", half " << k;
      smaller += cells.squares[found].level > square.level;
      larger += cells.squares[found].level < square.level;
    }
  }
  EXPECT_GT(walls, 0u);
  EXPECT_GT(smaller, 0u);
  EXPECT_EQ(2 * smaller, larger);  // each half of a larger cell has a cell beside it, of which it covers two halves
}

TEST(Mesh, has_levels_of_neighbours_that_differ_by_at_most_one) {
  OneMesh mesh = mesh_around(1, extent - 2);
  EXPECT_EQ(mesh.count_errors(), 0u);
  std::uint64_t most = 0;
  for (std::size_t i = 0; i != mesh.owned(); ++i) most = std::max(most, mesh.square(i).level);
  EXPECT_EQ(most, 7u);
}

TEST(Check, finds_neighbours_two_levels_apart) {
  OneMesh mesh(alone, 2);
  Cells cells = cells_of(mesh);
  const auto errors_after_dividing = [&](std::size_t i) {
    const Square square = cells.squares[i];
    cells.squares[i] = square.child(0);
    for (std::size_t child = 1; child != 4; ++child)
      cells.squares.insert(cells.squares.begin() + std::ptrdiff_t(i + child), square.child(child));
    cells.states.resize(cells.squares.size(), cells.states.front());
    mesh.replace(cells.squares, cells.states);
    return mesh.count_errors();
  };
  EXPECT_EQ(errors_after_dividing(0), 0u);
  EXPECT_GT(errors_after_dividing(3), 0u);  // beside cells of level 2
}

TEST(Check, finds_a_gap_and_a_dry_cell) {
  OneMesh mesh(alone, 2);
  Cells cells = cells_of(mesh);
  cells.states[3].height = 0;
  mesh.replace(cells.squares, cells.states);
  EXPECT_EQ(mesh.count_errors(), 1u);
  cells = cells_of(mesh);
  cells.states[3].height = 1;
  cells.squares.erase(cells.squares.begin() + 5);
  cells.states.erase(cells.states.begin() + 5);
  mesh.replace(cells.squares, cells.states);
  EXPECT_EQ(mesh.count_errors(), 1u);
}

TEST(Refinement, and_joining_lead_back_to_the_same_cells) {
  OneMesh mesh = mesh_around(30'000, 30'000);
  mesh.set_initial_states();
  const std::uint64_t hash = mesh.hash(), cells = mesh.cells();
  divide(mesh, [](const Square&) { return true; });
  EXPECT_EQ(mesh.cells(), 4 * cells);
  EXPECT_NE(mesh.hash(), hash);
  for (std::size_t i = 0; i != mesh.owned(); ++i) mesh.targets()[i] = std::uint8_t(mesh.square(i).level - 1);
  limit_targets(mesh);
  apply_targets(mesh);
  EXPECT_EQ(mesh.cells(), cells);
  EXPECT_EQ(mesh.hash(), hash);
}

TEST(Refinement, joins_whole_families_alone) {
  OneMesh mesh(alone, 2);
  divide(mesh, [](const Square& square) { return square.x() == 0; });
  const std::uint64_t hash = mesh.hash();
  for (std::size_t i = 0; i != mesh.owned(); ++i) {
    const Square& square = mesh.square(i);
    mesh.targets()[i] = std::uint8_t(square.level - (square.level == 3 && square.child_number() != 2 ? 1 : 0));
  }
  limit_targets(mesh);
  for (std::size_t i = 0; i != mesh.owned(); ++i) EXPECT_EQ(mesh.targets()[i], mesh.square(i).level);
  apply_targets(mesh);
  EXPECT_EQ(mesh.hash(), hash);
}

TEST(Refinement, follows_the_water) {
  OneMesh mesh(alone, 4);
  ASSERT_TRUE(refine(mesh, 6));
  for (std::size_t i = 0; i != mesh.owned(); ++i) {
    double difference = 0;
    for (const std::uint32_t other : mesh.neighbours(i))
      if (other != wall) difference = std::max(difference, std::abs(mesh.state(other).height - mesh.state(i).height));
    if (difference > steep) {
      EXPECT_EQ(mesh.square(i).level, 5u);
    }
  }
  EXPECT_EQ(mesh.count_errors(), 0u);
}

TEST(Flow, at_rest_stays_at_rest_on_cells_of_any_size) {
  OneMesh mesh = mesh_around(50'000, 9'000);
  Cells cells = cells_of(mesh);
  for (State& state : cells.states) state = {1.25, 0, 0};
  mesh.replace(cells.squares, cells.states);
  const std::uint64_t hash = mesh.hash();
  for (int step = 0; step != 20; ++step) mesh.advance(mesh.stable_time());
  EXPECT_EQ(mesh.hash(), hash);
}

TEST(Flow, through_a_face_is_the_same_seen_from_both_sides) {
  Random random(2);
  for (int i = 0; i != 100; ++i) {
    const std::vector<State> states = {{1 + random.fraction(), random.fraction() - 0.5, random.fraction() - 0.5},
                                       {1 + random.fraction(), random.fraction() - 0.5, random.fraction() - 0.5}};
    for (const auto& [face, opposite] : {std::pair{east, west}, {north, south}}) {
      const State out = flux(states[0], states, face, 1), in = flux(states[1], states, opposite, 0);
      EXPECT_EQ(out.height, in.height);
      EXPECT_EQ(out.x, in.x);
      EXPECT_EQ(out.y, in.y);
    }
    EXPECT_EQ(flux(states[0], states, north, wall).height, 0);
    EXPECT_EQ(flux(states[0], states, west, wall).y, 0);
  }
}

TEST(Flow, keeps_its_volume_to_rounding_while_the_mesh_changes) {
  for (const unsigned levels : {0u, 1u, 4u}) {
    const Outcome outcome = simulate(alone, {.level = 4, .levels = levels, .steps = 200, .check_every_mesh = true});
    EXPECT_TRUE(outcome.is_conserved(200)) << outcome.lost;
    EXPECT_EQ(outcome.errors, 0u);
    EXPECT_EQ(outcome.meshes > 0, levels > 0);
    EXPECT_NEAR(outcome.volume, 1.126, 0.01);  // of the column, by its radius of 0.2
  }
}

TEST(Volume, is_the_same_in_any_order) {
  Random random(3);
  std::vector<std::pair<double, std::uint64_t>> cells;
  double sum = 0;
  for (int i = 0; i != 1000; ++i) {
    cells.emplace_back(random.fraction() * 3, 5 + random.below(level_max - 4));
    sum += cells.back().first * std::ldexp(1, -2 * int(cells.back().second));
  }
  Volume forward, backward;
  for (const auto& [height, level] : cells) forward.add(height, level);
  std::ranges::reverse(cells);
  for (const auto& [height, level] : cells) backward.add(height, level);
  EXPECT_EQ(forward.value(), backward.value());
  EXPECT_NEAR(forward.value(), sum, 1e-14);
}

}  // namespace
}  // namespace headway::amr
