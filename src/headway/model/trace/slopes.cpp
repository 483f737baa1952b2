// SPDX-License-Identifier: BSD-3-Clause
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

// The first values of a search: small enough that no run of any length has changed.
constexpr double least_share = 1e-9;
constexpr double precision = 1e-3;
constexpr double off_line = 1e-3;

/// The two values around the first change of is_beyond(), by doubling and bisection. Empty if there is none.
struct Bounds {
  double below, beyond;
};
std::optional<Bounds> first_beyond(double most, const std::function<bool(double)>& is_beyond) {
  Bounds bounds{0, most * least_share};
  while (!is_beyond(bounds.beyond)) {
    if (bounds.beyond >= most) return std::nullopt;
    bounds.below = bounds.beyond;
    bounds.beyond = std::min(2 * bounds.beyond, most);
  }
  while (bounds.beyond - bounds.below > precision * bounds.beyond) {
    const double middle = (bounds.below + bounds.beyond) / 2;
    (is_beyond(middle) ? bounds.beyond : bounds.below) = middle;
  }
  return bounds;
}

}  // namespace

std::span<const Parameter> parameters() { return all; }

DialSettings dial(const Parameter& parameter, double value) {
  DialSettings dials;
  dials.*parameter.value = value;
  return dials;
}

std::optional<double> critical_value(Replay& replay, const Parameter& parameter) {
  const double begin = replay.run({});
  const double slope = replay.path({}).*parameter.count;
  const auto bounds = first_beyond(parameter.most, [&](double value) {
    return std::abs(replay.run(dial(parameter, value)) - (begin + slope * value)) > off_line * begin;
  });
  if (!bounds) return std::nullopt;
  // Beyond it, another path with a slope of its own.
  const double beyond = bounds->beyond, time = replay.run(dial(parameter, beyond));
  const double other = replay.path(dial(parameter, beyond)).*parameter.count;
  if (other <= slope) return beyond;
  const double cut = (begin - (time - other * beyond)) / (other - slope);
  return cut >= 0 && cut <= beyond ? cut : beyond;
}

std::optional<double> value_of_factor(Replay& replay, const Parameter& parameter, double factor) {
  require_at_least("factor", factor, 1);
  const double limit = replay.run({}) * factor;
  const auto bounds =
      first_beyond(parameter.most, [&](double value) { return replay.run(dial(parameter, value)) > limit; });
  if (!bounds) return std::nullopt;
  return bounds->below;
}

}  // namespace headway::model::trace
