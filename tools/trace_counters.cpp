// SPDX-License-Identifier: BSD-3-Clause
#include "trace_counters.hpp"

#include <algorithm>

namespace headway::tools {

using model::trace::FrameEnd;

namespace {

template <class Visit>
void for_each_posted(const TraceFolder& folder, const TraceProcess& process, Visit visit) {
  for (const std::size_t pe : process.pes) {
    for (const FrameEnd& end : folder.flows().of(pe)) {
      if (end.is_posted) visit(end);
    }
  }
}

class Points {
 public:
  void add(std::int64_t at, double value) {
    if (!points_.empty() && points_.back().value == value) return;
    if (points_.empty() && value == 0) return;
    points_.push_back({at, value});
  }
  std::vector<CounterPoint> take() { return std::move(points_); }

 private:
  std::vector<CounterPoint> points_;
};

std::int64_t interval_ns(const TraceFolder& folder) {
  return folder.flows().end_ns() / std::int64_t(counter_points_max) + 1;
}

}  // namespace

std::vector<CounterPoint> bytes_in_flight(const TraceFolder& folder, const TraceProcess& process) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  for_each_posted(folder, process, [&](const FrameEnd& end) {
    if (end.state == FrameEnd::State::unknown) return;
    changes.emplace_back(end.time_ns, end.bytes);
    if (end.state == FrameEnd::State::joined)
      changes.emplace_back(std::max(end.other_ns, end.time_ns), -std::int64_t(end.bytes));
  });
  std::ranges::sort(changes);
  const std::int64_t interval = changes.size() <= counter_points_max ? 1 : interval_ns(folder);
  Points points;
  std::int64_t bytes = 0;
  for (std::size_t next = 0; next < changes.size();) {
    const std::int64_t number = changes[next].first / interval;
    std::int64_t largest = interval == 1 ? 0 : bytes;
    for (; next < changes.size() && changes[next].first / interval == number; ++next) {
      bytes += changes[next].second;
      largest = std::max(largest, bytes);
    }
    points.add(number * interval, double(interval == 1 ? bytes : largest));
    // Intervals without a change that follow:
    if (next == changes.size() || changes[next].first / interval > number + 1)
      points.add((number + 1) * interval, double(bytes));
  }
  return points.take();
}

std::vector<CounterPoint> messages_per_frame(const TraceFolder& folder, const TraceProcess& process) {
  const std::int64_t interval = interval_ns(folder);
  std::vector<std::uint64_t> frames(counter_points_max + 1), messages(counter_points_max + 1);
  for_each_posted(folder, process, [&](const FrameEnd& end) {
    if (end.is_control) return;
    const std::size_t number = std::min(std::size_t(end.time_ns / interval), counter_points_max);
    ++frames[number];
    messages[number] += end.messages;
  });
  Points points;
  for (std::size_t number = 0; number < frames.size(); ++number) {
    const double mean = frames[number] == 0 ? 0 : double(messages[number]) / double(frames[number]);
    points.add(std::int64_t(number) * interval, mean);
  }
  return points.take();
}

}  // namespace headway::tools
