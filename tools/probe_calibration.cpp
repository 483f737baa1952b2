// SPDX-License-Identifier: BSD-3-Clause
#include "probe_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe_table.hpp"

namespace headway::tools {
namespace {

constexpr double part_allowed = 0.05, ns_allowed = 200, ns_per_byte_allowed = 0.2;
constexpr double us = 1000;  // in ns

struct Column {
  const char* name;
  double (*value)(const bench::ProbeResult& result);
};
const Column columns[] = {
    {"o send", [](const bench::ProbeResult& result) { return result.overhead_of_sender.value / us; }},
    {"o recv", [](const bench::ProbeResult& result) { return result.overhead_of_receiver.value / us; }},
    {"item_o", [](const bench::ProbeResult& result) { return result.item.value / us; }},
    {"g", [](const bench::ProbeResult& result) { return result.gap().value / us; }},
    {"L", [](const bench::ProbeResult& result) { return result.latency.value / us; }},
    {"G", [](const bench::ProbeResult& result) { return result.gap_per_byte().value; }},
};

/// The value in the unit of the table: us, of G ns a byte.
double shown_value(const std::string& dial, double ns) { return dial == "G" ? ns : ns / us; }

std::string shown_dialled(const DialSetting& setting) {
  if (setting.dial == "none") return "";
  return fmt::format("{:g} {}", shown_value(setting.dial, setting.dialled_ns), setting.dial == "G" ? "ns/B" : "us");
}

std::vector<std::string> row_of(const CalibratedSetting& one, const bench::ProbeResult& without) {
  std::vector<std::string> cells = {one.setting.dial, shown_dialled(one.setting)};
  for (const Column& column : columns) cells.push_back(fmt::format("{:.3f}", column.value(one.result)));
  if (one.setting.dial == "none") {
    cells.insert(cells.end(), {"", ""});
    return cells;
  }
  const double error = error_ns(one, without);
  cells.push_back(fmt::format("{:+.3f}", shown_value(one.setting.dial, error)));
  cells.push_back(fmt::format("{:+.1f} %", 100 * error / one.setting.dialled_ns));
  return cells;
}

bool is_read_back(const CalibratedSetting& one, const bench::ProbeResult& without) {
  if (one.setting.dial == "none") return false;
  const double allowed = one.setting.dial == "G" ? ns_per_byte_allowed : ns_allowed;
  return std::abs(error_ns(one, without)) <= std::max(allowed, part_allowed * one.setting.dialled_ns);
}

/// "1 us to 50 us; not 100 us": from the least to the greatest value that is read back, and those that are not. Or
/// "none".
std::string range_of(const std::string& dial, const std::vector<CalibratedSetting>& settings) {
  std::vector<const CalibratedSetting*> of_dial;
  for (const CalibratedSetting& one : settings) {
    if (one.setting.dial == dial) of_dial.push_back(&one);
  }
  std::ranges::sort(of_dial, {}, [](const CalibratedSetting* one) { return one->setting.dialled_ns; });
  std::vector<std::string> read;
  std::string others;
  for (const CalibratedSetting* one : of_dial) {
    const std::string value = shown_dialled(one->setting);
    if (std::abs(error_ns(*one, settings.front().result)) <= part_allowed * one->setting.dialled_ns)
      read.push_back(value);
    else
      others += (others.empty() ? "; not " : ", ") + value;
  }
  if (read.empty()) return "none";
  return (read.size() == 1 ? read[0] : fmt::format("{} to {}", read.front(), read.back())) + others;
}

/// The line on observed values that count as 0, or empty.
std::string clipped_without_dials(const bench::ProbeResult& without) {
  std::string names;
  const std::pair<const char*, const model::Estimate*> estimates[] = {
      {"o of the sender", &without.overhead_of_sender},
      {"o of the receiver", &without.overhead_of_receiver},
      {"item_o", &without.item},
      {"g", &without.gap()},
      {"L", &without.latency},
      {"G", &without.gap_per_byte()}};
  for (const auto& [name, estimate] : estimates) {
    if (estimate->is_below_zero || estimate->value == 0) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  if (names.empty()) return "";
  return fmt::format(
      "Without delays the observed {} is below 0, because other values contain it. It counts as 0, so that the errors "
      "of its dial contain the difference.\n",
      names);
}

std::string line_of(const std::vector<std::string>& cells, bool markdown) {
  std::string line = markdown ? "|" : "";
  for (std::size_t i = 0; i != cells.size(); ++i) {
    if (markdown)
      line += fmt::format(" {} |", cells[i]);
    else
      line += i < 2 ? fmt::format("{:<9} ", cells[i]) : fmt::format("{:>10} ", cells[i]);
  }
  while (line.ends_with(' ')) line.pop_back();
  return line + "\n";
}

}  // namespace

std::string DialSetting::text() const { return dial == "none" ? "" : fmt::format("{}={}ns", dial, dialled_ns); }

const std::vector<std::string>& dial_names() {
  static const std::vector<std::string> names = {"o", "item_o", "g", "L", "G"};
  return names;
}

std::vector<DialSetting> settings_of(const std::vector<std::string>& dials, const std::vector<double>& values_ns) {
  constexpr double bytes_of_value = 1000;
  std::vector<DialSetting> settings(1);
  for (const std::string& dial : dials) {
    for (const double ns : values_ns) {
      if (ns != 0) settings.push_back({dial, dial == "G" ? ns / bytes_of_value : ns});
    }
  }
  return settings;
}

std::vector<CalibratedSetting> calibrate(const ProbeTarget& target, const ProbeRequest& request,
                                         const std::vector<DialSetting>& settings,
                                         const std::function<void(const std::string&)>& step) {
  std::vector<std::vector<bench::ProbeLaunch>> launches(settings.size());
  for (std::size_t number = 0; number != request.launches; ++number) {
    for (std::size_t i = 0; i != settings.size(); ++i) {
      ProbeRequest dialled = request;
      dialled.dial = settings[i].text();
      step(fmt::format("{} {}, launch {} of {}", settings[i].dial, shown_dialled(settings[i]), number + 1,
                       request.launches));
      launches[i].push_back(launch_probe(target, dialled, number));
    }
  }
  std::vector<CalibratedSetting> calibrated;
  for (std::size_t i = 0; i != settings.size(); ++i) calibrated.push_back({settings[i], bench::evaluate(launches[i])});
  return calibrated;
}

double error_ns(const CalibratedSetting& one, const bench::ProbeResult& without) {
  const double dialled = one.setting.dialled_ns;
  const auto above = [&](const model::Estimate& with, const model::Estimate& own) {
    return with.value - own.value - dialled;
  };
  const auto at_least = [&](const model::Estimate& with, const model::Estimate& own) {
    return with.value - std::max(own.value, dialled);
  };
  const bench::ProbeResult& with = one.result;
  if (one.setting.dial == "item_o") return above(with.item, without.item);
  if (one.setting.dial == "g") return at_least(with.gap(), without.gap());
  if (one.setting.dial == "L") return above(with.latency, without.latency);
  if (one.setting.dial == "G") return at_least(with.gap_per_byte(), without.gap_per_byte());
  const double sender = above(with.overhead_of_sender, without.overhead_of_sender);
  const double receiver = above(with.overhead_of_receiver, without.overhead_of_receiver);
  return std::abs(sender) > std::abs(receiver) ? sender : receiver;
}

std::string matrix_of(const std::vector<CalibratedSetting>& settings, bool markdown) {
  std::vector<std::string> names = {"dial", "dialled"};
  for (const Column& column : columns)
    names.push_back(fmt::format("{} {}", column.name, std::string(column.name) == "G" ? "ns/B" : "us"));
  names.insert(names.end(), {"error", "error %"});
  std::string text = line_of(names, markdown);
  if (markdown) text += "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const CalibratedSetting& one : settings) text += line_of(row_of(one, settings.front().result), markdown);
  text += markdown ? "\n| dial | read back within 5 % |\n| --- | --- |\n" : "\nread back within 5 %:\n";
  for (const std::string& dial : dial_names()) {
    const bool was_dialled = std::ranges::any_of(settings, [&](const auto& one) { return one.setting.dial == dial; });
    if (was_dialled) text += line_of({dial, range_of(dial, settings)}, markdown);
  }
  std::size_t settings_read = 0;
  for (const CalibratedSetting& one : settings) settings_read += is_read_back(one, settings.front().result);
  if (const std::string clipped = clipped_without_dials(settings.front().result); !clipped.empty())
    text += "\n" + clipped;
  return text + fmt::format("\n{} of {} settings are read back within 5 % or 0.2 us (G: 0.2 ns/B).\n", settings_read,
                            settings.size() - 1);
}

std::string page_of(const ProbeTarget& target, std::size_t launches, const std::vector<CalibratedSetting>& settings) {
  const bench::Json machine = bench::machine_description();
  return fmt::format(
      R"(# Calibration of the dials

`headway probe --calibrate` wrote this page. Each row is a run with one dial (`HEADWAY_DIAL`,
[transport/dial](../src/headway/transport/dial/README.md)), and the parameters of LogGP that
[`headway probe`](probe.md) observed in it. The first row is the network without delays.

Measured: transport {}, {}.
Medians of {} launches of each row, in turns.
Machine: {}, {} cores, {}, {}.

How to read it:

- The column of the dial rises by the dialled value. `error` is the difference, in the unit of that column. The error of
  `o` is the larger one of sender and receiver.
- `o` also raises g: the processor sends no frame during the delay. In the same way `item_o` raises the o of a receiver,
  because a frame has at least one message, and g.
- `L` changes neither o nor g, because no window bounds the frames that are under way.
- `g` and `G` run at the same time as those of the network: the longer one is read. Both are lower bounds.
- `G` also raises g and L, by the time of the header of a frame.

{})",
      target.transport, name_of_pair(target), launches, machine["processor"].get<std::string>(),
      machine["cores_available"].get<std::size_t>(), machine["system"].get<std::string>(),
      machine["compiler"].get<std::string>(), matrix_of(settings, true));
}

}  // namespace headway::tools
