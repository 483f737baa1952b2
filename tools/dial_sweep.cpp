// SPDX-License-Identifier: BSD-3-Clause
#include "dial_sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <headway/base/dial_settings.hpp>
#include <headway/base/error.hpp>
#include <headway/base/nanoseconds.hpp>
#include <optional>

namespace headway::tools {
namespace {

constexpr std::string_view form = "a list of NAME=FROM..TO[:VALUES], such as o=0..100us:5,L=0..20us";

[[noreturn]] void refuse(std::string_view what, std::string_view item, const std::string& allowed) {
  throw SettingError(fmt::format("{}: '{}' is not allowed; {}", what, item, allowed));
}

std::string_view unit_of(std::string_view time) {
  const std::size_t unit = time.find_first_not_of("0123456789.");
  return unit == time.npos ? "" : time.substr(unit);
}

DialSweep parse_one(std::string_view what, std::string_view item) {
  const std::size_t equals = item.find('=');
  if (equals == item.npos) refuse(what, item, fmt::format("allowed is {}", form));
  DialSweep sweep{std::string(item.substr(0, equals)), {}};
  std::string_view range = item.substr(equals + 1);
  std::size_t count = sweep_values_default;
  if (const std::size_t colon = range.find(':'); colon != range.npos) {
    const std::string_view text = range.substr(colon + 1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || end != text.data() + text.size() || count < 2 || count > sweep_values_max)
      refuse(what, item, fmt::format("the number of values is 2 to {}", sweep_values_max));
    range = range.substr(0, colon);
  }
  const std::size_t dots = range.find("..");
  const std::string_view last = dots == range.npos ? range : range.substr(dots + 2);
  std::string first(dots == range.npos ? range : range.substr(0, dots));
  if (unit_of(first).empty() && first != "0") first += unit_of(last);
  const std::optional<double> from = base::parse_nanoseconds(first), to = base::parse_nanoseconds(last);
  if (!from || !to) refuse(what, item, fmt::format("allowed is {}", form));
  // Knows the names and their limits, and says them.
  base::DialSettings::parse(what, fmt::format("{}={}", sweep.name, last));
  if (dots == range.npos) {
    sweep.values = {*to};
  } else if (*from >= *to) {
    refuse(what, item, "a range ends above its begin");
  } else {
    for (std::size_t i = 0; i < count; ++i)
      sweep.values.push_back(*from + (*to - *from) * double(i) / double(count - 1));
  }
  std::erase(sweep.values, 0.0);
  if (sweep.values.empty()) refuse(what, item, "a value above 0 is needed");
  return sweep;
}

}  // namespace

std::string DialSweep::dials(double value) const { return fmt::format("{}={:.6g}ns", name, value); }

std::string DialSweep::text(double value) const {
  if (is_per_byte()) return fmt::format("{:.3g} ns/B", value);
  for (const auto& [unit, scale] : {std::pair("ms", 1e6), std::pair("us", 1e3)})
    if (value >= scale) return fmt::format("{:.3g} {}", value / scale, unit);
  return fmt::format("{:.3g} ns", value);
}

std::vector<DialSweep> parse_dial_sweeps(std::string_view what, std::string_view text) {
  std::vector<DialSweep> sweeps;
  for (std::size_t at = 0; at <= text.size();) {
    const std::string_view item = text.substr(at, text.find(',', at) - at);
    sweeps.push_back(parse_one(what, item));
    if (std::ranges::count(sweeps, sweeps.back().name, &DialSweep::name) > 1)
      refuse(what, item, fmt::format("{} has a range already", sweeps.back().name));
    at += item.size() + 1;
  }
  return sweeps;
}

}  // namespace headway::tools
