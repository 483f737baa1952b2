// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <headway/model/argument.hpp>
#include <headway/model/fit.hpp>
#include <headway/model/weighted_line.hpp>
#include <limits>

namespace headway::model {

namespace {

constexpr std::size_t boundaries_max = 100;  // segments begin at one of so many points: bounds the time
constexpr double square_max = 9;             // the most that a point costs, in squares of the noise
constexpr unsigned steps_of_segment = 15;
constexpr double tolerance = 1e-9;  // of y: smaller residuals are rounding errors
constexpr double one_x = 1e-24;     // a smaller variance of x, in squares of its mean, is a rounding error

/// The standard deviation of points about the lines through their neighbours, in the unit of residuals.
double noise_of(const Samples& samples) {
  std::vector<double> sizes;
  for (std::size_t i = 1; i + 1 < samples.size(); ++i) {
    const Point &before = samples.points[i - 1], &at = samples.points[i], &after = samples.points[i + 1];
    if (before.x == after.x) continue;
    const double part = (at.x - before.x) / (after.x - before.x);
    const double apart = at.y - before.y - part * (after.y - before.y);
    // of three errors with weights 1, 1 - part and part
    sizes.push_back(std::abs(apart) * samples.unit[i] / std::sqrt(1 + part * part + (1 - part) * (1 - part)));
  }
  return std::max(1.4826 * median(std::move(sizes)), samples.tolerance);
}

/// Where segments may begin, and the number of points: at most `boundaries_max` places, none between equal x.
std::vector<std::size_t> boundaries_of(const Samples& samples) {
  const std::size_t n = samples.size(), step = (n + boundaries_max - 1) / boundaries_max;
  std::vector<std::size_t> boundaries{0};
  for (std::size_t i = step; i < n; ++i) {
    if (i - boundaries.back() >= step && samples.points[i - 1].x != samples.points[i].x) boundaries.push_back(i);
  }
  boundaries.push_back(n);
  return boundaries;
}

double cost_of_segment(const Samples& samples, std::size_t first, std::size_t last, double noise) {
  const Line line = least_absolute_line(samples, first, last, false, steps_of_segment);
  double cost = 0;
  for (std::size_t i = first; i < last; ++i) {
    const double scaled = samples.residual(line, i) / noise;
    cost += std::min(scaled * scaled, square_max);
  }
  return cost;
}

/// The ends of the best segments, the number of points last.
std::vector<std::size_t> best_ends(const Samples& samples, const FitOptions& options) {
  const std::vector<std::size_t> at = boundaries_of(samples);
  const double noise = noise_of(samples), never = std::numeric_limits<double>::infinity();
  const double penalty = 3 * std::log(double(samples.size())) + square_max;
  const std::size_t ends = at.size();
  // best[k][j]: the least cost of k + 1 segments up to at[j]; from[k][j]: where the last of them begins
  std::vector<std::vector<double>> best(options.segments_max, std::vector<double>(ends, never));
  std::vector<std::vector<std::size_t>> from(options.segments_max, std::vector<std::size_t>(ends, 0));
  for (std::size_t i = 0; i + 1 < ends; ++i) {
    for (std::size_t j = i + 1; j < ends; ++j) {
      const bool is_whole = i == 0 && j + 1 == ends;
      if (!is_whole && (at[j] - at[i] < options.points_min || is_one_x(samples, at[i], at[j]))) continue;
      const double cost = cost_of_segment(samples, at[i], at[j], noise);
      if (i == 0) best[0][j] = cost;
      for (unsigned k = 1; k < options.segments_max && i != 0; ++k) {
        if (best[k - 1][i] + cost + penalty >= best[k][j]) continue;
        best[k][j] = best[k - 1][i] + cost + penalty;
        from[k][j] = i;
      }
    }
  }
  unsigned k = 0;
  for (unsigned more = 1; more < options.segments_max; ++more) {
    if (best[more][ends - 1] < best[k][ends - 1]) k = more;
  }
  std::vector<std::size_t> result{samples.size()};
  for (std::size_t j = ends - 1; k > 0; --k) {
    j = from[k][j];
    result.insert(result.begin(), at[j]);
  }
  return result;
}

}  // namespace

Samples samples_of(std::span<const Point> points, const FitOptions& options) {
  require_at_least("number of points", double(points.size()), 3);
  require_between("resamples", options.resamples, 40, 100'000);
  require_at_least("points of a segment", double(options.points_min), 3);
  require_between("most segments", options.segments_max, 1, 20);
  Samples samples{{points.begin(), points.end()}, {}, tolerance};
  std::ranges::stable_sort(samples.points, {}, &Point::x);
  double y_most = 0;
  for (const Point& point : samples.points) {
    require_at_least("x of a point", point.x, 0);
    if (options.relative) require_positive("y of a point", point.y);
    if (!options.relative) require_at_least("y of a point", point.y, std::numeric_limits<double>::lowest());
    samples.unit.push_back(options.relative ? 1 / point.y : 1);
    y_most = std::max(y_most, std::abs(point.y));
  }
  if (!options.relative) samples.tolerance = std::max(tolerance * y_most, std::numeric_limits<double>::min());
  require_positive("largest x - smallest x", samples.points.back().x - samples.points.front().x);
  return samples;
}

bool is_one_x(const Samples& samples, std::size_t first, std::size_t last) {
  return samples.points[first].x == samples.points[last - 1].x;
}

Line weighted_line(const Samples& samples, std::size_t first, std::size_t last, std::span<const double> weights,
                   bool bounded) {
  double w = 0, wx = 0, wy = 0;
  for (std::size_t i = first; i < last; ++i) {
    const double weight = weights[i - first] * samples.unit[i] * samples.unit[i];
    w += weight;
    wx += weight * samples.points[i].x;
    wy += weight * samples.points[i].y;
  }
  const double x_mean = wx / w, y_mean = wy / w;
  double xx = 0, xy = 0, xx_of_origin = 0, xy_of_origin = 0;
  for (std::size_t i = first; i < last; ++i) {
    const double weight = weights[i - first] * samples.unit[i] * samples.unit[i];
    const auto& [x, y] = samples.points[i];
    xx += weight * (x - x_mean) * (x - x_mean);
    xy += weight * (x - x_mean) * (y - y_mean);
    xx_of_origin += weight * x * x;
    xy_of_origin += weight * x * y;
  }
  if (!(xx > w * x_mean * x_mean * one_x)) return {std::nan(""), std::nan("")};
  const double slope = xy / xx, intercept = y_mean - slope * x_mean;
  if (!bounded || (slope >= 0 && intercept >= 0)) return {intercept, slope};
  if (slope < 0) return {std::max(y_mean, 0.0), 0};
  return {0, std::max(xy_of_origin / xx_of_origin, 0.0)};
}

Line least_absolute_line(const Samples& samples, std::size_t first, std::size_t last, bool bounded, unsigned steps) {
  std::vector<double> weights(last - first, 1);
  Line line = weighted_line(samples, first, last, weights, bounded);
  for (unsigned step = 0; step < steps; ++step) {
    for (std::size_t i = first; i < last; ++i) {
      weights[i - first] = 1 / std::max(std::abs(samples.residual(line, i)), samples.tolerance);
    }
    const Line next = weighted_line(samples, first, last, weights, bounded);
    if (!std::isfinite(next.slope)) break;
    line = next;
  }
  return line;
}

const LineFit& SegmentedFit::at(double x) const {
  std::size_t i = segments.size() - 1;
  while (i > 0 && x < segments[i].first_x) --i;
  return segments[i];
}

SegmentedFit fit_segments(std::span<const Point> points, const FitOptions& options) {
  const Samples samples = samples_of(points, options);
  SegmentedFit fit;
  std::size_t first = 0;
  for (const std::size_t end : best_ends(samples, options)) {
    FitOptions of_segment = options;
    of_segment.seed += fit.segments.size();
    fit.segments.push_back(fit_line(std::span(samples.points).subspan(first, end - first), of_segment));
    first = end;
  }
  return fit;
}

std::vector<double> residuals(std::span<const Point> points, const SegmentedFit& fit, bool relative) {
  std::vector<double> all;
  for (const auto& [x, y] : points) {
    if (relative) require_positive("y of a point", y);
    const double expected = fit(x);
    all.push_back((y - expected) / (!relative ? 1 : expected > 0 ? expected : y));
  }
  return all;
}

}  // namespace headway::model
