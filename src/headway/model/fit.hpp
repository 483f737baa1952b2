// SPDX-License-Identifier: BSD-3-Clause
/// Robust fits of lines to measured times, with 95 % intervals, and medians.
///
/// Method: iteratively reweighted least squares. It starts from the line of least absolute residuals and ends with
/// Tukey's bisquare weights (constant 4.685, scale 1.4826 median |r|; Beaton and Tukey, 1974). Reasons: timings have
/// outliers on one side, which the bisquare ignores; and its cost grows with the number of points, that of Theil-Sen
/// with the square, which matters for many resamples.
///
/// Interval: percentile bootstrap over resampled points (Efron, 1979), from a seed, so that the same points always give
/// the same interval. Reason: errors of timings are neither normal nor equal, as the t interval assumes. The bootstrap
/// of few points is too narrow: its width is multiplied by sqrt(n / (n - 2)) and by the 97.5 % quantile of Student's t
/// over the normal one, which is about 1 + (1.96^2 + 1) / (4 (n - 2)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headway::model {

struct Point {
  double x, y;
};

/// A value that cannot be negative, and its 95 % interval. 0 <= low <= value <= high.
struct Estimate {
  double value = 0, low = 0, high = 0;
  bool includes_zero = false;  // the points do not tell it from 0: the interval reached 0 or below, and was cut there
  bool is_below_zero = false;  // all of the interval was below 0: the points contradict a line. Then all three are 0
};

struct FitOptions {
  std::uint64_t seed = 1;
  unsigned resamples = 1000;  // 40 to 100,000
  /// Residuals count in parts of the line, because errors of timings grow with the time; then every y must be above 0.
  /// Else they count in units of y.
  bool relative = true;
  std::size_t points_min = 8;  // of a segment, at least 3
  unsigned segments_max = 5;   // 1 to 20
};

struct Line {
  double intercept = 0, slope = 0;
  double operator()(double x) const { return intercept + slope * x; }
};

/// Units: of y for the intercept, of y over x for the slope. Residuals are parts of the line, or in units of y.
struct LineFit {
  double first_x = 0, last_x = 0;  // of its points
  Estimate intercept, slope;
  std::size_t points = 0, outliers = 0;  // outliers had no weight
  double residual_median = 0;            // of absolute residuals of all points
  double residual_max = 0;               // of absolute residuals of the points that are no outliers

  Line line() const { return {intercept.value, slope.value}; }
};

/// One line with intercept and slope of 0 or more. Where the best line has a negative one, that is 0 and the other one
/// is fitted again. SettingError for fewer than 3 points, fewer than 2 different x, values that are not finite, a
/// negative x, and a y of 0 or less with `relative`.
LineFit fit_line(std::span<const Point> points, const FitOptions& options = {});

/// Lines with jumps between them, as where a protocol changes with the size (Culler, RTPP 1998: a jump of the residual
/// starts a new segment). Ascending in x; at least one.
struct SegmentedFit {
  std::vector<LineFit> segments;

  /// The segment for x: the last one that begins at or below it, else the first one.
  const LineFit& at(double x) const;
  double operator()(double x) const { return at(x).line()(x); }
};

/// The number of segments and their ends minimize the sum over points of min(r^2 / s^2, 9) plus 3 ln n + 9 for each
/// segment (dynamic programming; the penalty is that of BIC for three parameters and one outlier). s is the noise
/// of neighbours: the median distance of a point from the line through its two neighbours. Errors: as fit_line().
SegmentedFit fit_segments(std::span<const Point> points, const FitOptions& options = {});

/// Residuals of points in their order, y - fit(x): in parts of fit(x) if `relative`, of y where fit(x) is 0.
std::vector<double> residuals(std::span<const Point> points, const SegmentedFit& fit, bool relative = true);

/// The median of samples, with the interval of order statistics: ranks k and n + 1 - k with the largest k for which a
/// binomial of n halves is below k in at most 2.5 % (Thompson, 1936). With fewer than 6 samples no ranks reach 95 %:
/// then it is the smallest and the largest one. Negative samples count, so an interval may include 0. SettingError for
/// no samples and samples that are not finite.
Estimate median_of(std::span<const double> samples);

}  // namespace headway::model
