// SPDX-License-Identifier: BSD-3-Clause
/// How a number of a run grows with the number of PEs.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace headway::tools {

struct Sample {
  double pes, value;
};

/// value = factor P^exponent times 1, (P - 1) / P (all that goes to other PEs), or log2 P (trees).
struct Growth {
  enum class Basis { one, others, tree };

  double factor = 0, exponent = 0;
  Basis basis = Basis::one;

  double at(double pes) const;
  /// "1.5e+05 P^-1.00 (P-1)/P"
  std::string text() const;
};

/// The growth that fits the samples best, by least squares of logarithms. Of two samples: the one with the most nearly
/// whole exponent. Of one: constant. An exponent within 0.02 of a whole number is that number. All samples have P >= 2
/// and different P, ascending; with a value of 0 among others the growth is constant at the last one.
Growth fit_growth(std::span<const Sample> samples);

/// The prediction of the last sample from all before it, over its value, minus 1. Empty for fewer than two samples, or
/// where the value is 0.
std::optional<double> error_of_last(std::span<const Sample> samples);

}  // namespace headway::tools
