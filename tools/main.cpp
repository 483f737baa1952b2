// SPDX-License-Identifier: BSD-3-Clause
/// The headway command.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <headway/base/error.hpp>
#include <iostream>
#include <record/command_line.hpp>
#include <string_view>

#include "commands.hpp"

namespace headway::tools {
namespace {

constexpr std::array all_commands = {
    Command{"run", run_command, "[options] PROGRAM [ARGS]", "start a program"},
    Command{"bench", bench_command, "NAME [options]", "run a benchmark; `headway bench --list`"},
    Command{"probe", probe_command, "[options]", "measure LogGP of the transports here"},
    Command{"tune", tune_command, "[options] PROGRAM [ARGS]", "find settings of aggregation for a program"},
    Command{"predict", predict_command, "PROGRAM [ARGS] --pes LIST --machine NAME",
            "time, frames and buffers with other PEs, machines and dials"},
    Command{"slopes", slopes_command, "[options] PROGRAM [ARGS]|DIR",
            "the longest path of one run: what o, g, L and G cost"},
    Command{"trace", trace_command, "DIR -o FILE", "a trace for Perfetto, as OTF2 or CSV"},
    Command{"sensitivity", sensitivity_command, "PROGRAM [ARGS] --dial o=0..100us,L=0..50us",
            "slowdown with each dial, predictions, and what would help"},
    Command{"report", report_command, "FILE... -o report.html",
            "explain a run on one page, with advice; two files of a kind are compared"},
    Command{"mpi-report", mpi_report_command, "MPIRUN ARGS ./app ARGS",
            "which MPI calls an unmodified program makes, and what would change"},
    Command{"watch", watch_command, "[options] [PID]", "what a running program does, live, on one host or several"},
    Command{"platform", platform_command, "MACHINE --pes N", "write a machine as a platform of SimGrid"},
    Command{"doctor", doctor_command, "", "what this machine offers and what is wrong with it, with the cure"},
    Command{"info", info_command, "", "version, build, layers, transports, plug-ins"},
    Command{"cxxflags", cxxflags_command, "", "flags that compile a program with this installation"},
    Command{"ldflags", ldflags_command, "[--static]", "flags that link it"},
};

void print_help() {
  std::cout << "headway: parallel programs that send many small messages\n\n";
  for (const Command& command : all_commands) {
    std::cout << fmt::format("headway {:<32} {}\n", fmt::format("{} {}", command.name, command.arguments),
                             command.help);
  }
  std::cout << "\n`headway COMMAND --help` lists the options of a command.\n" << std::flush;
}

int refuse_command(std::string_view name) {
  std::vector<std::string> names;
  for (const Command& command : all_commands) names.emplace_back(command.name);
  const std::string guess = bench::nearest(name, names);
  std::cerr << fmt::format("headway: unknown command '{}'{}; allowed are {}\n", name,
                           guess.empty() ? "" : fmt::format(", did you mean '{}'?", guess), fmt::join(names, ", "));
  return exit_status::unusable_arguments;
}

int dispatch(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") return print_help(), 0;
  if (name == "--version") return info_command(1, argv);
  if (name.empty()) {
    std::cerr << "headway: a command is needed; `headway --help` lists them\n";
    return exit_status::unusable_arguments;
  }
  const auto found = std::ranges::find(all_commands, name, [](const Command& c) { return std::string_view(c.name); });
  return found == all_commands.end() ? refuse_command(name) : found->run(argc - 1, argv + 1);
}

}  // namespace

}  // namespace headway::tools

int main(int argc, char** argv) {
  try {
    return headway::tools::dispatch(argc, argv);
  } catch (const headway::SettingError& error) {
    std::cerr << "headway: " << error.what() << '\n';
    return headway::exit_status::unusable_settings;
  } catch (const std::exception& error) {
    std::cerr << "headway: " << error.what() << '\n';
    return 1;
  }
}
