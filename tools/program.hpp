/// The program that a command starts: the first of its arguments that is no option.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace headway::tools {

/// Where PROGRAM is among the arguments: the first that is neither an option nor an option's value; argc without one.
int program_position(const CLI::App& app, int argc, char** argv);

/// Why `program` cannot be started, or empty.
std::string why_not(const std::string& program);

}  // namespace headway::tools
