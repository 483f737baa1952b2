// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <headway/model/fit.hpp>
#include <vector>

namespace headway::model {
namespace {

/// Nearly normal, of deviation 1: the sum of twelve uniform ones.
double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.fraction();
  return sum;
}

struct Noise {
  double relative = 0.02;
  double outliers = 0;  // that part is up to three times as slow
};

/// Times of random sizes, log-uniform, in random order.
template <typename Truth>
std::vector<Point> points_of(std::uint64_t seed, std::size_t count, std::size_t x_max, Noise noise,
                             const Truth& truth) {
  Random random(seed);
  std::vector<Point> points;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = double(random.size(1, x_max));
    double y = truth(x) * (1 + noise.relative * normal(random));
    if (random.chance(noise.outliers)) y *= 1 + 2 * random.fraction();
    points.push_back({x, y});
  }
  return points;
}

constexpr FitOptions quick{.seed = 7, .resamples = 200};

TEST(Fit, points_of_a_line_give_the_line) {
  const std::vector<Point> points{{4, 9}, {1, 3}, {3, 7}, {2, 5}};  // 1 + 2 x
  for (const bool relative : {true, false}) {
    const LineFit fit = fit_line(points, {.relative = relative});
    EXPECT_NEAR(fit.intercept.value, 1, 1e-9);
    EXPECT_NEAR(fit.slope.value, 2, 1e-9);
    EXPECT_NEAR(fit.slope.low, 2, 1e-6);
    EXPECT_NEAR(fit.slope.high, 2, 1e-6);
    EXPECT_FALSE(fit.slope.includes_zero || fit.intercept.includes_zero);
    EXPECT_EQ(fit.first_x, 1);
    EXPECT_EQ(fit.last_x, 4);
    EXPECT_EQ(fit.points, 4);
    EXPECT_EQ(fit.outliers, 0);
    EXPECT_NEAR(fit.residual_max, 0, 1e-9);
  }
}

TEST(Fit, outliers_do_not_move_the_line) {
  const std::vector<Point> points{{1, 3}, {2, 5}, {3, 7}, {4, 9}, {5, 110}, {6, 13}, {7, 150}};
  for (const bool relative : {true, false}) {
    const LineFit fit = fit_line(points, {.relative = relative});
    EXPECT_NEAR(fit.intercept.value, 1, 1e-6);
    EXPECT_NEAR(fit.slope.value, 2, 1e-6);
    EXPECT_EQ(fit.outliers, 2);
  }
  // 30 of 100 times are too long; plain least squares would be off by a third
  const std::vector<Point> noisy =
      points_of(1, 100, 1 << 20, {.relative = 0.01, .outliers = 0.3}, [](double x) { return 1000 + 0.5 * x; });
  const LineFit fit = fit_line(noisy);
  EXPECT_NEAR(fit.intercept.value, 1000, 20);
  EXPECT_NEAR(fit.slope.value, 0.5, 0.01);
  EXPECT_GT(fit.outliers, 15);
}

TEST(Fit, the_same_seed_gives_the_same_interval) {
  const std::vector<Point> points = points_of(3, 60, 1 << 16, {}, [](double x) { return 500 + x; });
  const LineFit one = fit_line(points, quick), again = fit_line(points, quick), other = fit_line(points, {.seed = 8});
  EXPECT_EQ(one.slope.low, again.slope.low);
  EXPECT_EQ(one.intercept.high, again.intercept.high);
  EXPECT_EQ(one.slope.value, other.slope.value);
  EXPECT_NE(one.slope.low, other.slope.low);
}

TEST(Fit, nineteen_of_twenty_intervals_hold_the_true_value) {
  int intercepts = 0, slopes = 0;
  const int runs = 200;
  for (int seed = 0; seed < runs; ++seed) {
    const std::vector<Point> points = points_of(std::uint64_t(seed), 40, 1 << 16, {.relative = 0.05, .outliers = 0.05},
                                                [](double x) { return 500 + 0.25 * x; });
    const LineFit fit = fit_line(points, quick);
    ASSERT_LE(fit.slope.low, fit.slope.value);
    ASSERT_LE(fit.slope.value, fit.slope.high);
    intercepts += fit.intercept.low <= 500 && 500 <= fit.intercept.high;
    slopes += fit.slope.low <= 0.25 && 0.25 <= fit.slope.high;
  }
  // 95 % of 200 is 190; a binomial's deviation is 3
  EXPECT_GE(intercepts, 178);
  EXPECT_GE(slopes, 178);
  EXPECT_LT(std::min(intercepts, slopes), runs);  // and they are no wider than they should be
}

TEST(Fit, a_value_that_points_do_not_tell_from_0_says_so_and_is_never_negative) {
  int slope_includes = 0, intercept_includes = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const LineFit flat = fit_line(points_of(seed, 40, 1000, {}, [](double) { return 100.0; }), quick);
    ASSERT_GE(flat.slope.value, 0);
    ASSERT_GE(flat.slope.low, 0);
    slope_includes += flat.slope.includes_zero;
    const LineFit steep = fit_line(points_of(seed, 40, 1000, {}, [](double x) { return 3 * x; }), quick);
    ASSERT_GE(steep.intercept.value, 0);
    ASSERT_GE(steep.intercept.low, 0);
    ASSERT_NEAR(steep.slope.value, 3, 0.1);
    intercept_includes += steep.intercept.includes_zero;
  }
  EXPECT_GE(slope_includes, 34);
  EXPECT_GE(intercept_includes, 34);
  // exact points leave a rounding error, which tells nothing
  EXPECT_TRUE(fit_line(std::vector<Point>{{1, 3}, {2, 6}, {3, 9}, {4, 12}}).intercept.includes_zero);
  EXPECT_TRUE(fit_line(std::vector<Point>{{1, 5}, {2, 5}, {3, 5}, {4, 5}}).slope.includes_zero);
}

TEST(Fit, points_that_contradict_a_line_are_reported) {
  // times that fall with the size: no slope of 0 or more fits
  const LineFit fit = fit_line(points_of(1, 60, 1000, {.relative = 0.01}, [](double x) { return 5000 - 2 * x; }));
  EXPECT_TRUE(fit.slope.is_below_zero);
  EXPECT_EQ(fit.slope.value, 0);
  EXPECT_EQ(fit.slope.high, 0);
  EXPECT_GT(fit.intercept.value, 3000);
}

TEST(Fit, a_jump_of_the_residual_starts_a_segment) {
  // a second protocol from 8192 bytes on: more overhead, less for a byte
  auto truth = [](double x) { return x < 8192 ? 1000 + 0.3 * x : 6000 + 0.1 * x; };
  const std::vector<Point> points = points_of(5, 200, 1 << 20, {.relative = 0.02, .outliers = 0.05}, truth);
  const SegmentedFit fit = fit_segments(points, quick);
  ASSERT_EQ(fit.segments.size(), 2);
  EXPECT_NEAR(fit.segments[0].intercept.value, 1000, 30);
  EXPECT_NEAR(fit.segments[0].slope.value, 0.3, 0.02);
  EXPECT_NEAR(fit.segments[1].intercept.value, 6000, 300);
  EXPECT_NEAR(fit.segments[1].slope.value, 0.1, 0.003);
  EXPECT_LT(fit.segments[0].last_x, fit.segments[1].first_x);
  EXPECT_EQ(fit.segments[0].points + fit.segments[1].points, 200);
  // the places where segments may begin are two points apart
  EXPECT_GT(fit.segments[1].first_x, 0.8 * 8192);
  EXPECT_LT(fit.segments[1].first_x, 1.25 * 8192);
  for (const double x : {1.0, 100.0, 5000.0, 20'000.0, 1e6}) EXPECT_NEAR(fit(x) / truth(x), 1, 0.05) << x;
  std::vector<double> sizes = residuals(points, fit);
  ASSERT_EQ(sizes.size(), 200);
  for (double& size : sizes) size = std::abs(size);
  std::ranges::nth_element(sizes, sizes.begin() + 100);
  EXPECT_LT(sizes[100], 0.02);
}

TEST(Fit, three_protocols_are_three_segments) {
  auto truth = [](double x) { return x < 256 ? 300 + x : x < 65536 ? 900 + 0.5 * x : 20'000 + 0.08 * x; };
  const SegmentedFit fit = fit_segments(points_of(9, 300, 1 << 22, {}, truth), quick);
  ASSERT_EQ(fit.segments.size(), 3);
  EXPECT_NEAR(std::log2(fit.segments[1].first_x), 8, 0.5);
  EXPECT_NEAR(std::log2(fit.segments[2].first_x), 16, 0.5);
}

TEST(Fit, noise_alone_starts_no_segment) {
  int one = 0;
  const FitOptions fewest{.resamples = 40};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Noise noise{.relative = 0.03, .outliers = seed % 2 == 0 ? 0 : 0.1};
    const std::vector<Point> points = points_of(seed, 80, 1 << 20, noise, [](double x) { return 2000 + 0.2 * x; });
    one += fit_segments(points, fewest).segments.size() == 1;
  }
  EXPECT_GE(one, 57);
}

TEST(Fit, few_points_and_equal_sizes_are_one_segment) {
  EXPECT_EQ(fit_segments(std::vector<Point>{{1, 3}, {2, 5}, {3, 7}}).segments.size(), 1);
  // 60 points of 2 sizes
  std::vector<Point> points;
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    const double x = i % 2 == 0 ? 8 : 4096;
    points.push_back({x, (100 + x) * (1 + 0.01 * normal(random))});
  }
  const SegmentedFit fit = fit_segments(points, quick);
  ASSERT_EQ(fit.segments.size(), 1);
  EXPECT_NEAR(fit.segments[0].slope.value, 1, 0.02);
}

TEST(Fit, the_median_has_an_interval_of_ranks) {
  // n = 10: at most 1 of 10 halves has 11 / 1024 = 1.1 %, at most 2 has 5.5 %: ranks 2 and 9
  const Estimate ten = median_of(std::vector<double>{3, 1, 2, 10, 9, 8, 4, 7, 5, 6});
  EXPECT_DOUBLE_EQ(ten.value, 5.5);
  EXPECT_EQ(ten.low, 2);
  EXPECT_EQ(ten.high, 9);
  EXPECT_FALSE(ten.includes_zero);
  const Estimate three = median_of(std::vector<double>{5, -1, 7});
  EXPECT_EQ(three.value, 5);
  EXPECT_EQ(three.low, 0);
  EXPECT_EQ(three.high, 7);
  EXPECT_TRUE(three.includes_zero);
  EXPECT_TRUE(median_of(std::vector<double>(20, -3)).is_below_zero);
  EXPECT_EQ(median_of(std::vector<double>(20, -3)).high, 0);
  // 3000 samples: a normal distribution gives ranks 1500 -+ 0.98 sqrt(3000) = 1446 and 1554
  std::vector<double> many;
  for (int i = 1; i <= 3000; ++i) many.push_back(i);
  EXPECT_NEAR(median_of(many).low, 1447, 2);
  EXPECT_NEAR(median_of(many).high, 1554, 2);
}

TEST(Fit, bad_points_are_refused) {
  const std::vector<Point> good{{1, 3}, {2, 5}, {3, 7}};
  EXPECT_THROW(fit_line(std::vector<Point>{{1, 3}, {2, 5}}), SettingError);
  EXPECT_THROW(fit_line(std::vector<Point>{{1, 3}, {1, 5}, {1, 7}}), SettingError);
  EXPECT_THROW(fit_line(std::vector<Point>{{-1, 3}, {1, 5}, {2, 7}}), SettingError);
  EXPECT_THROW(fit_line(std::vector<Point>{{0, 0}, {1, 5}, {2, 7}}), SettingError);
  EXPECT_NO_THROW(fit_line(std::vector<Point>{{0, 0}, {1, 5}, {2, 7}}, {.relative = false}));
  EXPECT_THROW(fit_line(std::vector<Point>{{0, std::nan("")}, {1, 5}, {2, 7}}, {.relative = false}), SettingError);
  EXPECT_THROW(fit_line(std::vector<Point>{{0, 1}, {INFINITY, 5}, {2, 7}}), SettingError);
  EXPECT_THROW(fit_line(good, {.resamples = 39}), SettingError);
  EXPECT_THROW(fit_segments(good, {.points_min = 2}), SettingError);
  EXPECT_THROW(fit_segments(good, {.segments_max = 0}), SettingError);
  EXPECT_THROW(median_of({}), SettingError);
  EXPECT_THROW(median_of(std::vector<double>{1, INFINITY}), SettingError);
}

}  // namespace
}  // namespace headway::model
