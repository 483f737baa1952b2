// SPDX-License-Identifier: BSD-3-Clause
#include "sensitivity_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headway::tools {
namespace {

using bench::Json;

constexpr double us_per_ns = 1e-3;

std::string time_text(double seconds) {
  for (const auto& [unit, scale] : {std::pair("s", 1.0), std::pair("ms", 1e-3)})
    if (seconds >= scale) return fmt::format("{:.3g} {}", seconds / scale, unit);
  return fmt::format("{:.3g} us", seconds * 1e6);
}

/// Methods that some point of the panel has, in the order of the first one that has most of them.
std::vector<std::string> methods_of(const Panel& panel) {
  std::vector<std::string> methods;
  for (const SweepCurve& curve : panel.curves) {
    for (const SweepPoint& point : curve.points) {
      for (const PredictedSlowdown& one : point.predicted)
        if (std::ranges::find(methods, one.method) == methods.end()) methods.push_back(one.method);
    }
  }
  return methods;
}

std::string curve_table(const Panel& panel, const std::vector<std::string>& methods) {
  std::string text = fmt::format("{:>6} {:>10} {:>10} {:>9} {:>15}", "dial", "value", "time", "slowdown", "from - to");
  for (const std::string& method : methods) text += fmt::format(" {:>9} {:>7}", method, "error");
  text += '\n';
  for (const SweepCurve& curve : panel.curves) {
    text +=
        fmt::format("{:>6} {:>10} {:>10} {:>9}\n", curve.sweep.name, "0", time_text(curve.baseline.of_all.median), "1");
    for (const SweepPoint& point : curve.points) {
      text += fmt::format("{:>6} {:>10} {:>10} {:>9.3g} {:>15}", "", curve.sweep.text(point.value),
                          time_text(point.seconds.median), point.slowdown.median,
                          fmt::format("{:.3g} - {:.3g}", point.slowdown.min, point.slowdown.max));
      for (const std::string& method : methods) {
        const PredictedSlowdown* one = point.by(method);
        text += one == nullptr ? fmt::format(" {:>9} {:>7}", "-", "")
                               : fmt::format(" {:>9.3g} {:>+5.0f} %", one->slowdown,
                                             100 * (one->slowdown / point.slowdown.median - 1));
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace

const PredictedSlowdown* SweepPoint::by(std::string_view method) const {
  const auto found = std::ranges::find(predicted, method, &PredictedSlowdown::method);
  return found == predicted.end() ? nullptr : &*found;
}

SweepFit fit_of(const DialSweep& sweep, const std::vector<SweepPoint>& points) {
  const double unit = sweep.is_per_byte() ? 1 : us_per_ns;
  double xx = 0, xy = 0, mean = 1;  // the point (0, 1) counts as well
  for (const SweepPoint& point : points) {
    const double x = point.value * unit;
    xx += x * x;
    xy += x * (point.slowdown.median - 1);
    mean += point.slowdown.median;
  }
  mean /= double(points.size() + 1);
  SweepFit fit{xx == 0 ? 0 : xy / xx, 1};
  double residual = 0, total = (1 - mean) * (1 - mean);
  for (const SweepPoint& point : points) {
    const double y = point.slowdown.median;
    residual += std::pow(y - 1 - fit.slope * point.value * unit, 2);
    total += (y - mean) * (y - mean);
  }
  if (total > 0) fit.r2 = 1 - residual / total;
  return fit;
}

std::optional<double> largest_error(const SweepCurve& curve, std::string_view method) {
  std::optional<double> largest;
  for (const SweepPoint& point : curve.points) {
    if (const PredictedSlowdown* one = point.by(method))
      largest = std::max(largest.value_or(0), std::abs(one->slowdown / point.slowdown.median - 1));
  }
  return largest;
}

std::string to_text(const Sensitivity& result) {
  std::string text;
  for (const Panel& panel : result.panels) {
    text += fmt::format("{} PEs, {}{}: {} without dials; {} in turns, medians\n\n", panel.pes, result.on,
                        result.network.empty() ? "" : " (" + result.network + ")", time_text(panel.plain.seconds),
                        result.rounds == 1 ? "1 round" : fmt::format("{} rounds", result.rounds));
    text += curve_table(panel, methods_of(panel));
    text += '\n';
    for (const std::string& sentence : conclusions(panel)) text += fmt::format("- {}\n", sentence);
    if (!panel.plain.has_core_for_each_pe)
      text += "- These runs had more PEs than cores: PEs take turns, and times say little about the network.\n";
    text += '\n';
  }
  return text;
}

Json to_json(const Sensitivity& result) {
  std::vector<Json> records;
  for (const Panel& panel : result.panels) {
    records.push_back({{"bench", "sensitivity"},
                       {"kind", "program"},
                       {"transport", result.on},
                       {"network", result.network},
                       {"pes", panel.pes},
                       {"seconds", bench::to_json(panel.plain.of_all)},
                       {"communication", panel.plain.counts.communication},
                       {"frames_mean", panel.plain.counts.mean(&PeRow::frames_sent)},
                       {"frames_max", panel.plain.counts.max(&PeRow::frames_sent)},
                       {"conclusions", conclusions(panel)}});
    for (const SweepCurve& curve : panel.curves) {
      const bool per_byte = curve.sweep.is_per_byte();
      for (const SweepPoint& point : curve.points) {
        Json predicted = Json::object(), errors = Json::object();
        for (const PredictedSlowdown& one : point.predicted) {
          predicted[one.method] = one.slowdown;
          errors[one.method] = one.slowdown / point.slowdown.median - 1;
        }
        records.push_back({{"bench", "sensitivity"},
                           {"kind", "point"},
                           {"pes", panel.pes},
                           {"dial", curve.sweep.name},
                           {per_byte ? "ns_per_byte" : "us", per_byte ? point.value : point.value * us_per_ns},
                           {"baseline_seconds", bench::to_json(curve.baseline.of_all)},
                           {"seconds", bench::to_json(point.seconds)},
                           {"slowdown", bench::to_json(point.slowdown)},
                           {"predicted_slowdown", predicted},
                           {"error", errors}});
      }
      records.push_back({{"bench", "sensitivity"},
                         {"kind", "fit"},
                         {"pes", panel.pes},
                         {"dial", curve.sweep.name},
                         {per_byte ? "slope_per_ns_per_byte" : "slope_per_us", curve.fit.slope},
                         {"r2", curve.fit.r2}});
    }
  }
  return bench::result_file(result.command, records);
}

}  // namespace headway::tools
