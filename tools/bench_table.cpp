// SPDX-License-Identifier: BSD-3-Clause
#include "bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <optional>

namespace headway::tools {
namespace {

using bench::Json;

/// Three significant digits or all whole ones: 0.0123, 1.23, 123, 12345.
std::string short_number(double value) {
  if (value == 0) return "0";
  const int digits = std::max(0, 2 - int(std::floor(std::log10(std::abs(value)))));
  return fmt::format("{:.{}f}", value, std::min(digits, 9));
}

std::string count_cell(const Json& record, const char* field) {
  return record.contains(field) ? fmt::format("{}", record[field].get<std::uint64_t>()) : "";
}

std::string buffer_cell(const Json& record) {
  const Json::json_pointer pointer("/options/buffer_bytes");
  return record.contains(pointer) ? base::format_bytes(record.at(pointer).get<std::uint64_t>()) : "";
}

std::string ratio_cell(const Json& record, const std::string& label) {
  const Json& ratios = record["ratio_to"];
  return ratios.contains(label) ? short_number(ratios[label].get<double>()) : "";
}

/// "0.93-1.04": between which bounds the median of the ratios to the first is known.
std::string bounds_cell(const Json& record) {
  const Json& pairs = record["in_pairs"];
  if (pairs["low"].is_null()) return "";
  return fmt::format("{}-{}", short_number(pairs["low"].get<double>()), short_number(pairs["high"].get<double>()));
}

std::string of_limit_cell(const Json& record, const std::string& limit) {
  const Json::json_pointer pointer("/of_" + limit + "/median");
  return record.contains(pointer) ? short_number(record.at(pointer).get<double>()) : "";
}

/// Records of latencies and of processor time have a spread of it under this name; others have rates.
struct Measured {
  const char* field;
  const char* head;
};
std::optional<Measured> measured_us(const Json& record) {
  for (const Measured one :
       {Measured{"one_way_us", "us one way"}, {"latency_us", "us a call"}, {"cpu_us", "cpu us"}, {"us", "us"}}) {
    if (record.contains(one.field)) return one;
  }
  return std::nullopt;
}

/// The first columns: the measured quantity.
std::vector<std::string> speed_head(const Json& record) {
  if (const auto measured = measured_us(record)) return {"mode", measured->head, "min", "max"};
  return {"mode", "M msg/s", "min", "max", "M msg/s/PE"};
}

std::vector<std::string> speed_cells(const MeasuredCase& one) {
  const Json& record = one.record;
  if (const auto measured = measured_us(record)) {
    const Json& spread = record[measured->field];
    return {one.label, short_number(spread["median"].get<double>()), short_number(spread["min"].get<double>()),
            short_number(spread["max"].get<double>())};
  }
  const double messages = record["messages"].get<double>(), rate = record["messages_per_second"].get<double>();
  const double slowest = record["seconds"]["max"].get<double>(), fastest = record["seconds"]["min"].get<double>();
  return {one.label, short_number(rate / 1e6), short_number(slowest > 0 ? messages / slowest / 1e6 : 0),
          short_number(fastest > 0 ? messages / fastest / 1e6 : 0),
          short_number(rate / 1e6 / record["pes"].get<double>())};
}

/// The last columns: the costs.
std::vector<std::string> further_head(const Json& record) {
  if (record.contains("cpu_us")) return {"us in calls", "median ms", "late %"};
  if (record.contains("latency_us")) return {"median ms"};
  if (record.contains("phases_us")) return {"setup us", "phases, us"};
  return {"median ms", "buffer", "frames", "fill %"};
}

std::vector<std::string> further_cells(const Json& record) {
  const std::string ms = short_number(record["seconds"]["median"].get<double>() * 1e3);
  if (record.contains("cpu_us")) {
    return {short_number(record["in_calls_us"]["median"].get<double>()), ms,
            short_number(record["late_fraction"]["median"].get<double>() * 100)};
  }
  if (record.contains("latency_us")) return {ms};
  if (record.contains("phases_us")) {
    std::string phases;
    for (const auto& [name, us] : record["phases_us"].items())
      phases += fmt::format("{}{} {}", phases.empty() ? "" : ", ", name, short_number(us.get<double>()));
    return {short_number(record["setup_us"].get<double>()), phases};
  }
  return {ms, buffer_cell(record), count_cell(record, "frames"),
          record.contains("fill_mean") ? short_number(record["fill_mean"].get<double>() * 100) : ""};
}

}  // namespace

std::string align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text += '\n';
  }
  return text;
}

namespace {

/// The messages of each case: "16777216 messages", and of updates in the mode direct by default fewer.
std::string messages_of(const Json& first, const std::vector<MeasuredCase>& cases) {
  const auto number = [](const Json& record) { return record["messages"].get<std::uint64_t>(); };
  std::uint64_t most = number(first), direct = most;
  for (const MeasuredCase& one : cases) {
    if (!one.record.contains("table_log2")) continue;
    most = std::max(most, number(one.record));
    if (one.record["mode"] == "direct") direct = number(one.record);
  }
  return base::counted(most, "message") + (direct < most ? fmt::format(" (direct: {})", direct) : "");
}

}  // namespace

std::string table_of(const std::string& bench, const std::string& title, const std::vector<MeasuredCase>& cases) {
  const auto own = std::ranges::find_if(cases, [](const auto& one) { return one.record["mode"] != "limit"; });
  const Json& first = own == cases.end() ? cases.front().record : own->record;
  const auto pes = first["pes"].get<std::size_t>(), processes = first["processes"].get<std::size_t>();
  const std::string text =
      fmt::format("{}, {}: {} of {}, {} in {}, {}; {}{}\n", bench, title, messages_of(first, cases),
                  base::counted(first["message_bytes"].get<std::size_t>(), "byte"), base::counted(pes, "PE"),
                  base::counted(processes, "process"),
                  first["transport"].get<std::string>() + (first.contains("simulated_time") ? " (simulated time)" : ""),
                  base::counted(first["repeat"].get<std::size_t>(), "round"), cases.size() > 1 ? ", interleaved" : "");

  std::vector<std::string> compared;  // the first, and the best peer
  for (const auto& [label, ratio] : first["ratio_to"].items()) compared.push_back(label);
  const bool bounded = cases.size() > 1 && !first["in_pairs"]["low"].is_null();
  std::vector<std::vector<std::string>> rows = {speed_head(first)};
  const std::vector<std::string> further = further_head(first);
  rows[0].insert(rows[0].end(), further.begin(), further.end());
  if (cases.size() > 1) {
    for (const std::string& label : compared) rows[0].push_back("x " + label);
    if (bounded) rows[0].insert(rows[0].begin() + std::ptrdiff_t(rows[0].size() - compared.size() + 1), "95 %");
  }
  std::vector<std::string> limits;  // that others are fractions of
  for (const MeasuredCase& one : cases) {
    if (one.record["mode"] == "limit" && first.contains("of_" + one.label)) limits.push_back(one.label);
  }
  for (const std::string& limit : limits) rows[0].push_back("of " + limit);
  rows[0].emplace_back("verified");
  for (const MeasuredCase& one : cases) {
    const Json& record = one.record;
    std::vector<std::string> row = speed_cells(one);
    const std::vector<std::string> further_ones = further_cells(record);
    row.insert(row.end(), further_ones.begin(), further_ones.end());
    if (cases.size() > 1) {
      for (const std::string& label : compared) row.push_back(ratio_cell(record, label));
      if (bounded) row.insert(row.end() - std::ptrdiff_t(compared.size() - 1), bounds_cell(record));
    }
    for (const std::string& limit : limits) row.push_back(of_limit_cell(record, limit));
    row.emplace_back(record["verified"].get<bool>() ? "yes" : "NO");
    rows.push_back(std::move(row));
  }
  return text + align(rows);
}

std::string limit_table_of(const std::string& title, const std::vector<MeasuredCase>& cases) {
  const Json& first = cases.front().record;
  const bool latency = first.contains("one_way_us"), copies = first["bench"] == "copy" || first["bench"] == "cma";
  const auto pes = first["pes"].get<std::size_t>(), rounds = first["repeat"].get<std::size_t>();
  const std::string text =
      fmt::format("limit, {}: {}; {}, interleaved\n", title, base::counted(pes, "PE"), base::counted(rounds, "round"));
  const char* const unit = latency ? "ns one way" : copies ? "GB/s" : "M/s/sender";
  std::vector<std::vector<std::string>> rows = {{"case", unit, "min", "max", "verified", "formulation"}};
  for (const MeasuredCase& one : cases) {
    const Json& record = one.record;
    const char* const verified = record["verified"].get<bool>() ? "yes" : "NO";
    if (record.contains("unavailable")) {
      rows.push_back({one.label, "-", "-", "-", verified, "not here: " + record["unavailable"].get<std::string>()});
      continue;
    }
    const double messages = record["messages"].get<double>();
    const double senders = double(pes) / (record.value("pattern", "") == "one-way" ? 2 : 1);
    const auto cell = [&](const char* which) {
      const double seconds = record["seconds"][which].get<double>();
      if (latency) return short_number(seconds / messages * 1e9);
      const double rate = seconds > 0 ? messages / seconds : 0;
      return short_number(copies ? rate * record["message_bytes"].get<double>() / 1e9 : rate / 1e6 / senders);
    };
    rows.push_back({one.label, cell("median"), cell(latency ? "min" : "max"), cell(latency ? "max" : "min"), verified,
                    record["formulation"].get<std::string>()});
  }
  return text + align(rows);
}

std::string osu_blocks(const std::string& bench, const std::vector<MeasuredCase>& cases) {
  std::vector<std::string> labels;
  for (const MeasuredCase& one : cases) {
    if (std::ranges::find(labels, one.label) == labels.end()) labels.push_back(one.label);
  }
  const Json& first = cases.front().record;
  const bool latency = first.contains("one_way_us");
  std::string text;
  for (const std::string& label : labels) {
    text += fmt::format("# Headway {}, {}, {}, median of {}\n# {:<18}{}\n", bench, label,
                        base::counted(first["pes"].get<std::size_t>(), "PE"), first["repeat"].get<std::size_t>(),
                        "Size", latency ? "Latency (us)" : "Bandwidth (MB/s)");
    for (const MeasuredCase& one : cases) {
      if (one.label != label) continue;
      const auto bytes = one.record["message_bytes"].get<std::size_t>();
      const double value = latency ? one.record["one_way_us"]["median"].get<double>()
                                   : one.record["messages_per_second"].get<double>() * double(bytes) / 1e6;
      text += fmt::format("{:<20}{:.3f}{}\n", bytes, value,
                          one.record["verified"].get<bool>() ? "" : "  # WRONG, not verified");
    }
    text += '\n';
  }
  return text;
}

}  // namespace headway::tools
