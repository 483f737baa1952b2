// SPDX-License-Identifier: BSD-3-Clause
/// Ranges of dials: o=0..100us:5,L=0..20us.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headway::tools {

/// Values of one dial, each used alone.
struct DialSweep {
  std::string name;            // o, item_o, g, L or G
  std::vector<double> values;  // ns, of G ns for each byte; ascending and above 0

  /// HEADWAY_DIAL for a value.
  std::string dials(double value) const;
  bool is_per_byte() const { return name == "G"; }
  /// A value with its unit, for people.
  std::string text(double value) const;
};

inline constexpr std::size_t sweep_values_default = 5, sweep_values_max = 100;

/// Reads a list of NAME=FROM..TO[:N] or NAME=VALUE. The N values (5) are evenly spaced and include FROM and TO; 0 is
/// left out, for each sweep is compared with it anyway. FROM may lack the unit of TO. Throws SettingError with `what`,
/// the text and the allowed form.
std::vector<DialSweep> parse_dial_sweeps(std::string_view what, std::string_view text);

}  // namespace headway::tools
