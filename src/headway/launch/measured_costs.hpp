// SPDX-License-Identifier: BSD-3-Clause
/// The costs of frames that a run uses with HEADWAY_COSTS=probed.
#pragma once

#include <headway/transport/frame_costs.hpp>
#include <string>

namespace headway::launch {

/// The kept costs of this pair (transport::probed_costs). Called in one process of the run, which passes them on.
/// Nothing without HEADWAY_COSTS=probed, and for results that are not used; then it prints the reason. Throws
/// SettingError.
transport::FrameCosts measured_costs(const std::string& transport, const std::string& pair);

/// Of the PEs of one host.
inline transport::FrameCosts measured_costs_within_host(bool several_processes) {
  return measured_costs("local", several_processes ? "process" : "thread");
}

}  // namespace headway::launch
