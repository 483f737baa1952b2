// SPDX-License-Identifier: BSD-3-Clause
/// The steps of a robust fit, for fit.cpp and segments.cpp.
#pragma once

#include <headway/model/fit.hpp>

namespace headway::model {

/// Points with the weight that their residuals have: 1 / |y| for relative ones, else 1.
struct Samples {
  std::vector<Point> points;  // ascending in x
  std::vector<double> unit;   // a residual times that is in the unit of scales
  double tolerance = 0;       // smaller residuals are rounding errors, in the unit of scales

  std::size_t size() const { return points.size(); }
  double residual(const Line& line, std::size_t i) const { return (points[i].y - line(points[i].x)) * unit[i]; }
};

/// Checks and sorts. SettingError as fit_line().
Samples samples_of(std::span<const Point> points, const FitOptions& options);

/// Whether all points in [first, last) have the same x.
bool is_one_x(const Samples& samples, std::size_t first, std::size_t last);

/// The line of least squares of the points in [first, last), with weights times the square of their units. With
/// `bounded`, intercept and slope are 0 or more. Both are NaN if all points with weight have the same x.
Line weighted_line(const Samples& samples, std::size_t first, std::size_t last, std::span<const double> weights,
                   bool bounded);

/// The line of about the least absolute residuals, with `steps` steps.
Line least_absolute_line(const Samples& samples, std::size_t first, std::size_t last, bool bounded, unsigned steps);

/// The middle value; of an even number, the mean of the two in the middle. 0 for none.
double median(std::vector<double> values);

}  // namespace headway::model
