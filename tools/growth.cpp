// SPDX-License-Identifier: BSD-3-Clause
#include "growth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headway::tools {
namespace {

constexpr double whole_enough = 0.02;
// Prefers a whole exponent among growths that fit equally well.
constexpr double weight_of_whole = 1e-4;

double value_of(Growth::Basis basis, double pes) {
  switch (basis) {
    case Growth::Basis::others: return (pes - 1) / pes;
    case Growth::Basis::tree: return std::log2(pes);
    default: return 1;
  }
}

double distance_to_whole(double exponent) { return std::abs(exponent - std::round(exponent)); }

struct Fit {
  Growth growth;
  double score;  // less is better
};

/// The mean of log(value / (basis P^exponent)).
double mean_log(std::span<const Sample> samples, Growth::Basis basis, double exponent) {
  double sum = 0;
  for (const Sample& s : samples) sum += std::log(s.value / value_of(basis, s.pes)) - exponent * std::log(s.pes);
  return sum / double(samples.size());
}

Fit fit(std::span<const Sample> samples, Growth::Basis basis) {
  double x_mean = 0, y_mean = 0;
  for (const Sample& s : samples) {
    x_mean += std::log(s.pes) / double(samples.size());
    y_mean += std::log(s.value / value_of(basis, s.pes)) / double(samples.size());
  }
  double xx = 0, xy = 0;
  for (const Sample& s : samples) {
    const double x = std::log(s.pes) - x_mean;
    xx += x * x;
    xy += x * (std::log(s.value / value_of(basis, s.pes)) - y_mean);
  }
  double exponent = xx == 0 ? 0 : xy / xx, residual = 0;
  const double log_factor = mean_log(samples, basis, exponent);
  for (const Sample& s : samples) {
    const double miss = std::log(s.value / value_of(basis, s.pes)) - exponent * std::log(s.pes) - log_factor;
    residual += miss * miss;
  }
  const double off = distance_to_whole(exponent);
  if (off < whole_enough) exponent = std::round(exponent);
  return {{std::exp(mean_log(samples, basis, exponent)), exponent, basis}, residual + weight_of_whole * off};
}

}  // namespace

double Growth::at(double pes) const { return factor * std::pow(pes, exponent) * value_of(basis, pes); }

std::string Growth::text() const {
  if (factor == 0) return "0";
  std::string text = fmt::format("{:.3g}", factor);
  if (exponent != 0) text += fmt::format(" P^{:.2f}", exponent);
  if (basis == Basis::others) text += " (P-1)/P";
  if (basis == Basis::tree) text += " log2 P";
  return text;
}

Growth fit_growth(std::span<const Sample> samples) {
  if (samples.empty()) return {};
  if (samples.size() == 1 || std::ranges::any_of(samples, [](const Sample& s) { return s.value <= 0; })) {
    return {std::max(samples.back().value, 0.0), 0, Growth::Basis::one};
  }
  Fit best = fit(samples, Growth::Basis::one);
  for (const Growth::Basis basis : {Growth::Basis::others, Growth::Basis::tree}) {
    const Fit other = fit(samples, basis);
    if (other.score < best.score) best = other;
  }
  return best.growth;
}

std::optional<double> error_of_last(std::span<const Sample> samples) {
  if (samples.size() < 2 || samples.back().value <= 0) return std::nullopt;
  return fit_growth(samples.first(samples.size() - 1)).at(samples.back().pes) / samples.back().value - 1;
}

}  // namespace headway::tools
