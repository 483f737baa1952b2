// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <headway/base/random.hpp>
#include <headway/model/argument.hpp>
#include <headway/model/fit.hpp>
#include <headway/model/weighted_line.hpp>
#include <limits>

namespace headway::model {

namespace {

constexpr double bisquare_limit = 4.685;    // residuals beyond so many scales have no weight
constexpr double scale_of_median = 1.4826;  // a normal distribution's deviation over its median absolute one
constexpr double rounding = 1e-9;           // of the smallest y: lines are known no better
constexpr unsigned steps_to_start = 20, steps_to_end = 30, steps_of_resample = 10;

struct RobustLine {
  Line line;
  double scale;
};

double scale_of(const Samples& samples, const Line& line) {
  std::vector<double> sizes(samples.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = std::abs(samples.residual(line, i));
  return std::max(scale_of_median * median(std::move(sizes)), samples.tolerance);
}

double bisquare(double scaled) {
  const double part = scaled / bisquare_limit;
  return std::abs(part) >= 1 ? 0 : (1 - part * part) * (1 - part * part);
}

/// Multiplied by `counts`, the times that a point counts.
Line bisquare_step(const Samples& samples, const Line& line, double scale, std::span<const double> counts,
                   std::vector<double>& weights, bool bounded) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = counts[i] * bisquare(samples.residual(line, i) / scale);
  }
  return weighted_line(samples, 0, samples.size(), weights, bounded);
}

RobustLine robust_line(const Samples& samples, bool bounded) {
  Line line = least_absolute_line(samples, 0, samples.size(), bounded, steps_to_start);
  const std::vector<double> once(samples.size(), 1);
  std::vector<double> weights(samples.size());
  double scale = scale_of(samples, line);
  for (unsigned step = 0; step < steps_to_end; ++step) {
    const Line next = bisquare_step(samples, line, scale, once, weights, bounded);
    if (!std::isfinite(next.slope)) break;  // all points with weight have the same x
    line = next;
    scale = scale_of(samples, line);
  }
  return {line, scale};
}

/// From now on residuals are parts of the line. As parts of y they favour points that are too fast, which biases it.
void measure_by(const Line& line, Samples& samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (const double y = line(samples.points[i].x); y > 0) samples.unit[i] = 1 / y;
  }
}

/// The estimate of `value` from values of resamples, without bounds. `zero`: values up to that are rounding errors.
Estimate estimate_of(double value, std::vector<double> resampled, std::size_t points, double zero) {
  std::ranges::sort(resampled);
  auto at = [&](double part) { return resampled[std::size_t(std::lround(part * double(resampled.size() - 1)))]; };
  const double freedom = double(points - 2);
  const double widening = std::sqrt(double(points) / freedom) * (1 + (1.96 * 1.96 + 1) / (4 * freedom));
  const double middle = at(0.5);
  const double low = middle + (at(0.025) - middle) * widening, high = middle + (at(0.975) - middle) * widening;
  if (high < -zero) return {.includes_zero = false, .is_below_zero = true};
  if (low <= zero) return {value, 0, std::max(high, value), true, false};
  return {value, std::min(low, value), std::max(high, value), false, false};
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

LineFit fit_line(std::span<const Point> points, const FitOptions& options) {
  Samples samples = samples_of(points, options);
  const std::size_t n = samples.size();
  for (int pass = 0; options.relative && pass < 2; ++pass) measure_by(robust_line(samples, true).line, samples);
  const RobustLine bounded = robust_line(samples, true), free = robust_line(samples, false);

  std::vector<double> intercepts, slopes, counts(n), weights(n);
  Random random(options.seed);
  for (unsigned resample = 0; resample < options.resamples; ++resample) {
    std::ranges::fill(counts, 0);
    for (std::size_t i = 0; i < n; ++i) counts[random.below(n)] += 1;
    Line line = free.line;
    for (unsigned step = 0; step < steps_of_resample && std::isfinite(line.slope); ++step) {
      line = bisquare_step(samples, line, free.scale, counts, weights, false);
    }
    if (!std::isfinite(line.slope)) continue;  // a resample of one x has no slope
    intercepts.push_back(line.intercept);
    slopes.push_back(line.slope);
  }
  if (slopes.empty()) intercepts = {free.line.intercept}, slopes = {free.line.slope};

  double y_least = std::numeric_limits<double>::max();
  for (const Point& point : samples.points) y_least = std::min(y_least, std::abs(point.y));
  LineFit fit;
  fit.first_x = samples.points.front().x;
  fit.last_x = samples.points.back().x;
  fit.intercept = estimate_of(bounded.line.intercept, std::move(intercepts), n, rounding * y_least);
  fit.slope = estimate_of(bounded.line.slope, std::move(slopes), n, rounding * y_least / fit.last_x);
  fit.points = n;
  std::vector<double> sizes(n);
  for (std::size_t i = 0; i < n; ++i) {
    sizes[i] = std::abs(samples.residual(bounded.line, i));
    const bool is_outlier = sizes[i] > bisquare_limit * bounded.scale;
    if (is_outlier) ++fit.outliers;
    if (!is_outlier) fit.residual_max = std::max(fit.residual_max, sizes[i]);
  }
  fit.residual_median = median(std::move(sizes));
  return fit;
}

Estimate median_of(std::span<const double> samples) {
  require_at_least("number of samples", double(samples.size()), 1);
  std::vector<double> sorted(samples.begin(), samples.end());
  for (const double sample : sorted) require_at_least("sample", sample, std::numeric_limits<double>::lowest());
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  // the binomial's logarithms, so that no power of two underflows
  double below = 0;
  std::size_t rank = 0;  // from 0: sorted[rank] is the lower end
  for (std::size_t k = 0; k < n / 2; ++k) {
    const double of_n = std::lgamma(double(n) + 1), of_k = std::lgamma(double(k) + 1);
    below += std::exp(of_n - of_k - std::lgamma(double(n - k) + 1) - double(n) * std::log(2.0));
    if (below > 0.025) break;
    rank = k;
  }
  const double low = sorted[rank], high = sorted[n - 1 - rank], value = median(sorted);
  if (high < 0) return {.includes_zero = false, .is_below_zero = true};
  return {std::max(value, 0.0), std::max(low, 0.0), high, low <= 0, false};
}

}  // namespace headway::model
