// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "outcome.hpp"

namespace headway::tools {
namespace {

bool is_executable_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

/// Where PROGRAM is among the arguments: the first that is neither an option nor an option's value; argc without one.
int program_position(const bench::CommandLine& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") return i + 1;
    if (argument.size() < 2 || argument[0] != '-') return i;
    if (app.takes_value(argument)) ++i;
  }
  return argc;
}

/// Why `program` cannot be started, or empty.
std::string why_not(const std::string& program) {
  std::error_code ignored;
  if (program.find('/') != std::string::npos) {
    if (!std::filesystem::exists(program, ignored)) return "there is no such file";
    return is_executable_file(program) ? "" : "it is not an executable file";
  }
  const char* path = std::getenv("PATH");
  const std::string directories = path == nullptr ? "" : path;
  for (std::size_t begin = 0; begin <= directories.size();) {
    const std::size_t end = std::min(directories.find(':', begin), directories.size());
    if (is_executable_file(std::filesystem::path(directories.substr(begin, end - begin)) / program)) return "";
    begin = end + 1;
  }
  return is_executable_file(program) ? fmt::format("it is not in PATH; did you mean './{}'?", program)
                                     : "it is not in PATH";
}

}  // namespace

void describe_program(bench::CommandLine& app, const std::string& program, const std::string& arguments) {
  app.add_positional("PROGRAM", program, [](const std::string&) {});
  app.add_positional("ARGS", arguments, [](const std::string&) {});
}

std::optional<ProgramLine> parse_program_line(bench::CommandLine& app, const SettingsOptions& settings, int argc,
                                              char** argv, int& status) {
  const std::string name = app.name();
  const int position = program_position(app, argc, argv);
  const bool dashes = position <= argc && position > 1 && std::string(argv[position - 1]) == "--";
  if (const auto ended = app.parse(position - (dashes ? 1 : 0), argv)) {
    status = *ended;
    return std::nullopt;
  }
  status = exit_status::unusable_arguments;
  const auto effective = settings.apply(name);
  if (!effective) return std::nullopt;
  if (position >= argc) {
    std::cerr << fmt::format("{0}: a program is needed: {0} [options] PROGRAM [ARGS]\n", name);
    return std::nullopt;
  }
  const ProgramLine line{{argv + position, argv + argc}, *effective};
  if (const std::string reason = why_not(line.command.front()); !reason.empty()) {
    std::cerr << fmt::format("{}: cannot start '{}': {}\n", name, line.command.front(), reason);
    return std::nullopt;
  }
  return line;
}

}  // namespace headway::tools
