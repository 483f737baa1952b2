// SPDX-License-Identifier: BSD-3-Clause
/// Starts and watches processes that meet by TCP, on this host or several: for runs without an MPI, and without
/// memory that all processes share.
#pragma once

#include <functional>
#include <headway/base/settings.hpp>
#include <headway/launch/launch.hpp>
#include <string>
#include <vector>

namespace headway::launch {

/// Starts `command` once per process, in blocks over options.hosts, and waits for all. Returns the status of the run
/// as run() does. Throws SettingError, SystemError.
int run_over_hosts(const base::Settings& settings, const LaunchOptions& options,
                   const std::vector<std::string>& command);

/// The same with processes forked from this one. Each calls `process` and exits with its result. Their
/// Settings::from_environment() says how they meet.
int run_by_meeting(const base::Settings& settings, const std::function<int()>& process);

}  // namespace headway::launch
