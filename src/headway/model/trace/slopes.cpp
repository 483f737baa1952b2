// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <functional>
#include <headway/model/argument.hpp>
#include <headway/model/trace/slopes.hpp>

namespace headway::model::trace {
namespace {

using base::DialSettings;

constexpr Parameter all[] = {
    {"o", &DialSettings::overhead_ns, &Path::overheads, base::dial_ns_max},
    {"item_o", &DialSettings::item_overhead_ns, &Path::items, base::dial_ns_max},
    {"g", &DialSettings::gap_ns, &Path::gaps, base::dial_ns_max},
    {"L", &DialSettings::latency_ns, &Path::latencies, base::dial_ns_max},
    {"G", &DialSettings::gap_per_byte_ns, &Path::gap_bytes, base::dial_ns_per_byte_max},
};

constexpr double precision = 1e-3;           // of a tolerance
constexpr double critical_precision = 0.01;  // before the two lines are cut
constexpr double least_share = 1e-12;        // of the largest value: searches begin above 0
constexpr double off_line = 1e-3;

/// How often the parameter is counted on all PEs together: no path has more.
double count_of_all(const Graph& graph, const Parameter& parameter) {
  Path counts;
  for (const Frame& frame : graph.frames) {
    if (frame.source == frame.target) continue;
    counts.overheads += 2;
    counts.items += frame.messages;
    counts.gaps += 1;
    counts.gap_bytes += frame.bytes;
    counts.latencies += 1;
  }
  return counts.*parameter.count;
}

/// Two values, and by how much each is beyond: at most 0, and above 0.
struct Bounds {
  double low, high;
  double below, beyond;
};

/// By doubling from `least`, up to which nothing is beyond. Empty if nothing is up to `most`.
std::optional<Bounds> bounds_of(double least, double most, const std::function<double(double)>& excess) {
  least = std::max(least, most * least_share);
  if (!(least < most)) return std::nullopt;
  Bounds bounds{least, least, excess(least), 0};
  for (;;) {
    if (bounds.high >= most) return std::nullopt;
    bounds.high = std::min(2 * bounds.high, most);
    bounds.beyond = excess(bounds.high);
    if (bounds.beyond > 0) return bounds;
    bounds.low = bounds.high;
    bounds.below = bounds.beyond;
  }
}

}  // namespace

std::span<const Parameter> parameters() { return all; }

DialSettings dial(const Parameter& parameter, double value) {
  DialSettings dials;
  dials.*parameter.value = value;
  return dials;
}

std::optional<double> critical_value(Replay& replay, const Parameter& parameter) {
  const Path path = replay.path({});
  const double begin = path.total_ns({}), slope = path.*parameter.count;
  auto excess = [&](double value) {
    return std::abs(replay.run(dial(parameter, value)) - (begin + slope * value)) - off_line * begin;
  };
  const double least = off_line * begin / count_of_all(replay.graph(), parameter);
  auto bounds = bounds_of(least, parameter.most, excess);
  if (!bounds) return std::nullopt;
  while (bounds->high - bounds->low > critical_precision * bounds->high) {
    const double middle = (bounds->low + bounds->high) / 2;
    (excess(middle) > 0 ? bounds->high : bounds->low) = middle;
  }
  // Beyond it, another path with a slope of its own: the two lines are cut.
  const DialSettings dials = dial(parameter, bounds->high);
  const Path other = replay.path(dials);
  const double steeper = other.*parameter.count - slope;
  const double cut = (begin - (other.total_ns(dials) - other.*parameter.count * bounds->high)) / steeper;
  return steeper > 0 && cut >= 0 && cut <= bounds->high ? cut : bounds->high;
}

std::optional<double> value_of_factor(Replay& replay, const Parameter& parameter, double factor) {
  require_at_least("factor", factor, 1);
  const double begin = replay.run({}), limit = begin * factor;
  auto excess = [&](double value) { return replay.run(dial(parameter, value)) - limit; };
  auto bounds = bounds_of((limit - begin) / count_of_all(replay.graph(), parameter), parameter.most, excess);
  if (!bounds) return std::nullopt;
  // The run time is nearly a line between them. Each second step is a bisection.
  for (bool cuts = true; bounds->high - bounds->low > precision * bounds->high; cuts = !cuts) {
    const double width = bounds->high - bounds->low;
    const double share = cuts ? -bounds->below / (bounds->beyond - bounds->below) : 0.5;
    const double middle = bounds->low + width * std::clamp(share, precision / 4, 1 - precision / 4);
    const double there = excess(middle);
    (there > 0 ? bounds->high : bounds->low) = middle;
    (there > 0 ? bounds->beyond : bounds->below) = there;
  }
  return bounds->low;
}

}  // namespace headway::model::trace
