// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <set>

#include "molecules.hpp"

namespace headway::leanmd {
namespace {

TEST(Leanmd, the_force_of_two_particles_is_the_derivative_of_the_potential) {
  const Potential potential(2.5);
  const double h = 1e-6;
  for (const double r : {0.95, 1.1, 1.3, 1.9, 2.4}) {
    const double slope = (potential.at((r + h) * (r + h)).first - potential.at((r - h) * (r - h)).first) / (2 * h);
    EXPECT_NEAR(potential.at(r * r).second * r, -slope, 1e-6 * (1 + std::abs(slope))) << r;
  }
  EXPECT_NEAR(potential.at(2.5 * 2.5).first, 0, 1e-12);
  EXPECT_NEAR(potential.at(2.5 * 2.5).second, 0, 1e-12);
  EXPECT_LT(potential.at(1.2 * 1.2).first, 0);
  EXPECT_GT(potential.at(1.0).second, 0);
}

TEST(Leanmd, distances_are_the_shortest_over_the_sides_of_the_box) {
  EXPECT_DOUBLE_EQ(difference(1, 3, 10), 2);
  EXPECT_DOUBLE_EQ(difference(9.5, 0.5, 10), 1);
  EXPECT_DOUBLE_EQ(difference(0.5, 9.5, 10), -1);
  EXPECT_NEAR(difference(-0.2, 9.9, 10), 0.1, 1e-12);
  std::vector<Vector> a{{0.1, 5, 5}}, b{{9.0, 5, 5}}, fa(1), fb(1);
  interact(Potential(2.5), {10, 10, 10}, false, a, b, fa, fb);
  EXPECT_GT(fa[0][0], 0);  // 1.1 apart, over the side: b, on its left, pushes it away
  EXPECT_EQ(fa[0][0], -fb[0][0]);
}

TEST(Leanmd, every_two_cells_near_each_other_are_a_couple_once) {
  for (const Place cells : {Place{2, 2, 2}, Place{2, 3, 4}, Place{5, 4, 4}}) {
    for (const std::int32_t away : {1, 2}) {
      const Geometry geometry(Options{.cells = cells});
      const Couples couples(geometry, away);
      std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
      for (std::uint32_t number = 0; number < couples.all.size(); ++number) {
        const Couple& couple = couples.all[number];
        EXPECT_TRUE(seen.insert({couple.first, couple.second}).second);
        EXPECT_LE(couple.first, couple.second);
        EXPECT_EQ(couples.of_cell[couple.first][couple.first_slot], number);
        const std::uint32_t slot = couple.first == couple.second ? couple.first_slot : couple.second_slot;
        EXPECT_EQ(couples.of_cell[couple.second][slot], number);
      }
      std::size_t expected = 0;
      for (std::uint32_t a = 0; a < geometry.size(); ++a) {
        for (std::uint32_t b = a; b < geometry.size(); ++b) {
          bool near = true;
          for (unsigned k = 0; k < 3; ++k) {
            const std::int32_t d = std::abs(geometry.place(a)[k] - geometry.place(b)[k]);
            near &= std::min(d, cells[k] - d) <= away;
          }
          expected += near;
        }
      }
      EXPECT_EQ(seen.size(), expected);
    }
  }
}

TEST(Leanmd, momentum_energy_and_particles_are_conserved) {
  for (Options options : {Options{.steps = 200}, Options{.cells = {4, 4, 5}, .away = 2, .particles = 8},
                          Options{.cells = {4, 2, 3}, .particles = 20, .corner = true, .steps = 150}}) {
    Vector momentum{};
    std::uint64_t particles = 0;
    for (std::uint32_t cell = 0; cell < Geometry(options).size(); ++cell) {
      for (const Particle& particle : particles_of(options, cell)) {
        ++particles;
        for (unsigned k = 0; k < 3; ++k) momentum[k] += particle.velocity[k];
      }
    }
    const Outcome outcome = simulate(options);
    EXPECT_EQ(outcome.particles, particles);
    EXPECT_EQ(outcome.strayed, 0u);
    EXPECT_LT(outcome.drift(), 5e-3);
    EXPECT_NE(outcome.energy, outcome.energy_first);
    for (unsigned k = 0; k < 3; ++k) EXPECT_NEAR(outcome.momentum[k], momentum[k], 1e-9);
  }
}

TEST(Leanmd, half_the_time_step_is_a_quarter_of_the_error) {
  const Options coarse{.steps = 51, .time_step = 0.004};
  Options fine = coarse;
  fine.time_step /= 2, fine.steps = 101, fine.migrate_every *= 2;
  const double error = simulate(coarse).drift();
  EXPECT_LT(simulate(fine).drift(), error / 2);
}

TEST(Leanmd, particles_that_leave_a_cell_go_to_the_neighbour_where_they_are) {
  const Options options{.steps = 60};
  Options other = options;
  other.seed = 2;
  EXPECT_NE(simulate(options).checksum, simulate(other).checksum);
  EXPECT_EQ(simulate(options).checksum, simulate(options).checksum);
  CellState cell(options, 0);
  const Geometry geometry(options);
  const std::vector<std::uint32_t> neighbours = geometry.around(0, 1);
  const std::vector<std::vector<Vector>> pull(1, std::vector<Vector>(cell.particles().size(), Vector{0, 0, -8}));
  for (std::int32_t step = 0; step < 300; ++step) cell.integrate(pull, 0.002, step);
  std::vector<std::vector<Particle>> leaving;
  cell.part(geometry, 100, 0, neighbours, leaving);
  const std::size_t below = std::size_t(std::ranges::find(neighbours, geometry.number({0, 0, 2})) - neighbours.begin());
  EXPECT_FALSE(leaving[below].empty());
  for (const Particle& particle : leaving[below]) EXPECT_GE(particle.position[2], 2 * geometry.side);
  std::size_t all = cell.particles().size();
  for (const auto& some : leaving) all += some.size();
  EXPECT_EQ(all, std::size_t(options.particles));
}

}  // namespace
}  // namespace headway::leanmd
