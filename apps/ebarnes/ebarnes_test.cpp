// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "body.hpp"
#include "cache.hpp"
#include "cell.hpp"
#include "serial.hpp"
#include "zones.hpp"

namespace headway::ebarnes {
namespace {

Options some(std::uint64_t bodies, double theta = 1) {
  Options options;
  options.bodies = bodies;
  options.theta = theta;
  return options;
}

/// Root mean square of the errors of all forces, relative to that of the forces.
double force_error(const Serial& serial, const Options& options) {
  double error2 = 0, pull2 = 0;
  for (const Body& body : serial.bodies()) {
    const Vector pull = direct_pull(serial.bodies(), body.at, body.id, options);
    error2 += square(body.acceleration - pull);
    pull2 += square(pull);
  }
  return std::sqrt(error2 / pull2);
}

TEST(Plummer, has_the_energy_of_the_model_and_no_momentum) {
  const Options options = some(20000);
  Serial serial(options);
  serial.pull();
  Energy energy;
  Vector momentum{}, center{};
  for (const Body& body : serial.bodies()) {
    energy.add(body);
    for (unsigned k = 0; k < 3; ++k) {
      momentum[k] += body.velocity[k] * options.mass();
      center[k] += body.at[k] * options.mass();
    }
  }
  EXPECT_NEAR(energy.total(options.mass()), -0.25, 0.01);
  EXPECT_NEAR(double(energy.kinetic) * Energy::unit * options.mass(), 0.25, 0.01);
  for (unsigned k = 0; k < 3; ++k) {
    EXPECT_NEAR(momentum[k], 0, 1e-9);
    EXPECT_NEAR(center[k], 0, 1e-9);
  }
}

TEST(Forces, are_those_of_a_direct_sum_within_what_theta_allows) {
  for (const double theta : {1.0, 0.6, 0.3}) {
    for (const double softening : {0.05, 0.001}) {
      Options options = some(3000, theta);
      options.softening = softening;
      Serial serial(options);
      serial.pull();
      const double error = force_error(serial, options);
      EXPECT_LT(error, force_error_max(theta)) << theta << ' ' << softening;
      EXPECT_GT(error, 0.01 * force_error_max(theta)) << theta << ' ' << softening;
      RecordProperty("error", std::to_string(error));
    }
  }
  EXPECT_DOUBLE_EQ(force_error_max(1), 1e-2);
  EXPECT_NEAR(force_error_max(0.3), 1e-4, 1e-6);
}

TEST(Forces, of_few_bodies_are_exact) {
  for (const std::uint64_t bodies : {1, 2, 3, 8}) {
    const Options options = some(bodies);
    Serial serial(options);
    serial.pull();
    EXPECT_EQ(serial.cells(), 1);
    for (const Body& body : serial.bodies()) {
      const Vector pull = direct_pull(serial.bodies(), body.at, body.id, options);
      EXPECT_NEAR(std::sqrt(square(body.acceleration - pull)), 0, 1e-14);
      EXPECT_EQ(body.cost, bodies - 1);
    }
  }
}

TEST(Tree, has_each_body_once_below_the_root) {
  for (const std::uint32_t bucket : {1, 3, 16}) {
    Options options = some(500, 0.001);  // opens every cell
    options.bucket = bucket;
    Serial serial(options);
    serial.pull();
    for (const Body& body : serial.bodies()) EXPECT_EQ(body.cost, options.bodies - 1);
  }
}

TEST(Steps, keep_the_energy) {
  Options options = some(1000);
  options.steps = 40;
  Serial serial(options);
  serial.pull();
  Energy before, after;
  for (const Body& body : serial.bodies()) before.add(body);
  serial.run();
  for (const Body& body : serial.bodies()) after.add(body);
  EXPECT_NEAR(after.total(options.mass()) / before.total(options.mass()), 1, 2e-3);
}

TEST(Cube, gives_keys_whose_prefixes_are_cells) {
  const Cube cube(3);
  EXPECT_EQ(cube.side(0), 8);
  const Vector at{-2.9, 0.1, 1.7};
  const std::uint64_t key = cube.key(at);
  for (unsigned level = 0; level <= Cube::levels; ++level) {
    const Vector center = cube.center(key, level);
    for (unsigned k = 0; k < 3; ++k) EXPECT_LE(std::abs(at[k] - center[k]), cube.side(level) / 2) << level;
    EXPECT_EQ(cube.center(Cube::first_key(key, level), level), center);
  }
  EXPECT_EQ(Cube::octant(cube.key({1, -1, -1}), 0), 1);
  EXPECT_EQ(Cube::octant(cube.key({-1, -1, 1}), 0), 4);
  EXPECT_EQ(cube.key({4, 4, 4}), (std::uint64_t(1) << 3 * Cube::levels) - 1);
}

TEST(Cache, finds_the_youngest_cells_and_no_older_ones) {
  for (const std::size_t capacity : {2, 3, 8, 13}) {
    Cache cache(capacity);
    Random random(capacity);
    std::vector<std::uint64_t> cells;  // the youngest last
    for (int i = 0; i < 500; ++i) {
      const std::uint64_t cell = std::uint64_t(1) << 44 | random.below(40) * sizeof(Cell);
      const bool is_there = std::find(cells.begin(), cells.end(), cell) != cells.end();
      ASSERT_EQ(cache.find(cell) != Cache::none, is_there);
      if (is_there) {
        ASSERT_EQ(cache.copy(cache.find(cell)).key, cell);
        continue;
      }
      cache.copy(cache.replace(cell)).key = cell;
      cells.push_back(cell);
      if (cells.size() > capacity) cells.erase(cells.begin());
    }
    cache.clear();
    for (const std::uint64_t cell : cells) EXPECT_EQ(cache.find(cell), Cache::none);
  }
}

TEST(Zones, cost_about_the_same_and_keep_equal_keys_together) {
  Random random(5);
  for (const std::size_t pes : {1, 2, 3, 8, 16}) {
    std::vector<std::vector<Body>> bodies(pes);
    std::vector<Sample> samples;
    double all = 0;
    for (std::vector<Body>& own : bodies) {
      own.resize(random.below(4000));  // one PE may have no body at all
      for (Body& body : own) {
        body.key = random.below(1 << 20);
        body.cost = 1 + random.below(100) + (body.key < 1000 ? 500 : 0);
        all += double(body.cost);
      }
      std::ranges::sort(own, {}, &Body::key);
      for (const Sample& sample : samples_of(own, samples_each(pes))) samples.push_back(sample);
    }
    const std::vector<std::uint64_t> ends = zone_ends(samples, pes);
    ASSERT_EQ(ends.size() + 1, pes);
    ASSERT_TRUE(std::ranges::is_sorted(ends));
    std::vector<double> costs(pes);
    for (const std::vector<Body>& own : bodies) {
      for (const Body& body : own) costs[zone_of(ends, body.key)] += double(body.cost);
    }
    for (const double cost : costs) EXPECT_NEAR(cost * double(pes) / all, 1, 0.15) << pes;
  }
}

TEST(Zones, of_equal_keys_are_one_zone) {
  const std::vector<Sample> samples(7, {9, 1.0});
  const std::vector<std::uint64_t> ends = zone_ends(samples, 4);
  EXPECT_EQ(ends, (std::vector<std::uint64_t>{9, 9, 9}));
  EXPECT_EQ(zone_of(ends, 9), 3);
  EXPECT_EQ(zone_of(ends, 8), 0);
  EXPECT_EQ(zone_of(zone_ends({}, 3), 5), 0);
}

}  // namespace
}  // namespace headway::ebarnes
