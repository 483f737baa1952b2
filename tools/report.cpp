// SPDX-License-Identifier: BSD-3-Clause
/// `headway report`: starts the Python package headway_report, which lies beside the sources or in the installation.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <headway/base/error.hpp>
#include <iostream>
#include <string>
#include <vector>

#include "commands.hpp"

namespace headway::tools {
namespace {

/// The package of an installation lies where this program is; in a build it is that of the sources.
std::string folder_of_package() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::array<std::filesystem::path, 2> places = {self.parent_path() / HEADWAY_PYTHON_FROM_BIN,
                                                       HEADWAY_PYTHON_SOURCE};
  for (const auto& place : places) {
    if (std::filesystem::exists(place / "headway_report" / "__main__.py", error))
      return (place / "headway_report").lexically_normal().string();
  }
  throw SystemError(fmt::format("the Python package headway_report is neither in {} nor in {}: install Headway again",
                                places[0].lexically_normal().string(), places[1].string()));
}

}  // namespace

int report_command(int argc, char** argv) {
  std::string interpreter = "python3", package = folder_of_package();
  std::vector<char*> arguments = {interpreter.data(), package.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  arguments.push_back(nullptr);
  std::cout << std::flush;
  ::execvp(interpreter.c_str(), arguments.data());
  if (errno == ENOENT) {
    std::cerr << "headway report: python3 is missing: install python3 and python3-jinja2\n";
  } else {
    std::cerr << fmt::format("headway report: python3 cannot be started: {}\n", std::strerror(errno));
  }
  return exit_status::unusable_arguments;
}

}  // namespace headway::tools
