// SPDX-License-Identifier: BSD-3-Clause
/// The program that a command starts: the first of its arguments that is no option.
#pragma once

#include <headway/base/settings.hpp>
#include <headway/model/machine.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "settings_options.hpp"

namespace headway::tools {

/// Shows PROGRAM and ARGS in the help of a command that takes them; the parser itself sees the options alone.
void describe_program(bench::CommandLine& app, const std::string& program, const std::string& arguments);

/// Whether a folder may stand in place of the program.
enum class Folders { refused, allowed };

/// Parses the options of a command that starts a program, without settings. Returns the program and its arguments, for
/// a program that can be started. Empty as below.
std::optional<std::vector<std::string>> parse_program(bench::CommandLine& app, int argc, char** argv, int& status,
                                                      Folders folders = Folders::refused);

/// A list of different numbers of PEs, ascending. Throws SettingError with `what`, the text and the allowed values.
std::vector<std::size_t> parse_pes(const std::string& what, const std::string& text, std::size_t least,
                                   std::size_t most);

/// A machine by name or file. Throws SettingError.
model::Machine parse_machine(const std::string& name);

/// Arguments with the options `names`, which have values, moved before the program that they may follow. What follows
/// -- stays.
std::vector<char*> options_first(int argc, char** argv, std::initializer_list<std::string_view> names);

/// What follows the options of a command that starts a program, and the settings that result of these.
struct ProgramLine {
  std::vector<std::string> command;  // one that can be started
  base::Settings settings;
};

/// Parses the command line of a command with the options of `app`, `settings` among them. Empty where there is
/// nothing to start: then `status` is the command's exit status, and standard error has the reason.
std::optional<ProgramLine> parse_program_line(bench::CommandLine& app, const SettingsOptions& settings, int argc,
                                              char** argv, int& status);

}  // namespace headway::tools
