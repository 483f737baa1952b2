// SPDX-License-Identifier: BSD-3-Clause
/// `headway info`: what this build is.
#include <fmt/format.h>

#include <headway/base/settings.hpp>
#include <headway/transport/wire/loader.hpp>
#include <iostream>
#include <record/command_line.hpp>

#include "commands.hpp"

namespace headway::tools {

int info_command(int argc, char** argv) {
  bench::CommandLine app("Version, build, layers, transports and plug-ins.", "headway info");
  if (const auto status = app.parse(argc, argv)) return *status;
  std::string plugins;
  for (const wire::Plugin& plugin : wire::known_plugins(base::plugin_dir())) {
    if (!plugin.path.empty()) plugins += (plugins.empty() ? "" : ", ") + plugin.name;
  }
  std::cout << "headway " HEADWAY_VERSION "\n"
            << "compiler    " HEADWAY_COMPILER "\n"
            << "build       " HEADWAY_BUILD_TYPE "\n"
            << "layers      " HEADWAY_LAYERS "\n"
            << "transports  local" << (base::has_simulation ? ", sim" : "") << (plugins.empty() ? "" : ", mpi") << "\n"
            << "plug-ins    " << (plugins.empty() ? "none" : plugins) << "\n"
            << fmt::format("fmt         {}.{}.{}\n", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)
            << std::flush;
  return 0;
}

}  // namespace headway::tools
