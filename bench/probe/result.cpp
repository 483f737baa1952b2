// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <headway/model/argument.hpp>
#include <headway/model/loggp.hpp>
#include <map>
#include <probe/result.hpp>

namespace headway::bench {
namespace {

using model::Estimate;

/// Median over samples. The samples are not empty.
double middle(const std::vector<double>& values) { return spread_of(values).median; }

/// The values of one parameter: one list for each launch.
class Values {
 public:
  void begin_launch() { launches_.emplace_back(); }
  void add(double value) { launches_.back().push_back(value); }
  double of_launch() const { return middle(launches_.back()); }

  Estimate estimate() const {
    std::vector<double> medians, all;
    for (const std::vector<double>& one : launches_) {
      if (!one.empty()) medians.push_back(middle(one));
      all.insert(all.end(), one.begin(), one.end());
    }
    constexpr std::size_t launches_min = 3;
    return model::median_of(medians.size() < launches_min ? all : medians);
  }

 private:
  std::vector<std::vector<double>> launches_;
};

double interval_of(const ProbeSample& one) {
  return model::measured_interval_ns(double(one.messages), one.burst_ns, one.one_ns);
}

std::vector<model::Point> intervals_of(const ProbeLaunch& launch) {
  std::vector<model::Point> points;
  for (const ProbeSample& one : launch.samples) points.push_back({double(one.bytes - 1), interval_of(one)});
  return points;
}

model::FitOptions options_for(std::span<const model::Point> points, unsigned resamples) {
  const bool relative = std::ranges::all_of(points, [](const model::Point& point) { return point.y > 0; });
  return {.resamples = resamples, .relative = relative};
}

bool is_line(const std::vector<model::Point>& points) {
  constexpr std::size_t points_min = 4;
  const auto [least, most] = std::ranges::minmax(points, {}, &model::Point::x);
  return points.size() >= points_min && least.x != most.x;
}

ProbeSegment segment_of(std::span<const ProbeLaunch> launches, const model::LineFit& pooled) {
  ProbeSegment segment{std::size_t(pooled.first_x) + 1,
                       std::size_t(pooled.last_x) + 1,
                       pooled.intercept,
                       pooled.slope,
                       pooled.points,
                       pooled.outliers};
  constexpr double rounding_ns = 1e-9;    // simulated times lie on a line
  constexpr unsigned resamples_min = 40;  // intervals of single launches are not used
  std::vector<double> gaps, gaps_per_byte;
  for (const ProbeLaunch& launch : launches) {
    std::vector<model::Point> points = intervals_of(launch);
    std::erase_if(points,
                  [&](const model::Point& point) { return point.x < pooled.first_x || point.x > pooled.last_x; });
    if (points.empty() || !is_line(points)) continue;
    const model::LineFit fit = fit_line(points, options_for(points, resamples_min));
    gaps.push_back(fit.intercept.value);
    gaps_per_byte.push_back(fit.slope.value < rounding_ns ? 0 : fit.slope.value);
  }
  if (gaps.size() < 3) return segment;
  segment.gap = model::median_of(gaps);
  segment.gap_per_byte = model::median_of(gaps_per_byte);
  return segment;
}

void fit(std::span<const ProbeLaunch> launches, ProbeResult& result) {
  std::vector<model::Point> all;
  for (const ProbeLaunch& launch : launches) {
    const std::vector<model::Point> points = intervals_of(launch);
    all.insert(all.end(), points.begin(), points.end());
  }
  // A disturbed round trip may leave its burst no time. Without such samples the residuals count in parts of the line.
  constexpr double disturbed_max = 0.1;
  const auto has_no_time = [](const model::Point& point) { return point.y <= 0; };
  if (double(std::ranges::count_if(all, has_no_time)) <= disturbed_max * double(all.size()))
    std::erase_if(all, has_no_time);
  // A segment is that of each launch, so it needs points of each.
  constexpr std::size_t points_of_launch = 6;
  model::FitOptions options = options_for(all, 1000);
  options.points_min = std::max(points_of_launch * launches.size(), options.points_min);
  const model::SegmentedFit pooled = model::fit_segments(all, options);
  std::vector<double> sizes = model::residuals(all, pooled, false);
  for (std::size_t i = 0; i != all.size(); ++i) {
    const double line_ns = pooled(all[i].x);
    sizes[i] = std::abs(sizes[i]) / (line_ns > 0 ? line_ns : 1);
  }
  result.residual = middle(sizes);
  for (const model::LineFit& one : pooled.segments) result.segments.push_back(segment_of(launches, one));
}

void add_costs(std::span<const ProbeLaunch> launches, ProbeResult& result) {
  struct PackAndHandle {
    Values pack, handle;
  };
  std::map<std::pair<bool, std::size_t>, PackAndHandle> costs;
  Values items;
  for (const ProbeLaunch& launch : launches) {
    items.begin_launch();
    for (const CostSample& one : launch.costs) {
      PackAndHandle& cost = costs[{one.aggregated, one.bytes}];
      cost.pack.begin_launch();
      cost.pack.add(one.pack_ns);
      cost.handle.begin_launch();
      cost.handle.add(one.handle_ns);
      if (one.aggregated && one.bytes <= short_bytes_max) items.add(one.handle_ns);
    }
  }
  for (const auto& [which, cost] : costs) {
    result.costs.push_back({which.second, which.first, cost.pack.estimate(), cost.handle.estimate()});
  }
  result.item = items.estimate();
}

}  // namespace

ProbeResult evaluate(std::span<const ProbeLaunch> launches) {
  ProbeResult result;
  result.launches = launches.size();
  model::require_at_least("number of launches", double(launches.size()), 1);
  Values sender, receiver, latency;
  std::vector<double> lines;
  for (const ProbeLaunch& launch : launches) {
    for (Values* values : {&sender, &receiver, &latency}) values->begin_launch();
    if (launch.line_ns != 0) lines.push_back(launch.line_ns);
    std::vector<double> shortest;
    for (const ProbeSample& one : launch.samples) {
      if (one.bytes == 1) shortest.push_back(one.one_ns);
      if (one.bytes > short_bytes_max || one.delay_ns == 0) continue;
      sender.add(model::measured_overhead_ns(double(one.messages), one.delay_ns, one.delayed_ns, one.one_ns));
      receiver.add(one.receive_ns);
    }
    model::require_at_least("messages of 1 byte", double(shortest.size()), 1);
    const double o_send = std::max(sender.of_launch(), 0.0), o_recv = std::max(receiver.of_launch(), 0.0);
    for (const double one_ns : shortest) latency.add(model::measured_latency_ns(one_ns, o_send, o_recv));
  }
  result.line_ns = spread_of(lines);
  result.overhead_of_sender = sender.estimate();
  result.overhead_of_receiver = receiver.estimate();
  result.latency = latency.estimate();
  fit(launches, result);
  add_costs(launches, result);
  return result;
}

const Estimate& ProbeResult::gap_per_byte() const {
  const auto sizes = [](const ProbeSegment& one) { return one.last_bytes - one.first_bytes; };
  return std::ranges::max_element(segments, {}, sizes)->gap_per_byte;
}

Json to_json(const Estimate& estimate) {
  Json json = {{"value", estimate.value}, {"low", estimate.low}, {"high", estimate.high}};
  if (estimate.includes_zero) json["includes_zero"] = true;
  if (estimate.is_below_zero) json["below_zero"] = true;
  return json;
}

void add_probe_result(Json& record, const ProbeResult& result) {
  record["launches"] = result.launches;
  record["o_send_ns"] = to_json(result.overhead_of_sender);
  record["o_recv_ns"] = to_json(result.overhead_of_receiver);
  record["g_ns"] = to_json(result.gap());
  record["latency_ns"] = to_json(result.latency);
  record["gap_per_byte_ns"] = to_json(result.gap_per_byte());
  record["item_ns"] = to_json(result.item);
  if (result.line_ns.median != 0) record["line_ns"] = to_json(result.line_ns);
  record["residual"] = result.residual;
  record["segments"] = Json::array();
  for (const ProbeSegment& one : result.segments) {
    record["segments"].push_back({{"first_bytes", one.first_bytes},
                                  {"last_bytes", one.last_bytes},
                                  {"g_ns", to_json(one.gap)},
                                  {"gap_per_byte_ns", to_json(one.gap_per_byte)},
                                  {"points", one.points},
                                  {"outliers", one.outliers}});
  }
  record["costs"] = Json::array();
  for (const ProbeCost& one : result.costs) {
    record["costs"].push_back({{"bytes", one.bytes},
                               {"mode", one.aggregated ? "1d" : "direct"},
                               {"pack_ns", to_json(one.pack)},
                               {"handle_ns", to_json(one.handle)}});
  }
}

std::vector<MeasuredSize> measured_sizes(std::span<const ProbeLaunch> launches) {
  std::map<std::size_t, std::vector<double>> one_way, megabytes;
  for (const ProbeLaunch& launch : launches) {
    std::vector<double> shortest;
    for (const ProbeSample& one : launch.samples) {
      if (one.bytes == 1) shortest.push_back(one.one_ns);
    }
    const double reply_ns = middle(shortest) / 2;
    for (const ProbeSample& one : launch.samples) {
      if ((one.bytes & (one.bytes - 1)) != 0) continue;
      one_way[one.bytes].push_back((one.one_ns - reply_ns) / 1e3);
      if (const double interval = interval_of(one); interval > 0)
        megabytes[one.bytes].push_back(double(one.bytes) / interval * 1e3);
    }
  }
  std::vector<MeasuredSize> sizes;
  for (const auto& [bytes, us] : one_way) sizes.push_back({bytes, middle(us), middle(megabytes[bytes])});
  return sizes;
}

}  // namespace headway::bench
