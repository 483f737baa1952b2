// SPDX-License-Identifier: BSD-3-Clause
/// `headway platform`: writes a machine as a platform of SimGrid.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <headway/base/error.hpp>
#include <headway/base/nanoseconds.hpp>
#include <headway/model/simgrid_platform.hpp>
#include <iostream>
#include <optional>
#include <record/command_line.hpp>
#include <record/record.hpp>

#include "commands.hpp"

namespace headway::tools {
namespace {

void write(const std::string& option, const std::string& file, const std::string& text) {
  if (file.empty() || file == "-") {
    std::cout << text << std::flush;
    return;
  }
  errno = 0;
  std::ofstream out(file, std::ios::binary);
  out << text << std::flush;
  if (!out) throw SystemError(fmt::format("{} '{}': {}", option, file, std::strerror(errno)));
}

}  // namespace

int platform_command(int argc, char** argv) {
  bench::CommandLine app(
      "Writes MACHINE, a name or a machine file, as a platform for SimGrid 3.32: `smpirun -np N -platform FILE` gives "
      "messages the times of the machine. Machines without LogGP get o = alpha / 2 and no latency.",
      "headway platform");
  std::optional<model::Machine> machine;
  std::optional<double> latency_ns;
  std::size_t pes = 0, pes_per_host = 1;
  std::string file, hosts_file;
  app.add_positional(
      "MACHINE", "summit, now, ... or a file, as ./my.machine",
      [&](const std::string& name) {
        try {
          machine = model::find_machine(name);
        } catch (const SystemError& error) {
          throw SettingError(error.what());
        }
      },
      true);
  app.add_count("--pes", "N", "ranks that the platform has hosts for", pes, 1, model::platform_pes_max);
  app.add_count("--pes-per-host", "K", "ranks on each host [1]", pes_per_host, 1, model::platform_pes_max);
  app.add_value("--latency", "TIME", "the network's latency, such as 1us [the machine's; 0 without LogGP]",
                [&](const std::string& text) {
                  latency_ns = base::parse_nanoseconds(text);
                  if (!latency_ns) {
                    throw SettingError(fmt::format("--latency '{}': allowed is a time such as 200ns, 2us or 0", text));
                  }
                });
  app.add_text("--output", "FILE", "where the platform goes [standard output]", file);
  app.add_text("--hosts", "FILE", "writes the host of each rank, for smpirun -hostfile", hosts_file);
  if (const auto status = app.parse(argc, argv, [&] {
        bench::require_writable("--output", file);
        bench::require_writable("--hosts", hosts_file);
        if (pes == 0) throw SettingError(fmt::format("--pes is needed: 1 to {}", model::platform_pes_max));
      })) {
    return *status;
  }
  model::LogGP network = model::network_of(*machine);
  if (latency_ns) network.latency_ns = *latency_ns;
  write("--output", file, model::simgrid_platform(*machine, network, pes, pes_per_host));
  if (!hosts_file.empty()) write("--hosts", hosts_file, model::simgrid_hosts(*machine, pes, pes_per_host));
  return 0;
}

}  // namespace headway::tools
