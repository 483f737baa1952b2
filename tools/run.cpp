// SPDX-License-Identifier: BSD-3-Clause
/// `headway run`: sets the HEADWAY_ variables and starts the program.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <headway/base/counts_setting.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/launch.hpp>
#include <iostream>
#include <optional>
#include <record/command_line.hpp>

#include "commands.hpp"
#include "program.hpp"
#include "run_counts.hpp"
#include "settings_options.hpp"

namespace headway::tools {

int run_command(int argc, char** argv) {
  const std::string name = "headway run";
  bench::CommandLine app(
      "Starts PROGRAM on PEs of this machine. Its exit status is the lowest failing PE's. SIGUSR1 to this command "
      "prints what each PE does, and the run goes on.",
      name);
  describe_program(app, "the program", "its arguments; options after PROGRAM are the program's");
  const SettingsOptions settings(app);
  std::optional<std::size_t> debug_pe;
  std::string debug_text;
  app.add_value("--debug", "PE", "start that PE's process under gdb", [&](const std::string& text) {
    debug_text = text;
    debug_pe = bench::parse_count("--debug", text, 0, base::pes_max - 1);
  });

  bool table = false;
  app.add_flag("--table", "print at the end what each PE has sent: messages, frames, reads, waits",
               [&table] { table = true; });

  launch::LaunchOptions options;
  app.add_value("--hosts", "A,B,...", "start the processes on these hosts, in blocks, by --agent; with --transport ucx",
                [&](const std::string& text) {
                  for (std::size_t at = 0; at <= text.size();) {
                    const std::size_t comma = std::min(text.find(',', at), text.size());
                    options.hosts.push_back(text.substr(at, comma - at));
                    if (options.hosts.back().empty())
                      throw SettingError(fmt::format(
                          "--hosts: '{}' is not allowed; allowed are names with commas between them", text));
                    at = comma + 1;
                  }
                });
  app.add_flag("--ssh", "reach them by ssh, as without --agent", [&] { options.agent.clear(); });
  app.add_text("--agent", "COMMAND",
               "called as COMMAND HOST LINE, runs the line of shell there, with its standard input [ssh]",
               options.agent);
  app.add_text("--address", "ADDRESS", "name or number at which the hosts reach this one [its host name]",
               options.address);
  app.add_count("--start-limit", "SECONDS", "for all processes to have come to run(), once one has [30]",
                options.start_limit, 1, 86'400);

  int status = 0;
  const auto line = parse_program_line(app, settings, argc, argv, status);
  if (!line) return status;
  if (debug_pe && *debug_pe >= line->settings.pes) {
    std::cerr << fmt::format("{}: --debug: '{}' is not allowed; this run has PEs 0 to {}\n", name, debug_text,
                             line->settings.pes - 1);
    return exit_status::unusable_arguments;
  }
  if (debug_pe) options.debug_pe = int(*debug_pe);
  if (table && !options.hosts.empty()) {
    std::cerr << fmt::format(
        "{}: --table: not with --hosts, because the host of PE 0 has the counts; allowed is "
        "--counts FILE, which PE 0 writes there\n",
        name);
    return exit_status::unusable_arguments;
  }
  if (!table) return launch::launch_processes(options, line->command);
  // A file that the caller has named stays.
  const std::string given = base::counts_file();
  std::optional<TemporaryFile> temporary;
  if (given.empty())
    ::setenv("HEADWAY_COUNTS", temporary.emplace().path().c_str(), 1);
  else if (std::filesystem::is_regular_file(given))
    std::filesystem::remove(given);  // counts of an earlier run
  status = launch::launch_processes(options, line->command);
  if (status == 0) {
    const RunCounts counts = read_counts(given.empty() ? temporary->path() : given);
    std::cout << communication_table(counts) << '\n' << times_table(counts);
    if (!counts.phases.empty()) std::cout << '\n' << phases_table(counts);
    std::cout << std::flush;
  }
  return status;
}

}  // namespace headway::tools
