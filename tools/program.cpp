// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

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

namespace {

/// The first half: the options. Empty where the command ends.
std::optional<int> parse_options(bench::CommandLine& app, int argc, char** argv, int& status) {
  const int position = program_position(app, argc, argv);
  const bool dashes = position <= argc && position > 1 && std::string(argv[position - 1]) == "--";
  if (const auto ended = app.parse(position - (dashes ? 1 : 0), argv)) {
    status = *ended;
    return std::nullopt;
  }
  status = exit_status::unusable_arguments;
  return position;
}

/// The second half: the program. Empty if it cannot be started; standard error says why.
std::optional<std::vector<std::string>> find_program(const std::string& name, int position, int argc, char** argv,
                                                     Folders folders) {
  if (position >= argc) {
    std::cerr << fmt::format("{0}: a program is needed: {0} [options] PROGRAM [ARGS]\n", name);
    return std::nullopt;
  }
  std::vector<std::string> command(argv + position, argv + argc);
  std::error_code ignored;
  if (folders == Folders::allowed && std::filesystem::is_directory(command.front(), ignored)) return command;
  // A script of Python need not be executable: the interpreter in PATH runs it.
  if (command.front().ends_with(".py") && std::filesystem::is_regular_file(command.front(), ignored)) {
    command.insert(command.begin(), "python3");
  }
  if (const std::string reason = why_not(command.front()); !reason.empty()) {
    std::cerr << fmt::format("{}: cannot start '{}': {}\n", name, command.front(), reason);
    return std::nullopt;
  }
  return command;
}

}  // namespace

std::optional<std::vector<std::string>> parse_program(bench::CommandLine& app, int argc, char** argv, int& status,
                                                      Folders folders) {
  const auto position = parse_options(app, argc, argv, status);
  return position ? find_program(app.name(), *position, argc, argv, folders) : std::nullopt;
}

std::optional<ProgramLine> parse_program_line(bench::CommandLine& app, const SettingsOptions& settings, int argc,
                                              char** argv, int& status) {
  const auto position = parse_options(app, argc, argv, status);
  if (!position) return std::nullopt;
  const auto effective = settings.apply(app.name());
  if (!effective) return std::nullopt;
  auto command = find_program(app.name(), *position, argc, argv, Folders::refused);
  if (!command) return std::nullopt;
  return ProgramLine{std::move(*command), *effective};
}

std::vector<std::size_t> parse_pes(const std::string& what, const std::string& text, std::size_t least,
                                   std::size_t most) {
  std::vector<std::size_t> pes;
  for (const std::string& part : bench::parse_list(what, text))
    pes.push_back(bench::parse_count(what, part, least, most));
  std::ranges::sort(pes);
  if (std::ranges::adjacent_find(pes) != pes.end())
    throw SettingError(fmt::format("{}: '{}' is not allowed; each number of PEs may occur once", what, text));
  return pes;
}

std::vector<char*> options_first(int argc, char** argv, std::initializer_list<std::string_view> names) {
  std::vector<char*> first(argv, argv + std::min(argc, 1)), rest;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    if (text == "--") {
      rest.insert(rest.end(), argv + i, argv + argc);
      break;
    }
    const bool is_one = std::ranges::find(names, text.substr(0, text.find('='))) != names.end();
    (is_one ? first : rest).push_back(argv[i]);
    if (is_one && text.find('=') == text.npos && i + 1 < argc) first.push_back(argv[++i]);
  }
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

model::Machine parse_machine(const std::string& name) {
  try {
    return model::find_machine(name);
  } catch (const SystemError& error) {
    throw SettingError(error.what());
  }
}

}  // namespace headway::tools
