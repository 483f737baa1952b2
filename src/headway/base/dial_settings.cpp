// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <array>
#include <headway/base/dial_settings.hpp>
#include <headway/base/error.hpp>
#include <headway/base/nanoseconds.hpp>
#include <string>

namespace headway::base {
namespace {

constexpr std::string_view names_allowed =
    "a list of o, item_o, g, L=TIME (such as 5us), G=TIME (of a byte, such as 0.5ns) and random, each at most once";

std::string printable(std::string_view text) {
  std::string line(text);
  for (char& c : line) c = static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return line;
}

struct Dial {
  std::string_view name;
  double DialSettings::*value;
  double max;
  std::string_view range;
};
constexpr std::array dials = {
    Dial{"o", &DialSettings::overhead_ns, dial_ns_max, "a time from 0 to 100ms, such as 5us"},
    Dial{"item_o", &DialSettings::item_overhead_ns, dial_ns_max, "a time from 0 to 100ms, such as 100ns"},
    Dial{"g", &DialSettings::gap_ns, dial_ns_max, "a time from 0 to 100ms, such as 5us"},
    Dial{"L", &DialSettings::latency_ns, dial_ns_max, "a time from 0 to 100ms, such as 5us"},
    Dial{"G", &DialSettings::gap_per_byte_ns, dial_ns_per_byte_max, "a time of a byte from 0 to 1us, such as 0.5ns"},
};
static_assert(dial_ns_max == 100e6 && dial_ns_per_byte_max == 1e3);

}  // namespace

DialSettings DialSettings::parse(std::string_view what, std::string_view text) {
  DialSettings settings;
  std::array<bool, dials.size()> given{};
  std::string_view item;
  const auto refuse = [&](std::string_view allowed) {
    throw SettingError(fmt::format("{}={}: '{}': allowed is {}", what, printable(text), printable(item), allowed));
  };
  for (std::size_t at = 0; at <= text.size(); at += item.size() + 1) {
    item = text.substr(at, text.find(',', at) - at);
    if (item == "random" && !settings.random) {
      settings.random = true;
      continue;
    }
    std::size_t index = 0;
    const std::size_t equals = item.find('=');
    const std::string_view name = item.substr(0, equals);
    while (index < dials.size() && dials[index].name != name) ++index;
    if (equals == item.npos || index == dials.size() || given[index]) refuse(names_allowed);
    const Dial& dial = dials[index];
    const std::optional<double> value = parse_nanoseconds(item.substr(equals + 1));
    if (!value || *value > dial.max) refuse(dial.range);
    settings.*dial.value = *value;
    given[index] = true;
  }
  return settings;
}

}  // namespace headway::base
