// SPDX-License-Identifier: BSD-3-Clause
#include "growth.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace headway::tools {
namespace {

TEST(Growth, two_runs_tell_fixed_work_from_work_for_each_pair) {
  // randomaccess: 3 N / 16 instead of N / 4 messages to other PEs
  const Growth fixed = fit_growth(std::vector<Sample>{{2, 4000}, {4, 3000}});
  EXPECT_EQ(fixed.basis, Growth::Basis::others);
  EXPECT_DOUBLE_EQ(fixed.exponent, -1);
  EXPECT_NEAR(fixed.at(1000), 16'000 * 999.0 / 1e6, 1e-6);
  // synthetic: m for each other PE
  const Growth pairs = fit_growth(std::vector<Sample>{{2, 100}, {4, 300}});
  EXPECT_DOUBLE_EQ(pairs.exponent, 1);
  EXPECT_NEAR(pairs.at(1024), 102'300, 1e-6);
  // the same with an exponent of -0.99
  const Growth nearly = fit_growth(std::vector<Sample>{{2, 4000}, {4, 3020}});
  EXPECT_EQ(nearly.basis, Growth::Basis::others);
  EXPECT_DOUBLE_EQ(nearly.exponent, -1);
  // work for each PE
  const Growth same = fit_growth(std::vector<Sample>{{2, 50}, {4, 50}});
  EXPECT_EQ(same.basis, Growth::Basis::one);
  EXPECT_NEAR(same.at(1e5), 50, 1e-9);
}

TEST(Growth, three_runs_find_a_tree) {
  std::vector<Sample> samples;
  for (const double pes : {2.0, 8.0, 32.0}) samples.push_back({pes, 7 * std::log2(pes)});
  const Growth growth = fit_growth(samples);
  EXPECT_EQ(growth.basis, Growth::Basis::tree);
  EXPECT_NEAR(growth.at(1024), 70, 1e-9);
  EXPECT_NEAR(*error_of_last(std::vector<Sample>{{2, 8}, {4, 8}, {8, 10}}), -0.2, 1e-12);
}

TEST(Growth, zeros_and_single_runs_are_constant) {
  EXPECT_EQ(fit_growth({}).at(64), 0);
  EXPECT_EQ(fit_growth(std::vector<Sample>{{2, 0}, {4, 0}}).at(64), 0);
  EXPECT_EQ(fit_growth(std::vector<Sample>{{2, 0}, {4, 6}}).at(64), 6);
  EXPECT_EQ(fit_growth(std::vector<Sample>{{4, 9}}).at(64), 9);
  EXPECT_FALSE(error_of_last(std::vector<Sample>{{4, 9}}).has_value());
  EXPECT_FALSE(error_of_last(std::vector<Sample>{{2, 9}, {4, 0}}).has_value());
}

}  // namespace
}  // namespace headway::tools
