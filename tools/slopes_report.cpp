// SPDX-License-Identifier: BSD-3-Clause
#include "slopes_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headway::tools {
namespace {

using bench::Json;
using model::trace::Parameter;
using model::trace::Path;

/// Three digits, with the unit that suits.
std::string time_text(double ns) {
  if (ns == 0) return "0";
  for (const auto& [unit, scale] : {std::pair("s", 1e9), std::pair("ms", 1e6), std::pair("us", 1e3)}) {
    if (std::abs(ns) >= scale) return fmt::format("{:.3g} {}", ns / scale, unit);
  }
  return fmt::format("{:.3g} ns", ns);
}

bool is_per_byte(const Parameter& parameter) { return std::string(parameter.name) == "G"; }

std::string value_text(const Parameter& parameter, const std::optional<double>& value) {
  if (!value) return "-";
  return is_per_byte(parameter) ? fmt::format("{:.3g} ns/byte", *value) : time_text(*value);
}

const char* unit_of(const Parameter& parameter) {
  const std::string name = parameter.name;
  if (name == "o") return "posts and handled frames";
  if (name == "item_o") return "messages";
  if (name == "g") return "frames behind others";
  return name == "L" ? "arrivals waited for" : "bytes";
}

std::string percent(double part, double whole) { return fmt::format("{:.0f} %", whole == 0 ? 0 : 100 * part / whole); }

std::string path_text(const Slopes& slopes) {
  const Path& path = slopes.path;
  const double total = path.total_ns({});
  std::vector<std::size_t> order(path.work_ns.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t pe) { return path.work_ns[pe]; });
  const auto hops = std::accumulate(path.frames.begin(), path.frames.end(), std::size_t(0));
  std::string text =
      fmt::format("The longest path takes {}: work {}, network {} in {} frames. Most work on it: PE {}, {}.\n",
                  time_text(total), percent(path.work() + path.start_ns, total), percent(path.network_ns, total), hops,
                  order[0], percent(path.work_ns[order[0]], total));
  return text;
}

std::string words(const Slopes& slopes) {
  std::string text;
  for (const Slope& slope : slopes.slopes) {
    const Parameter& parameter = *slope.parameter;
    if (slope.one_percent) {
      text += fmt::format("{} may grow by {} before the run takes 1 % longer", parameter.name,
                          value_text(parameter, slope.one_percent));
    } else {
      text += fmt::format("{} may grow by {}, and the run takes less than 1 % longer", parameter.name,
                          value_text(parameter, parameter.most));
    }
    if (slope.critical) {
      text += fmt::format("; from {} on {} path is the longest", value_text(parameter, slope.critical), "another");
    }
    text += ".\n";
  }
  return text;
}

std::string dial_table(const Slopes& slopes) {
  if (slopes.dialled.empty()) return "";
  const bool is_measured = slopes.dialled.front().measured_seconds.has_value();
  std::string text = fmt::format("\n{:<24} {:>10}", "dials", "predicted");
  if (is_measured) text += fmt::format(" {:>10} {:>8}", "measured", "error");
  text += fmt::format("   {:>8} {:>8} {:>8} {:>10}\n", "o", "g", "L", "G");
  for (const DialledTime& one : slopes.dialled) {
    text += fmt::format("{:<24} {:>10}", one.dials, time_text(1e9 * one.predicted_seconds));
    if (one.measured_seconds) {
      text += fmt::format(" {:>10} {:>+6.1f} %", time_text(1e9 * *one.measured_seconds),
                          100 * (one.predicted_seconds / *one.measured_seconds - 1));
    }
    text += fmt::format("   {:>8.0f} {:>8.0f} {:>8.0f} {:>10.0f}\n", one.path.overheads, one.path.gaps,
                        one.path.latencies, one.path.gap_bytes);
  }
  return text + "The last columns are the slopes there: how often the longest path has o, g, L and a byte's G.\n";
}

Json path_record(const Path& path) {
  return {{"overheads", path.overheads},   {"items", path.items},         {"gaps", path.gaps},
          {"gap_bytes", path.gap_bytes},   {"latencies", path.latencies}, {"start_ns", path.start_ns},
          {"network_ns", path.network_ns}, {"work_ns", path.work_ns}};
}

Json optional_record(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

std::string to_text(const Slopes& slopes) {
  std::string text =
      fmt::format("{} PEs, transport {}{}{}: {} traced, {} replayed, {} frames\n", slopes.pes,
                  slopes.transport.empty() ? "default" : slopes.transport, slopes.simulated ? ", simulated time" : "",
                  slopes.dials.empty() ? "" : ", dials " + slopes.dials, time_text(1e9 * slopes.traced_seconds),
                  time_text(1e9 * slopes.replayed_seconds), slopes.frames);
  if (slopes.forced != 0)
    text += fmt::format("{} waits ended without their frames: the trace contradicts itself\n", slopes.forced);
  text += path_text(slopes);
  text += fmt::format("\n{:<7} {:>10} {:<24} {:>14} {:>14} {:>14}\n", "", "slope", "", "another path", "1 % longer",
                      "5 % longer");
  for (const Slope& slope : slopes.slopes) {
    const Parameter& parameter = *slope.parameter;
    text += fmt::format("{:<7} {:>10.0f} {:<24} {:>14} {:>14} {:>14}\n", parameter.name, slope.count,
                        unit_of(parameter), value_text(parameter, slope.critical),
                        value_text(parameter, slope.one_percent), value_text(parameter, slope.five_percent));
  }
  return text + "\n" + words(slopes) + dial_table(slopes);
}

Json to_json(const Slopes& slopes) {
  Json result = {{"command", slopes.command},
                 {"transport", slopes.transport},
                 {"dials", slopes.dials},
                 {"pes", slopes.pes},
                 {"frames", slopes.frames},
                 {"simulated", slopes.simulated},
                 {"traced_seconds", slopes.traced_seconds},
                 {"replayed_seconds", slopes.replayed_seconds},
                 {"forced_waits", slopes.forced},
                 {"path", path_record(slopes.path)},
                 {"slopes", Json::array()},
                 {"dialled", Json::array()}};
  for (const Slope& slope : slopes.slopes) {
    result["slopes"].push_back({{"parameter", slope.parameter->name},
                                {"slope", slope.count},
                                {"critical", optional_record(slope.critical)},
                                {"one_percent", optional_record(slope.one_percent)},
                                {"five_percent", optional_record(slope.five_percent)}});
  }
  for (const DialledTime& one : slopes.dialled) {
    Json record = {{"dials", one.dials}, {"predicted_seconds", one.predicted_seconds}};
    if (one.measured_seconds) {
      record["measured_seconds"] = *one.measured_seconds;
      record["error"] = one.predicted_seconds / *one.measured_seconds - 1;
    }
    record["path"] = path_record(one.path);
    result["dialled"].push_back(std::move(record));
  }
  return result;
}

}  // namespace headway::tools
