// SPDX-License-Identifier: BSD-3-Clause
#include "probe_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <headway/model/loggp.hpp>
#include <limits>

namespace headway::tools {
namespace {

constexpr double width = 900, height = 560, left = 80, right = 880, top = 50, bottom = 500;
constexpr std::size_t colours = 6;  // of the style sheet; further pairs use them again

constexpr const char* style = R"(<style>
  text { font: 14px sans-serif; fill: #222 }
  .page { fill: #fff }
  .axis { stroke: #222; fill: none }
  .grid { stroke: #ddd }
  .line { fill: none; stroke: currentColor; stroke-width: 2 }
  .way { fill: none; stroke: currentColor; stroke-dasharray: 6 4 }
  .dots { fill: currentColor; fill-opacity: 0.5 }
  .c0 { color: #0b62a4 } .c1 { color: #c2410c } .c2 { color: #1b7a34 }
  .c3 { color: #8b3fae } .c4 { color: #8a6d00 } .c5 { color: #b3245f }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e6e6 }
    .page { fill: #14171a }
    .axis { stroke: #e6e6e6 }
    .grid { stroke: #3a3f44 }
    .c0 { color: #6db3f2 } .c1 { color: #ff9a62 } .c2 { color: #6fd08c }
    .c3 { color: #d19cf0 } .c4 { color: #e5c84b } .c5 { color: #ff86b3 }
  }
</style>
)";

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      default: result += c;
    }
  }
  return result;
}

std::string size_text(double bytes) {
  if (bytes >= 0x1p20) return fmt::format("{:.0f}M", bytes / 0x1p20);
  return bytes >= 0x1p10 ? fmt::format("{:.0f}K", bytes / 0x1p10) : fmt::format("{:.0f}", bytes);
}

std::string time_text(double ns) {
  if (ns >= 1e9) return fmt::format("{:g} s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:g} ms", ns / 1e6);
  return ns >= 1e3 ? fmt::format("{:g} us", ns / 1e3) : fmt::format("{:g} ns", ns);
}

struct Point {
  double bytes, ns;
};

std::vector<Point> intervals_of(std::span<const bench::ProbeLaunch> launches) {
  std::vector<Point> points;
  for (const bench::ProbeLaunch& launch : launches) {
    for (const bench::ProbeSample& one : launch.samples) {
      const double ns = model::measured_interval_ns(double(one.messages), one.burst_ns, one.one_ns);
      if (ns > 0) points.push_back({double(one.bytes), ns});
    }
  }
  return points;
}

std::vector<Point> ways_of(std::span<const bench::ProbeLaunch> launches) {
  std::vector<Point> points;
  for (const bench::MeasuredSize& one : bench::measured_sizes(launches)) {
    if (one.one_way_us > 0) points.push_back({double(one.bytes), 1000 * one.one_way_us});
  }
  return points;
}

/// A line on logarithmic axes is a curve.
std::vector<Point> fitted(const bench::ProbeSegment& segment) {
  constexpr int steps = 24;
  const double first = std::log2(double(segment.first_bytes)), last = std::log2(double(segment.last_bytes));
  std::vector<Point> points;
  for (int i = 0; i <= steps; ++i) {
    const double bytes = std::exp2(first + (last - first) * i / steps);
    const double ns = segment.gap.value + (bytes - 1) * segment.gap_per_byte.value;
    if (ns > 0) points.push_back({bytes, ns});
  }
  return points;
}

class Plot {
 public:
  void add(const PlottedPair& pair) {
    curves_.push_back({pair.name, intervals_of(pair.launches), ways_of(pair.launches), {}});
    for (const bench::ProbeSegment& segment : pair.result->segments) curves_.back().lines.push_back(fitted(segment));
    const Curves& added = curves_.back();
    std::vector<std::vector<Point>> all = added.lines;
    all.insert(all.end(), {added.dots, added.way});
    for (const std::vector<Point>& points : all) {
      for (const Point& point : points) {
        bytes_max_ = std::max(bytes_max_, point.bytes);
        ns_min_ = std::min(ns_min_, point.ns);
        ns_max_ = std::max(ns_max_, point.ns);
      }
    }
  }

  std::string text() {
    const bool is_empty = ns_max_ == 0;
    first_decade_ = is_empty ? 0 : std::floor(std::log10(ns_min_));
    last_decade_ = is_empty ? 1 : std::max(std::ceil(std::log10(ns_max_)), first_decade_ + 1);
    std::string svg = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" "
        "width=\"{0}\" height=\"{1}\">\n{2}<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n",
        width, height, style);
    svg += fmt::format("<text x=\"{}\" y=\"30\">Time of a message over its size</text>\n", left);
    svg += axes();
    for (std::size_t i = 0; i != curves_.size(); ++i) svg += curves(curves_[i], i % colours) + legend(i);
    svg += fmt::format(
        "<text x=\"{}\" y=\"{}\">dots: interval of messages in a row; line: its fit; dashed: one way</text>\n",
        left + 20, legend_y(curves_.size()));
    return svg + "</svg>\n";
  }

 private:
  struct Curves {
    std::string name;
    std::vector<Point> dots, way;
    std::vector<std::vector<Point>> lines;
  };

  static double legend_y(std::size_t row) { return top + 22 + 20 * double(row); }

  double x_of(double bytes) const { return left + (right - left) * std::log2(bytes) / std::log2(bytes_max_); }
  double y_of(double ns) const {
    return bottom - (bottom - top) * (std::log10(ns) - first_decade_) / (last_decade_ - first_decade_);
  }

  std::string axes() const {
    std::string svg;
    for (std::uint64_t size = 1; double(size) <= bytes_max_; size *= 4) {
      const auto bytes = double(size);
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/>\n<text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4}</text>\n",
          x_of(bytes), top, bottom, bottom + 20, size_text(bytes));
    }
    for (int decade = int(first_decade_); decade <= int(last_decade_); ++decade) {
      const double ns = std::pow(10, decade);
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{0} {1:.1f}H{2}\"/>\n<text x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          left, y_of(ns), right, left - 8, y_of(ns) + 5, time_text(ns));
    }
    svg += fmt::format("<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n", left, top, bottom, right);
    return svg + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">bytes of a message</text>\n",
                             (left + right) / 2, bottom + 45);
  }

  std::string line(const char* kind, const std::vector<Point>& points) const {
    if (points.size() < 2) return "";
    std::string list;
    for (const Point& point : points) list += fmt::format(" {:.1f},{:.1f}", x_of(point.bytes), y_of(point.ns));
    return fmt::format("  <polyline class=\"{}\" points=\"{}\"/>\n", kind, list.substr(1));
  }

  std::string curves(const Curves& one, std::size_t colour) const {
    std::string svg = fmt::format("<g class=\"c{}\">\n  <g class=\"dots\">\n", colour);
    for (const Point& dot : one.dots)
      svg += fmt::format("    <circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"/>\n", x_of(dot.bytes), y_of(dot.ns));
    svg += "  </g>\n";
    for (const std::vector<Point>& points : one.lines) svg += line("line", points);
    return svg + line("way", one.way) + "</g>\n";
  }

  std::string legend(std::size_t row) const {
    const double y = legend_y(row);
    return fmt::format("<path class=\"line c{}\" d=\"M{} {}h30\"/>\n<text x=\"{}\" y=\"{}\">{}</text>\n", row % colours,
                       left + 20, y - 5, left + 60, y, escaped(curves_[row].name));
  }

  std::vector<Curves> curves_;
  double bytes_max_ = 2, ns_min_ = std::numeric_limits<double>::infinity(), ns_max_ = 0;
  double first_decade_ = 0, last_decade_ = 1;
};

}  // namespace

std::string plot_of(std::span<const PlottedPair> pairs) {
  Plot plot;
  for (const PlottedPair& pair : pairs) plot.add(pair);
  return plot.text();
}

}  // namespace headway::tools
