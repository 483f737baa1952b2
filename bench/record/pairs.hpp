// SPDX-License-Identifier: BSD-3-Clause
/// What pairs of runs that follow each other say: the median of their ratios, and between which bounds it is known.
#pragma once

#include <cstddef>
#include <optional>
#include <record/record.hpp>
#include <utility>
#include <vector>

namespace headway::bench {

/// The positions, from 0, of the smallest and largest of `count` sorted values between which the median of their
/// distribution lies with at least 95 %, for any distribution (the sign test). Nothing for less than six values.
/// W. J. Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2.
std::optional<std::pair<std::size_t, std::size_t>> median_bounds(std::size_t count);

/// {"median", "min", "max", "low", "high", "pairs"} of ratios; "low" and "high" are the 95 % bounds of the median, null
/// where there are too few.
Json ratios_to_json(std::vector<double> ratios);

}  // namespace headway::bench
