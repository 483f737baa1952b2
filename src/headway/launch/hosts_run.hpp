/// Starting the processes of a run that meet by TCP, on this host or several, and watching over them: where there is
/// neither shared memory between all nor an MPI.
#pragma once

#include <functional>
#include <headway/launch/launch.hpp>
#include <headway/base/settings.hpp>
#include <string>
#include <vector>

namespace headway::launch {

/// Starts `command` once a process, the processes in blocks over options.hosts, and waits for all. Returns the status
/// of the run as run() does. Throws SettingError, SystemError.
int run_over_hosts(const Settings& settings, const LaunchOptions& options, const std::vector<std::string>& command);

/// The same with processes that are forked from this one and do `process`, whose result is their status. There they
/// find themselves invited: Settings::from_environment() says how they meet.
int run_by_meeting(const Settings& settings, const std::function<int()>& process);

}  // namespace headway::launch
