#include "bench_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/bytes.hpp>

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
  return record.contains(pointer) ? format_bytes(record.at(pointer).get<std::uint64_t>()) : "";
}

std::string ratio_cell(const Json& record, const std::string& label) {
  const Json& ratios = record["ratio_to"];
  return ratios.contains(label) ? short_number(ratios[label].get<double>()) : "";
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

std::string table_of(const std::string& bench, const std::string& title, const std::vector<MeasuredCase>& cases) {
  const Json& first = cases.front().record;
  const auto pes = first["pes"].get<std::size_t>(), processes = first["processes"].get<std::size_t>();
  std::string text = fmt::format(
      "{}, {}: {} messages of {} bytes, {} PE{} in {} process{}, {}; {} round{}{}\n", bench, title,
      first["messages"].get<std::uint64_t>(), first["message_bytes"].get<std::size_t>(), pes, pes == 1 ? "" : "s",
      processes, processes == 1 ? "" : "es",
      first["transport"].get<std::string>() + (first.contains("simulated_time") ? " (simulated time)" : ""),
      first["repeat"].get<std::size_t>(), first["repeat"] == 1 ? "" : "s", cases.size() > 1 ? ", interleaved" : "");

  std::vector<std::string> compared = {cases.front().label};  // the first, and the best peer
  for (const auto& [label, ratio] : first["ratio_to"].items()) {
    if (label != compared.front()) compared.push_back(label);
  }
  std::vector<std::vector<std::string>> rows = {
      {"mode", "M msg/s", "min", "max", "M msg/s/PE", "median ms", "buffer", "frames", "fill %"}};
  if (cases.size() > 1) {
    for (const std::string& label : compared) rows[0].push_back("x " + label);
  }
  rows[0].emplace_back("verified");
  for (const MeasuredCase& one : cases) {
    const Json& record = one.record;
    const double messages = record["messages"].get<double>(), rate = record["messages_per_second"].get<double>();
    const double slowest = record["seconds"]["max"].get<double>(), fastest = record["seconds"]["min"].get<double>();
    std::vector<std::string> row = {
        one.label,
        short_number(rate / 1e6),
        short_number(slowest > 0 ? messages / slowest / 1e6 : 0),
        short_number(fastest > 0 ? messages / fastest / 1e6 : 0),
        short_number(rate / 1e6 / double(pes)),
        short_number(record["seconds"]["median"].get<double>() * 1e3),
        buffer_cell(record),
        count_cell(record, "frames"),
        record.contains("fill_mean") ? short_number(record["fill_mean"].get<double>() * 100) : ""};
    if (cases.size() > 1) {
      for (const std::string& label : compared) row.push_back(ratio_cell(record, label));
    }
    row.emplace_back(record["verified"].get<bool>() ? "yes" : "NO");
    rows.push_back(std::move(row));
  }
  return text + align(rows);
}

}  // namespace headway::tools
