// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cstdio>
#include <headway/base/costs_setting.hpp>
#include <headway/launch/measured_costs.hpp>
#include <headway/transport/probed_costs.hpp>

namespace headway::launch {

transport::FrameCosts measured_costs(const std::string& transport, const std::string& pair) {
  if (!base::wants_probed_costs()) return {};
  const transport::ChosenCosts chosen = transport::probed_costs(transport, pair);
  if (!chosen.ignored.empty()) fmt::print(stderr, "headway: {}\n", chosen.ignored);
  return chosen.costs;
}

}  // namespace headway::launch
