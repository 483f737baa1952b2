// SPDX-License-Identifier: BSD-3-Clause
/// `headway mpi-report`: starts an unmodified MPI program with a library that counts its calls, and reports.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <headway/base/error.hpp>
#include <iostream>
#include <record/command_line.hpp>

#include "child.hpp"
#include "commands.hpp"
#include "mpi_report_text.hpp"
#include "peers.hpp"
#include "program.hpp"

namespace headway::tools {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::vector<std::string> command;
  std::string json, folder;
  std::size_t ranks_per_host = 0;
};

/// The folder of the rank files: the user's, which stays, or one of ours.
class Folder {
 public:
  explicit Folder(const std::string& given) : path_(given), is_ours_(given.empty()) {
    if (is_ours_) {
      std::string name = (fs::temp_directory_path() / "headway-mpi-report-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) base::throw_errno(fmt::format("mkdtemp '{}'", name).c_str());
      path_ = name;
      return;
    }
    std::error_code error;
    fs::create_directories(path_, error);
    if (error || !fs::is_directory(path_) || ::access(path_.c_str(), W_OK) != 0)
      throw SettingError(fmt::format("--files: '{}' is no folder that can be written", given));
    path_ = fs::canonical(path_);
    for (const auto& entry : fs::directory_iterator(path_))
      if (entry.path().extension() == ".rank")
        throw SettingError(fmt::format("--files: '{}' has rank files of another run; name an empty folder", given));
  }
  ~Folder() {
    std::error_code ignored;
    if (is_ours_) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool is_ours_;
};

fs::path library() {
  const fs::path beside = program_directory();
  for (const fs::path& folder : {beside, beside.parent_path() / "lib", fs::path(HEADWAY_INSTALL_LIBDIR)}) {
    std::error_code ignored;
    if (fs::exists(folder / "libheadway-mpi-report.so", ignored)) return folder / "libheadway-mpi-report.so";
  }
  throw SettingError(fmt::format("libheadway-mpi-report.so is not there: looked in {}, {} and {}", beside.string(),
                                 (beside.parent_path() / "lib").string(), HEADWAY_INSTALL_LIBDIR));
}

pid_t started = 0;

/// The program has this terminal: a signal of its keys reaches it, too. One that only this process gets goes on to it.
void pass_on(int signal) { ::kill(started, signal); }

/// Runs the command with this process's streams, and returns its exit status or 128 + the signal that ended it.
int run_to_end(const std::vector<std::string>& command, const std::vector<Variable>& environment) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::cout << std::flush;
  started = ::fork();
  if (started < 0) base::throw_errno("fork");
  if (started == 0) {
    for (const Variable& variable : environment) ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
    ::execvp(arguments[0], arguments.data());
    std::fprintf(stderr, "headway mpi-report: cannot start '%s': %s\n", arguments[0], std::strerror(errno));
    ::_exit(127);
  }
  struct sigaction pass {
  }, ignore{};
  pass.sa_handler = pass_on;
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGTERM, &pass, nullptr);
  ::sigaction(SIGHUP, &pass, nullptr);
  ::sigaction(SIGINT, &ignore, nullptr);  // the terminal sends it to the program
  int status = 0;
  while (::waitpid(started, &status, 0) < 0) {
    if (errno != EINTR) base::throw_errno("waitpid");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// An MPI of the program for which no library was built; empty: none.
std::string missing_mpi(const fs::path& folder) {
  for (const char* mpi : {"openmpi", "mpich", "mpi-abi"})
    if (fs::exists(folder / (std::string("missing-") + mpi))) return mpi;
  return "";
}

int report(const Request& request) {
  const Folder folder(request.folder);
  std::string preload = library().string();
  if (const char* others = std::getenv("LD_PRELOAD"); others != nullptr && *others != '\0')
    preload += std::string(":") + others;
  const int status = run_to_end(request.command, {{"LD_PRELOAD", preload},
                                                  {"HEADWAY_MPI_REPORT_DIR", folder.path().string()},
                                                  // What mpirun of Open MPI gives to processes of other hosts.
                                                  {"OMPI_MCA_mca_base_env_list", "LD_PRELOAD;HEADWAY_MPI_REPORT_DIR"}});
  if (status == 127) return status;
  const std::vector<MpiWorld> worlds = read_mpi_worlds(folder.path());
  if (worlds.empty()) {
    const std::string missing = missing_mpi(folder.path());
    std::cerr << (missing.empty()
                      ? fmt::format("headway mpi-report: '{}' called no MPI function; a program that links its MPI "
                                    "statically, or loads it later, cannot be counted\n",
                                    fmt::join(request.command, " "))
                      : fmt::format("headway mpi-report: the program uses {0}, and libheadway-mpi-report-{0}.so was "
                                    "not built: build Headway where the headers of that MPI are\n",
                                    missing));
    return status != 0 ? status : 1;
  }
  std::vector<bench::Json> records;
  for (const MpiWorld& world : worlds) {
    const MpiTotals totals = totals_of(world);
    const std::vector<MpiPattern> patterns = patterns_of(world, totals, request.ranks_per_host);
    if (request.json != "-") std::cout << "\n" << to_text(totals, patterns) << std::flush;
    records.push_back(to_json(world, totals, patterns));
  }
  if (!request.json.empty()) bench::write_json(request.json, bench::result_file(request.command, records));
  return status;
}

}  // namespace

int mpi_report_command(int argc, char** argv) {
  bench::CommandLine app(
      "Starts an unmodified MPI program and reports its MPI calls, messages and patterns, and what Headway would "
      "change. The program may use Open MPI, MPICH or an MPI of the standard ABI.",
      "headway mpi-report");
  describe_program(app, "mpirun, srun or another launcher", "its arguments, the MPI program and the program's");
  Request request;
  app.add_json(request.json);
  app.add_text("--files", "DIR", "keeps the counts of each rank here; for several hosts a folder that all share",
               request.folder);
  app.add_count("--ranks-per-host", "K", "computes expected messages for hosts of K ranks each [as in this run]",
                request.ranks_per_host, 1, 1'000'000);
  int status = 0;
  auto command = parse_program(app, argc, argv, status);
  if (!command) return status;
  request.command = std::move(*command);
  try {
    bench::require_writable("--json", request.json);
    return report(request);
  } catch (const SettingError& error) {
    std::cerr << fmt::format("headway mpi-report: {}\n", error.what());
    return exit_status::unusable_arguments;
  }
}

}  // namespace headway::tools
