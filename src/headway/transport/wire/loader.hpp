// SPDX-License-Identifier: BSD-3-Clause
/// Finds, loads and starts the plug-in that fits launcher and program.
#pragma once

#include <headway/transport/wire/wire.h>

#include <headway/base/launcher.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headway::wire {

class Meeting;

/// A started wire. Its library stays loaded.
struct Started {
  const headway_wire_functions* functions = nullptr;
  headway_wire* wire = nullptr;
  headway_wire_facts facts{};
  // The meeting of the processes, or the wire that connects them; both empty if the wire needs no meeting.
  std::shared_ptr<Meeting> meeting = {};
  std::shared_ptr<Started> below = {};
};

struct Plugin {
  std::string name;     // "openmpi"
  std::string mpi;      // the MPI of its launcher: "openmpi" or "mpich"; empty: none, or not known
  std::string path;     // empty: no such file
  std::string problem;  // the reason why it cannot be loaded; empty if it can
};

/// The plug-in of each known name. A child process tries to load it, so that this process stays unchanged.
std::vector<Plugin> known_plugins(const std::string& first_dir);

/// Loads and starts the plug-in for `transport`; for "mpi" the launcher, or a libmpi in this process, decides which
/// one. It searches `first_dir` before the program's folder and the installed folders. Throws SettingError, also if the
/// launcher's processes do not find each other. Collective.
Started start(const std::string& transport, const std::optional<base::Launcher>& launcher,
              const std::string& first_dir);

/// True if start() would find a plug-in.
bool has_plugin(const std::string& transport, const std::optional<base::Launcher>& launcher,
                const std::string& first_dir);

}  // namespace headway::wire
