// SPDX-License-Identifier: BSD-3-Clause
/// `headway cxxflags` and `headway ldflags`: flags of a compiler for this installation, also after it was moved.
#include <fmt/format.h>

#include <filesystem>
#include <headway/base/error.hpp>
#include <iostream>
#include <ranges>
#include <record/command_line.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "commands.hpp"

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

/// A folder of the installation that has `file`. `from_bin`: from the folder of this program.
fs::path folder_with(const char* from_bin, const char* file) {
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path folder = (bin / from_bin).lexically_normal();
  if (fs::exists(folder / file)) return folder;
  throw SystemError(
      fmt::format("{} is not there: this command is no part of an installation; allowed are those of "
                  "`cmake --install` and of the wheel",
                  (folder / file).string()));
}

/// For a shell.
std::string quoted(const std::string& text) {
  if (text.find_first_of(" \t\n'\"\\$`*?[]{}()<>|&;!~#") == text.npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

int cxxflags_command(int argc, char** argv) {
  bench::CommandLine app("Prints the flags that compile a program with this installation.", "headway cxxflags");
  if (const auto ended = app.parse(argc, argv)) return *ended;
  const fs::path folder = folder_with(HEADWAY_INCLUDE_FROM_BIN, "headway/headway.hpp");
  std::cout << fmt::format("-std=c++20 -I{}\n", quoted(folder.string())) << std::flush;
  return 0;
}

int ldflags_command(int argc, char** argv) {
  bool is_static = false;
  bench::CommandLine app(
      "Prints the flags that link a program with this installation: libheadway.so where it is installed, else the "
      "static libraries.",
      "headway ldflags");
  app.add_flag("--static", "the static libraries in any case", [&is_static] { is_static = true; });
  if (const auto ended = app.parse(argc, argv)) return *ended;
  const fs::path folder = folder_with(HEADWAY_LIB_FROM_BIN, "libheadway_base.a");
  const std::string lib = quoted(folder.string());
  if (!is_static && fs::exists(folder / "libheadway.so")) {
    std::cout << fmt::format("-L{0} -Wl,-rpath,{0} -lheadway -pthread\n", lib) << std::flush;
    return 0;
  }
  std::vector<std::string> layers;
  std::istringstream names(HEADWAY_LAYERS);
  for (std::string name; names >> name;) layers.push_back("-lheadway_" + name);
#if defined(HEADWAY_SIM)
  const char* const more = " -lboost_context";
#else
  const char* const more = "";
#endif
  std::cout << fmt::format("-L{} {}{} -pthread\n", lib, fmt::join(layers | std::views::reverse, " "), more)
            << std::flush;
  return 0;
}

}  // namespace headway::tools
