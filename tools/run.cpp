/// `headway run`: sets the HEADWAY_ variables and starts the program.
#include <fmt/format.h>

#include <headway/am/launch.hpp>
#include <headway/base/error.hpp>
#include <iostream>
#include <record/command_line.hpp>

#include "commands.hpp"
#include "program.hpp"
#include "settings_options.hpp"

namespace headway::tools {

int run_command(int argc, char** argv) {
  const std::string name = "headway run";
  CLI::App app(
      "Starts PROGRAM on PEs of this machine. Its exit status is the lowest failing PE's. SIGUSR1 to this command "
      "prints what each PE does, and the run goes on.",
      name);
  std::string ignored;  // the parser sees the options alone; these stand in its help
  app.add_option("PROGRAM", ignored, "the program");
  app.add_option("ARGS", ignored, "its arguments; options after PROGRAM are the program's");
  const SettingsOptions settings(app);
  std::optional<std::size_t> debug_pe;
  std::string debug_text;
  bench::add_value(
      app, "--debug",
      [&](const std::string& text) {
        debug_text = text;
        debug_pe = bench::parse_count("--debug", text, 0, pes_max - 1);
      },
      "PE", "start that PE's process under gdb");

  const int position = program_position(app, argc, argv);
  const bool dashes = position <= argc && position > 1 && std::string(argv[position - 1]) == "--";
  if (const auto status = bench::parse_command_line(app, position - (dashes ? 1 : 0), argv)) return *status;
  const auto effective = settings.apply(name);
  if (!effective) return exit_status::unusable_arguments;
  const auto refuse = [&](const std::string& text) {
    std::cerr << fmt::format("{}: {}\n", name, text);
    return exit_status::unusable_arguments;
  };
  if (debug_pe && *debug_pe >= effective->pes) {
    return refuse(
        fmt::format("--debug: '{}' is not allowed; this run has PEs 0 to {}", debug_text, effective->pes - 1));
  }
  if (position >= argc) return refuse("a program is needed: headway run [options] PROGRAM [ARGS]");
  const std::vector<std::string> command(argv + position, argv + argc);
  if (const std::string reason = why_not(command.front()); !reason.empty()) {
    return refuse(fmt::format("cannot start '{}': {}", command.front(), reason));
  }
  return launch({.debug_pe = debug_pe ? int(*debug_pe) : -1}, command);
}

}  // namespace headway::tools
