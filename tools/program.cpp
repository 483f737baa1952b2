#include "program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace headway::tools {
namespace {

bool is_executable_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

int program_position(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--") return i + 1;
    if (argument.size() < 2 || argument[0] != '-') return i;
    const CLI::Option* option = app.get_option_no_throw(argument);
    if (option != nullptr && option->get_type_size() > 0) ++i;
  }
  return argc;
}

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

}  // namespace headway::tools
