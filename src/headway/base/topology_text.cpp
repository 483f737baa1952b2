// SPDX-License-Identifier: BSD-3-Clause
#include <headway/base/topology_text.hpp>

namespace headway::base {

namespace {

constexpr unsigned pe_dimensions_max = 8;

/// "2d" is 2. 0 for other texts.
unsigned read_dimensions(std::string_view text) {
  const bool good = text.size() == 2 && text[0] >= '1' && text[0] <= '9' && (text[1] == 'd' || text[1] == 'D');
  return good ? unsigned(text[0] - '0') : 0;
}

/// The dimensions of "NAME" and of "NAME-2d". 0 for other texts.
unsigned dimensions_after(std::string_view text, std::string_view name) {
  if (name.empty() || !text.starts_with(name)) return 0;
  text.remove_prefix(name.size());
  if (text.empty()) return 1;
  return text.front() == '-' ? read_dimensions(text.substr(1)) : 0;
}

}  // namespace

std::optional<TopologyText> read_topology(std::string_view text) {
  if (text == "direct") return TopologyText{"", 0};
  if (text == "ww" || text == "pe-to-pe") return TopologyText{"", 1};
  if (const unsigned dimensions = read_dimensions(text); dimensions != 0) {
    if (dimensions > pe_dimensions_max) return std::nullopt;
    return TopologyText{"", dimensions};
  }
  for (const SchemeName& scheme : scheme_names) {
    for (const std::string_view name : {scheme.code, scheme.readable}) {
      const unsigned dimensions = dimensions_after(text, name);
      if (dimensions != 0 && dimensions <= scheme.dimensions_max) return TopologyText{scheme.code, dimensions};
    }
  }
  return std::nullopt;
}

}  // namespace headway::base
