// SPDX-License-Identifier: BSD-3-Clause
#include "watch_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <headway/base/counted.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace headway::tools {
namespace {

constexpr const char* unknown = "-";

template <class T, class Text>
std::string or_unknown(const std::optional<T>& value, Text text) {
  return value ? text(*value) : unknown;
}

std::string percent(double share) { return fmt::format("{:.0f}", 100 * share); }

std::string rate(const std::optional<Rates>& rates, double Rates::*field) {
  return rates ? short_number((*rates).*field) : unknown;
}

std::string fill_of(const std::optional<Rates>& rates) {
  return rates ? or_unknown(rates->fill, short_number) : unknown;
}

struct Column {
  const char* title;
  unsigned keep;  // columns with smaller numbers are left out first
  bool is_text;
  std::string (*of_pe)(const WatchedPe&);
  std::string (*of_sums)(const Sums&);
};

std::string nothing(const Sums&) { return ""; }

constexpr std::array columns = {
    Column{"PE", 100, false, [](const WatchedPe& pe) { return fmt::format("{}", pe.pe); },
           [](const Sums&) { return std::string("all"); }},
    Column{"host", 70, true, [](const WatchedPe& pe) { return pe.host; }, nothing},
    Column{"process", 10, false, [](const WatchedPe& pe) { return pe.pid == 0 ? unknown : fmt::format("{}", pe.pid); },
           nothing},
    Column{"messages/s", 99, false, [](const WatchedPe& pe) { return rate(pe.rates, &Rates::messages_per_s); },
           [](const Sums& sums) { return short_number(sums.rates.messages_per_s); }},
    Column{"handled/s", 40, false, [](const WatchedPe& pe) { return rate(pe.rates, &Rates::handled_per_s); },
           [](const Sums& sums) { return short_number(sums.rates.handled_per_s); }},
    Column{"frames/s", 60, false, [](const WatchedPe& pe) { return rate(pe.rates, &Rates::frames_per_s); },
           [](const Sums& sums) { return short_number(sums.rates.frames_per_s); }},
    Column{"fill", 80, false, [](const WatchedPe& pe) { return fill_of(pe.rates); },
           [](const Sums& sums) { return or_unknown(sums.rates.fill, short_number); }},
    Column{"wait %", 98, false, [](const WatchedPe& pe) { return or_unknown(pe.waiting, percent); },
           [](const Sums& sums) { return or_unknown(sums.waiting, percent); }},
    Column{"handle %", 30, false, [](const WatchedPe& pe) { return or_unknown(pe.handling, percent); },
           [](const Sums& sums) { return or_unknown(sums.handling, percent); }},
    Column{"buffers", 35, false, [](const WatchedPe& pe) { return short_bytes(pe.buffer_bytes); },
           [](const Sums& sums) { return short_bytes(sums.buffer_bytes); }},
    Column{"memory", 50, false, [](const WatchedPe& pe) { return short_bytes(pe.memory_bytes); },
           [](const Sums& sums) { return short_bytes(sums.memory_bytes); }},
    Column{"budget", 20, false, [](const WatchedPe& pe) { return short_bytes(pe.budget_bytes); },
           [](const Sums& sums) { return short_bytes(sums.budget_bytes); }},
    Column{"spill", 55, false, [](const WatchedPe& pe) { return short_bytes(pe.spill_bytes); },
           [](const Sums& sums) { return short_bytes(sums.spill_bytes); }},
    Column{"spilled", 45, false, [](const WatchedPe& pe) { return short_number(double(pe.spilled_frames)); },
           [](const Sums& sums) { return short_number(double(sums.spilled_frames)); }},
    Column{"resident", 33, false, [](const WatchedPe& pe) { return or_unknown(pe.resident_bytes, short_bytes); },
           [](const Sums& sums) { return short_bytes(sums.resident_bytes); }},
    Column{"state", 65, true, [](const WatchedPe& pe) { return pe.state; }, nothing},
};

using Cells = std::vector<std::string>;  // by column

/// The PEs that wait most and least, by number, so that `count` are shown.
std::set<std::size_t> chosen(const View& view, std::size_t count) {
  std::vector<std::size_t> by_wait(view.pes.size());
  for (std::size_t i = 0; i < by_wait.size(); ++i) by_wait[i] = i;
  std::ranges::stable_sort(by_wait, std::ranges::greater{},
                           [&](std::size_t i) { return view.pes[i].waiting.value_or(-1); });
  const std::size_t most = (count + 1) / 2, least = count / 2;
  std::set<std::size_t> shown(by_wait.begin(), by_wait.begin() + std::ptrdiff_t(most));
  shown.insert(by_wait.end() - std::ptrdiff_t(least), by_wait.end());
  return shown;
}

std::string cut(std::string text, std::size_t columns_max) {
  if (text.size() > columns_max) text.resize(columns_max);
  return text;
}

std::string line_of(const Cells& cells, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (widths[c] == 0) continue;
    if (!line.empty()) line += "  ";
    line +=
        columns[c].is_text ? fmt::format("{:<{}}", cells[c], widths[c]) : fmt::format("{:>{}}", cells[c], widths[c]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

/// Widths of the columns; 0: left out, because the line would be too long, or no PE has such a value.
std::vector<std::size_t> widths_of(const std::vector<Cells>& rows, std::size_t columns_max) {
  std::vector<std::size_t> widths(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    bool any = false;
    for (std::size_t row = 0; row < rows.size(); ++row) {
      widths[c] = std::max(widths[c], rows[row][c].size());
      any |= row != 0 && !rows[row][c].empty();
    }
    if (!any) widths[c] = 0;
  }
  const auto total = [&] {
    std::size_t sum = 0;
    for (const std::size_t width : widths) sum += width == 0 ? 0 : width + 2;
    return sum == 0 ? 0 : sum - 2;
  };
  while (total() > columns_max) {
    std::size_t least = columns.size();
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (widths[c] != 0 && (least == columns.size() || columns[c].keep < columns[least].keep)) least = c;
    }
    widths[least] = 0;
  }
  return widths;
}

std::string title_of(const View& view, std::size_t answered) {
  const std::string program = view.program.substr(view.program.rfind('/') + 1);
  std::string title = fmt::format("{}: {}, {:.1f} s", program, base::counted(view.pes.size(), "PE"), view.seconds);
  if (view.simulated) title += "; simulated: rates are per simulated second";
  if (answered < view.pes.size()) title += fmt::format("; {} did not answer", view.pes.size() - answered);
  return title;
}

}  // namespace

std::string short_number(double number) {
  constexpr std::string_view units = " kMGT";
  std::size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < units.size(); ++unit) number /= 1000;
  const int digits = unit == 0 && number == double(std::int64_t(number)) ? 0
                     : number < 9.995                                    ? 2
                     : number < 99.95                                    ? 1
                                                                         : 0;
  return fmt::format("{:.{}f}{}", number, digits, unit == 0 ? "" : std::string(1, units[unit]));
}

std::string short_bytes(std::uint64_t bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto number = double(bytes);
  std::size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < units.size(); ++unit) number /= 1024;
  return fmt::format("{:.{}f} {}", number, unit == 0 || number >= 9.95 ? 0 : 1, units[unit]);
}

std::vector<std::string> draw(const View& view, const WindowSize& size, const std::vector<std::string>& notes) {
  const Sums sums = sums_of(view);
  // Title, heads of columns and sums come first; then PEs, then a line about PEs that are not shown.
  constexpr std::size_t other_lines = 3;
  const std::size_t notes_shown =
      std::min(notes.size(), size.lines > other_lines + 2 ? size.lines - other_lines - 2 : 0);
  const std::size_t room = size.lines - std::min(size.lines, other_lines + notes_shown);
  const bool all = view.pes.size() <= room;
  const std::size_t count = all ? view.pes.size() : room - std::min<std::size_t>(room, 1);

  std::vector<Cells> rows(2);
  for (const Column& column : columns) {
    rows[0].emplace_back(column.title);
    rows[1].push_back(column.of_sums(sums));
  }
  for (const std::size_t i : chosen(view, count)) {
    Cells& row = rows.emplace_back();
    for (const Column& column : columns) row.push_back(column.of_pe(view.pes[i]));
  }
  const std::vector<std::size_t> widths = widths_of(rows, size.columns);

  std::vector<std::string> lines = {title_of(view, sums.answered)};
  for (const Cells& row : rows) lines.push_back(line_of(row, widths));
  if (!all && room > 0)
    lines.push_back(
        fmt::format("{} more, which wait neither most nor least", base::counted(view.pes.size() - count, "PE")));
  lines.insert(lines.end(), notes.begin(), notes.begin() + std::ptrdiff_t(notes_shown));
  if (lines.size() > size.lines) lines.resize(size.lines);
  for (std::string& line : lines) line = cut(std::move(line), size.columns);
  return lines;
}

}  // namespace headway::tools
