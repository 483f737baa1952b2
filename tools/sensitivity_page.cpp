// SPDX-License-Identifier: BSD-3-Clause
/// The page of `headway sensitivity -o FILE`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "sensitivity_result.hpp"

namespace headway::tools {
namespace {

constexpr double width = 460, height = 300, left = 52, right = 448, top = 30, bottom = 252;

constexpr const char* style = R"(
  :root { color-scheme: light dark; --text: #222; --page: #fff; --faint: #ddd; --c0: #0b62a4; --c1: #c2410c;
          --c2: #1b7a34; --c3: #8b3fae; --c4: #8a6d00 }
  @media (prefers-color-scheme: dark) {
    :root { --text: #e6e6e6; --page: #14171a; --faint: #3a3f44; --c0: #6db3f2; --c1: #ff9a62; --c2: #6fd08c;
            --c3: #d19cf0; --c4: #e5c84b }
  }
  body { font: 16px/1.5 sans-serif; color: var(--text); background: var(--page); max-width: 960px; margin: 1em auto;
         padding: 0 1em }
  h1 { font-size: 1.4em } h2 { font-size: 1.15em }
  .plots { display: flex; flex-wrap: wrap; gap: 1em }
  svg { width: 460px; max-width: 100%; height: auto }
  svg text { font: 13px sans-serif; fill: var(--text) }
  .grid { stroke: var(--faint) } .axis { stroke: var(--text); fill: none }
  .line { fill: none; stroke: currentColor; stroke-width: 2 } .dashed { stroke-dasharray: 6 4 }
  .dot { fill: currentColor }
  .range { stroke: currentColor; stroke-opacity: 0.6 }
  .c0 { color: var(--c0) } .c1 { color: var(--c1) } .c2 { color: var(--c2) } .c3 { color: var(--c3) }
  .c4 { color: var(--c4) }
  .table { overflow-x: auto }
  table { border-collapse: collapse } td, th { padding: 0.15em 0.7em; text-align: right; white-space: nowrap }
  th { border-bottom: 1px solid var(--faint) }
  code { overflow-wrap: anywhere }
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

/// The smallest of 1, 2, 5, 10, ... that divides `span` into at most six steps.
double step_of(double span) {
  const double decade = std::pow(10, std::floor(std::log10(span / 6)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (span / (decade * factor) <= 6) return decade * factor;
  return decade * 10;
}

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

/// Slowdown over the value of one dial.
class Plot {
 public:
  explicit Plot(const SweepCurve& curve) : curve_(curve) {
    unit_ = curve.sweep.is_per_byte() ? 1 : 1e-3;
    x_max_ = curve.points.back().value * unit_;
    add_method("formula");
    add_method("trace");
    add_method("sim");
    for (const SweepPoint& point : curve.points) y_max_ = std::max(y_max_, point.slowdown.max);
    for (const Line& line : lines_)
      for (const auto& [x, y] : line.points) y_max_ = std::max(y_max_, y);
    y_max_ = 1 + (y_max_ - 1) * 1.05;
  }

  std::string text() const {
    const std::string& name = curve_.sweep.name;
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"slowdown over {}\">\n<text x=\"{}\" y=\"18\">{}</text>\n",
        width, height, name, left, name);
    svg += axes();
    std::string measured = fmt::format("{:.1f},{:.1f}", x_of(0), y_of(1));
    for (const SweepPoint& point : curve_.points) {
      const double x = x_of(point.value * unit_);
      measured += fmt::format(" {:.1f},{:.1f}", x, y_of(point.slowdown.median));
      svg += fmt::format(
          "<g class=\"c0\"><path class=\"range\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><circle class=\"dot\" cx=\"{0:.1f}\" "
          "cy=\"{3:.1f}\" r=\"3\"/></g>\n",
          x, y_of(point.slowdown.min), y_of(point.slowdown.max), y_of(point.slowdown.median));
    }
    svg += fmt::format("<polyline class=\"line c0\" points=\"{}\"/>\n", measured) + legend("measured", 0);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::string points;
      for (const auto& [x, y] : lines_[i].points) points += fmt::format("{:.1f},{:.1f} ", x_of(x), y_of(y));
      svg += fmt::format("<polyline class=\"line dashed c{}\" points=\"{}\"/>\n", i + 1, points) +
             legend(lines_[i].name, i + 1);
    }
    return svg + "</svg>\n";
  }

 private:
  void add_method(const char* method) {
    Line line{method, {{0, 1}}};
    for (const SweepPoint& point : curve_.points)
      if (const PredictedSlowdown* one = point.by(method)) line.points.emplace_back(point.value * unit_, one->slowdown);
    if (line.points.size() > 1) lines_.push_back(std::move(line));
  }

  double x_of(double x) const { return left + (right - left) * x / x_max_; }
  double y_of(double y) const { return bottom - (bottom - top) * y / y_max_; }

  std::string axes() const {
    std::string svg;
    const double x_step = step_of(x_max_), y_step = step_of(y_max_);
    for (int i = 0; i * x_step <= x_max_ * 1.0001; ++i) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n", x_of(i * x_step),
                         bottom + 18, i * x_step);
    }
    for (int i = 0; i * y_step <= y_max_; ++i) {
      const double y = y_of(i * y_step);
      svg += fmt::format(
          "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
          left, y, right, left - 6, y + 4, i * y_step);
    }
    return svg + fmt::format(
                     "<path class=\"axis\" d=\"M{} {}V{}H{}\"/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">"
                     "{} added, {}</text>\n",
                     left, top, bottom, right, (left + right) / 2, bottom + 38, escaped(curve_.sweep.name),
                     curve_.sweep.is_per_byte() ? "ns for each byte" : "us");
  }

  static std::string legend(const std::string& name, std::size_t row) {
    const double y = top + 14 + 17 * double(row);
    return fmt::format("<path class=\"line{} c{}\" d=\"M{} {:.0f}h24\"/><text x=\"{}\" y=\"{:.0f}\">{}</text>\n",
                       row == 0 ? "" : " dashed", row, left + 10, y - 4, left + 40, y, escaped(name));
  }

  const SweepCurve& curve_;
  std::vector<Line> lines_;
  double unit_, x_max_, y_max_ = 1;
};

std::string table_of(const SweepCurve& curve) {
  std::string html = fmt::format(
      "<h3>{}</h3>\n<div class=\"table\"><table>\n<tr><th>added</th><th>seconds</th>"
      "<th>slowdown</th>",
      escaped(curve.sweep.name));
  for (const PredictedSlowdown& one : curve.points.front().predicted)
    html += fmt::format("<th>{}</th><th>error</th>", escaped(one.method));
  html += fmt::format("</tr>\n<tr><td>0</td><td>{:.4g}</td><td>1</td></tr>\n", curve.baseline.of_all.median);
  for (const SweepPoint& point : curve.points) {
    html += fmt::format("<tr><td>{}</td><td>{:.4g}</td><td>{:.3g}</td>", curve.sweep.text(point.value),
                        point.seconds.median, point.slowdown.median);
    for (const PredictedSlowdown& one : point.predicted) {
      html += fmt::format("<td>{:.3g}</td><td>{:+.0f} %</td>", one.slowdown,
                          100 * (one.slowdown / point.slowdown.median - 1));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string facts_of(const Panel& panel) {
  const RunCounts& c = panel.plain.counts;
  return fmt::format(
      "<div "
      "class=\"table\"><table>\n<tr><th>seconds</th><th>messages/PE</th><th>most</th><th>frames/PE</th><th>most</th>"
      "<th>bytes/PE</th><th>waits</th><th>reads</th><th>bulk</th></tr>\n<tr><td>{:.4g}</td><td>{:.0f}</td><td>{:.0f}</"
      "td>"
      "<td>{:.0f}</td><td>{:.0f}</td><td>{:.3g}</td><td>{:.0f}</td><td>{:.0f}</td><td>{:.0f}</td></tr>\n</table></"
      "div>\n",
      panel.plain.seconds, c.mean(&PeRow::messages), c.max(&PeRow::messages), c.mean(&PeRow::frames_sent),
      c.max(&PeRow::frames_sent), c.mean(&PeRow::bytes_sent), c.max(&PeRow::turns), c.max(&PeRow::reads),
      c.max(&PeRow::bulk));
}

}  // namespace

std::string to_page(const Sensitivity& result) {
  const std::string command = escaped(fmt::format("{}", fmt::join(result.command, " ")));
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<title>Sensitivity of "
      "{0}</title>\n<style>{1}</style>\n</head>\n"
      "<body>\n<h1>Sensitivity to the network</h1>\n<p><code>{0}</code></p>\n",
      command, style);
  for (const Panel& panel : result.panels) {
    html += fmt::format("<h2>{} PEs, {}{}</h2>\n<ul>\n", panel.pes, escaped(result.on),
                        result.network.empty() ? "" : escaped(" (" + result.network + ")"));
    for (const std::string& sentence : conclusions(panel)) html += fmt::format("<li>{}</li>\n", escaped(sentence));
    html += "</ul>\n<div class=\"plots\">\n";
    for (const SweepCurve& curve : panel.curves) html += Plot(curve).text();
    html +=
        "</div>\n<p>Slowdown: median over rounds of the time with the dial over the time without it in the same "
        "round; a bar spans all rounds.</p>\n<h3>The run without dials</h3>\n" +
        facts_of(panel);
    for (const SweepCurve& curve : panel.curves) html += table_of(curve);
  }
  return html + "</body>\n</html>\n";
}

}  // namespace headway::tools
