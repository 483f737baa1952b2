/// Finding and loading plug-ins, and starting the one that the launcher's processes need.
#pragma once

#include <headway/base/launcher.hpp>
#include <headway/transport/wire/wire.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace headway::wire {

class Meeting;

/// A wire that has been started. Its library stays loaded.
struct Started {
  const headway_wire_functions* functions = nullptr;
  headway_wire* wire = nullptr;
  headway_wire_facts facts{};
  // How the processes have met, where the wire needed that.
  std::shared_ptr<Meeting> meeting = {};
  std::shared_ptr<Started> below = {};
};

struct Plugin {
  std::string name;     // "openmpi"
  std::string mpi;      // whose launcher it is for: "openmpi" or "mpich"; empty: of none, or not known
  std::string path;     // of the file; empty: not found
  std::string problem;  // why it cannot be loaded; empty: it can be
};

/// What is there for each name known, tried in a process of its own so that this one stays as it is.
std::vector<Plugin> known_plugins(const std::string& first_dir);

/// Loads the plug-in for `transport` ("mpi": the one that the launcher or a libmpi in this process asks for) and starts
/// it. `first_dir` is looked in before the program's folder and the installed ones. Throws SettingError, also where the
/// processes of the launcher do not find each other. Collective.
Started start(const std::string& transport, const std::optional<Launcher>& launcher, const std::string& first_dir);

/// Whether start() would find a plug-in.
bool has_plugin(const std::string& transport, const std::optional<Launcher>& launcher, const std::string& first_dir);

}  // namespace headway::wire
