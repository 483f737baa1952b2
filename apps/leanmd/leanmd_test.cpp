#include "physics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace headway::leanmd {
namespace {

Box make_box(const Coordinates& cells, std::int32_t away, std::uint32_t particles, std::uint32_t exchange_every = 5) {
  Box box;
  box.cells = cells;
  box.away = away;
  box.particles = box.elsewhere = particles;
  box.fit(exchange_every);
  return box;
}

/// The energy of two particles, and the force on the first, along x.
std::pair<double, double> pair_at(const Box& box, double x) {
  const std::vector<Vector> a = {{1, 1, 1}}, b = {{1 + x, 1, 1}};
  std::vector<Vector> on_a = {{0, 0, 0}}, on_b = {{0, 0, 0}};
  const double energy = interact(box, a, b, on_a, on_b);
  EXPECT_EQ(on_a[0].x, -on_b[0].x);
  EXPECT_EQ(on_a[0].y, 0);
  return {energy, on_a[0].x};
}

TEST(Force, is_the_slope_of_the_energy_and_both_end_at_the_cutoff) {
  const Box box = make_box({4, 4, 4}, 1, 27);
  for (const double x : {0.9, 1.0, 1.1, 1.3, 1.9, 2.4}) {
    const double h = 1e-6, slope = (pair_at(box, x + h).first - pair_at(box, x - h).first) / (2 * h);
    EXPECT_NEAR(pair_at(box, x).second, slope, 1e-5 * std::max(1.0, std::abs(slope))) << x;
  }
  // At a distance of 1 Lennard-Jones alone has energy 0, and 24 repels; what is added is smaller than its tail.
  EXPECT_NEAR(pair_at(box, 1).first, 0, 0.1);
  EXPECT_NEAR(pair_at(box, 1).second, -24, 0.1);
  EXPECT_NEAR(pair_at(box, box.cutoff - 1e-7).first, 0, 1e-9);
  EXPECT_NEAR(pair_at(box, box.cutoff - 1e-7).second, 0, 1e-5);
  EXPECT_EQ(pair_at(box, box.cutoff + 1e-7), (std::pair<double, double>(0, 0)));
}

TEST(Force, acts_between_the_nearest_images) {
  const Box box = make_box({3, 3, 3}, 1, 8);
  for (const double x : {0.95, 1.5, 2.0}) {
    const auto [energy, force] = pair_at(box, x);
    for (const double image : {x - box.length(0), x + box.length(0)}) {
      EXPECT_NEAR(pair_at(box, image).first, energy, 1e-9);
      EXPECT_NEAR(pair_at(box, image).second, force, 1e-7);
    }
  }
  EXPECT_DOUBLE_EQ(nearest(0.75, 1), -0.25);
  EXPECT_DOUBLE_EQ(nearest(-0.75, 1), 0.25);
}

TEST(Box, each_pair_of_cells_that_is_near_meets_once) {
  for (const auto& [cells, away] : {std::pair<Coordinates, int>{{2, 2, 2}, 1}, {{3, 2, 5}, 1}, {{4, 3, 3}, 1},
                                    {{4, 4, 4}, 2}, {{5, 4, 6}, 2}, {{7, 5, 5}, 2}}) {
    const Box box = make_box(cells, away, 8);
    const std::vector<Coordinates> ways = box.ways();
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> found;
    for (std::uint32_t cell = 0; cell < box.size(); ++cell) {
      for (const Meeting& meeting : box.meetings(cell)) {
        const std::uint32_t second = box.number(box.sum(box.coordinates(meeting.first), ways[meeting.way]));
        EXPECT_EQ(cell, meeting.side == 0 ? meeting.first : second);
        if (meeting.side == 0) ++found[std::minmax(cell, second)];
      }
    }
    std::size_t near = 0;
    for (std::uint32_t a = 0; a < box.size(); ++a) {
      for (std::uint32_t b = a; b < box.size(); ++b) {
        bool is_near = true;
        for (unsigned d = 0; d < 3; ++d) {
          const int apart = std::abs(box.coordinates(a)[d] - box.coordinates(b)[d]);
          is_near &= std::min(apart, cells[d] - apart) <= away;
        }
        if (!is_near) continue;
        ++near;
        EXPECT_EQ((found[{a, b}]), 1) << a << " and " << b;
      }
    }
    EXPECT_EQ(found.size(), near);
  }
}

TEST(Box, particles_within_the_cutoff_are_in_cells_that_meet) {
  for (const int away : {1, 2}) {
    const Box box = make_box({6, 6, 6}, away, 64);
    // Two that have gone as far out of their cells as they may, towards each other, from cells that do not meet.
    EXPECT_GE(away * box.side - 2 * box.margin / 2, box.cutoff - 1e-12);
    EXPECT_GE(box.cutoff, cutoff_min - 1e-12);
  }
}

TEST(Box, is_as_near_to_a_cube_as_can_be) {
  EXPECT_EQ(shape_of(16, 2), (Coordinates{4, 2, 2}));
  EXPECT_EQ(shape_of(1, 2), (Coordinates{2, 2, 2}));
  EXPECT_EQ(shape_of(16 * 13, 2), (Coordinates{13, 4, 4}));
  EXPECT_EQ(shape_of(64, 2), (Coordinates{4, 4, 4}));
  EXPECT_EQ(shape_of(16, 4), (Coordinates{4, 4, 4}));
  EXPECT_EQ(shape_of(17, 2), (Coordinates{3, 3, 2}));  // 17 cannot be split so
}

TEST(Alone, energy_momentum_and_particles_are_conserved) {
  for (const int away : {1, 2}) {
    const Box box = make_box(away == 1 ? Coordinates{3, 3, 2} : Coordinates{4, 4, 4}, away, away == 1 ? 27 : 8);
    const Summary at_first = run_alone(box, 1, 5), all = run_alone(box, 120, 5);
    const double count = double(all.particles);
    EXPECT_EQ(all.particles, std::uint64_t(box.size()) * box.particles);
    EXPECT_NEAR(all.energy_last / count, all.energy_first / count, 2e-3);
    EXPECT_NE(all.checksum, at_first.checksum);
    EXPECT_EQ(all.energy_first, at_first.energy_first);
    for (const double sum : {all.momentum.x, all.momentum.y, all.momentum.z}) EXPECT_NEAR(sum, 0, 1e-10 * count);
  }
}

TEST(Alone, how_often_particles_are_exchanged_changes_nothing_but_rounding) {
  // The same lengths, so that it is the same system.
  const Box box = make_box({3, 3, 3}, 1, 20, 10);
  const Summary often = run_alone(box, 40, 1), seldom = run_alone(box, 40, 10);
  EXPECT_EQ(often.particles, seldom.particles);
  EXPECT_NE(often.checksum, seldom.checksum);
  EXPECT_NEAR(often.energy_last, seldom.energy_last, 1e-8 * double(often.particles));
}

TEST(Content, particles_that_leave_go_to_the_cell_where_they_are) {
  const Box box = make_box({3, 3, 3}, 1, 8);
  Content content(box, 0, 1);
  const double side = box.side, far = box.margin / 2;
  const std::vector<Particle> strays = {{1, {-far / 2, 1, 1}, {}},
                                        {2, {1, side + far / 2, 1}, {}},
                                        {3, {-far, -far, side + far}, {}}};
  content.join(strays);
  const std::vector<std::uint32_t> neighbours = box.neighbours(0);
  ASSERT_EQ(neighbours.size(), 26u);
  const auto leaving = content.take_leaving(box, 0, neighbours);
  EXPECT_EQ(content.particles().size(), 8u);
  std::map<std::uint64_t, std::pair<std::uint32_t, Vector>> went;
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    for (const Particle& particle : leaving[i]) went[particle.id] = {neighbours[i], particle.position};
  }
  ASSERT_EQ(went.size(), 3u);
  EXPECT_EQ(went[1].first, box.number({2, 0, 0}));
  EXPECT_DOUBLE_EQ(went[1].second.x, box.length(0) - far / 2);
  EXPECT_EQ(went[2].first, box.number({0, 1, 0}));
  EXPECT_DOUBLE_EQ(went[2].second.y, side + far / 2);
  EXPECT_EQ(went[3].first, box.number({2, 2, 1}));

  content.join(std::vector<Particle>{{4, {side + 1.1 * far, 1, 1}, {}}});
  EXPECT_THROW(content.take_leaving(box, 0, neighbours), UsageError);
}

}  // namespace
}  // namespace headway::leanmd
