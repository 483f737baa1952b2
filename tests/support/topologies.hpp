// SPDX-License-Identifier: BSD-3-Clause
/// The routes that tests of the aggregator take.
#pragma once

#include <headway/aggregate/options.hpp>

namespace headway::testing {

inline constexpr Topology topologies[] = {
    direct(), grid(1), grid(2), grid(3), grid(1, Scheme::wps), grid(1, Scheme::pp), grid(2, Scheme::pp)};

}  // namespace headway::testing
