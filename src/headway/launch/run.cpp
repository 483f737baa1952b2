// SPDX-License-Identifier: BSD-3-Clause
#include <dirent.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/base/error.hpp>
#include <headway/base/given_settings.hpp>
#include <headway/base/settings.hpp>
#include <headway/launch/attach.hpp>
#include <headway/launch/hosts_run.hpp>
#include <headway/launch/identity.hpp>
#include <headway/launch/launch.hpp>
#include <headway/launch/launched_run.hpp>
#include <headway/launch/lone_run.hpp>
#include <headway/launch/process_run.hpp>
#include <headway/launch/run.hpp>
#include <headway/launch/start.hpp>
#include <headway/launch/supervisor.hpp>
#include <iostream>
#include <optional>
#include <thread>

namespace headway::launch {
namespace {

void print_message(const std::string& text) { fmt::print(stderr, "headway: {}\n", text); }

void flush_output() {
  std::cout.flush();
  std::fflush(nullptr);
}

std::size_t threads_of_this_process() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return 1;
  std::size_t threads = 0;
  while (const dirent* entry = readdir(tasks)) threads += entry->d_name[0] != '.';
  closedir(tasks);
  return threads;
}

void make_output_line_buffered() {
  if (isatty(STDOUT_FILENO) == 0) std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

int run_as_part(const std::string& attach, const std::function<int(Pe&)>& body) {
  make_output_line_buffered();
  const int status = ProcessRun(Attachment::parse(attach), body).run();
  flush_output();
  return status;
}

/// Whether a launcher has started this process alone, and there is no plug-in. The process then runs as without a
/// launcher.
bool is_alone(const base::Settings& settings) {
  return settings.launcher && settings.launcher->size == 1 && !settings.transport_given &&
         !wire::has_plugin(settings.transport, settings.launcher, settings.plugin_dir);
}

/// All processes of a launcher have this error, and the first one prints it. When a process ends, mpirun kills the
/// others a second later, and mpirun of Open MPI drops their later output. So the others wait until the first process
/// has printed and ended. If MPI is not initialised, the launcher may let them live: they then print the error, too.
void print_message_once(const std::optional<base::Launcher>& launcher, const std::string& text) {
  const bool is_first = !launcher || launcher->rank == 0;
  if (is_first) print_message(text);
  if (!launcher || launcher->mpi.empty() || launcher->simulated) return;
  const bool have_met = mpi_flag("MPI_Initialized");
  if (!is_first) {
    std::this_thread::sleep_for(std::chrono::seconds(have_met ? 1 : 3));
    if (!have_met) print_message(fmt::format("process {} of {}: {}", launcher->rank, launcher->size, text));
  }
  if (!have_met) launcher->end_others(exit_status::unusable_settings);
}

int run_launched(const base::Settings& settings, const std::function<int(Pe&)>& body) {
  make_output_line_buffered();
  try {
    const int status = LaunchedRun(settings, body).run();
    flush_output();
    return status;
  } catch (const std::exception& error) {
    print_message_once(settings.launcher, error.what());
    return exit_status::unusable_settings;
  }
}

/// One process that `run_by_meeting` has forked.
int run_invited(const std::function<int(Pe&)>& body) noexcept {
  try {
    return run_launched(base::Settings::from_environment(), body);
  } catch (const std::exception& error) {
    print_message(error.what());
    return exit_status::unusable_settings;
  }
}

void require_that_fork_is_safe(const std::string& program) {
  const char* obstacle = nullptr;
  if (threads_of_this_process() > 1) obstacle = "other threads run already";
  if (mpi_flag("MPI_Initialized")) obstacle = "MPI is initialised already";
  if (obstacle == nullptr) return;
  throw SettingError(
      fmt::format("{} starts its processes by fork, which is not safe here: {}; start it with "
                  "`headway run {}` instead",
                  program, obstacle, program));
}

/// The descriptors of this process from `headway run`, or empty.
const std::string& launch_descriptor() {
  static const std::string launched = base::take_launch_descriptor();
  return launched;
}

const std::function<int(Pe&)> no_body;

}  // namespace

bool mpi_flag(const char* call) {
  using Flag = int (*)(int*);
  void* symbol = dlsym(RTLD_DEFAULT, call);
  if (symbol == nullptr) return false;
  int flag = 0;
  reinterpret_cast<Flag>(symbol)(&flag);
  return flag != 0;
}

std::unique_ptr<ProcessPes> join_run() {
  base::Settings settings = base::Settings::from_environment();
  if (settings.simulated()) {
    throw SettingError(
        "HEADWAY_TRANSPORT=sim: all its PEs are in one process, and attach() makes one PE of each process: allowed is "
        "local, ucx or the name of an MPI");
  }
  if (settings.pes_per_process > 1) {
    throw SettingError(
        fmt::format("HEADWAY_PES_PER_PROCESS={}: allowed is 1 in a program that calls attach(), which makes one PE of "
                    "each process",
                    settings.pes_per_process));
  }
  if (!launch_descriptor().empty())
    return std::make_unique<ProcessRun>(Attachment::parse(launch_descriptor()), no_body);
  if (settings.on_wire() && is_alone(settings)) settings = base::Settings::from_environment(base::Launchers::ignored);
  if (settings.on_wire() && !settings.starts_wire()) return std::make_unique<LaunchedRun>(settings, no_body);
  const bool pes_given = std::ranges::any_of(base::given_settings(),
                                             [](const std::string& one) { return one.starts_with("HEADWAY_PES="); });
  if (settings.starts_wire() || (pes_given && settings.pes > 1)) {
    throw SettingError(fmt::format("{}: attach() starts no processes: start it with `headway run{} -n {} {}` instead",
                                   settings.starts_wire() ? "HEADWAY_TRANSPORT=ucx without a launcher"
                                                          : fmt::format("HEADWAY_PES={}", settings.pes),
                                   settings.starts_wire() ? " --transport ucx" : "", pes_given ? settings.pes : 2,
                                   program_path()));
  }
  return std::make_unique<LoneRun>(settings, no_body);
}

int run(int argc, char** argv, const std::function<int(Pe&)>& body) {
  const std::string& launched = launch_descriptor();
  try {
    if (ProcessRun::inside()) {
      throw SettingError(
          attached() != nullptr
              ? "run() between attach() and detach(): this process is in a run already"
              : "run() inside run(): this process is in a run already; call run() after that has returned");
    }
    if (!launched.empty()) return run_as_part(launched, body);
    base::Settings settings = base::Settings::from_environment();
    if (settings.on_wire() && is_alone(settings)) settings = base::Settings::from_environment(base::Launchers::ignored);
    if (settings.on_wire() && !settings.starts_wire()) return run_launched(settings, body);
    require_that_fork_is_safe(argc > 0 && argv != nullptr && argv[0] != nullptr ? argv[0] : "PROGRAM");
    if (settings.starts_wire()) return run_by_meeting(settings, [&] { return run_invited(body); });
    Supervisor supervisor(settings);
    return supervisor.run(
        [&](std::size_t, const std::string& attach) -> Supervisor::StartFailure { _exit(run_as_part(attach, body)); });
  } catch (const std::exception& error) {  // a setting or the system, before any PE existed
    print_message(error.what());
    return exit_status::unusable_settings;
  }
}

int launch_processes(const LaunchOptions& options, const std::vector<std::string>& command) {
  const base::Settings settings = base::Settings::from_environment();
  if (settings.starts_wire()) {
    if (options.debug_pe >= 0)
      throw SettingError(
          fmt::format("--debug: not allowed with HEADWAY_TRANSPORT={}; allowed is local", settings.transport));
    return run_over_hosts(settings, options, command);
  }
  if (!options.hosts.empty()) {
    throw SettingError(fmt::format("HEADWAY_TRANSPORT={}: allowed is ucx with --hosts", settings.transport));
  }
  if (settings.on_wire()) {
    throw SettingError(
        fmt::format("HEADWAY_TRANSPORT={}: allowed is local or sim here: processes that use MPI are started "
                    "by its launcher, mpirun -n {} {}",
                    settings.transport, settings.processes(), command.empty() ? "PROGRAM" : command[0]));
  }
  if (options.debug_pe >= 0 && std::size_t(options.debug_pe) >= settings.pes) {
    throw SettingError(fmt::format("--debug {}: this run has PEs 0 to {}", options.debug_pe, settings.pes - 1));
  }
  base::Settings effective = settings;
  int on_terminal = -1;
  if (options.debug_pe >= 0) {
    on_terminal = options.debug_pe / int(settings.pes_per_process);
    effective.stall = {};
  }
  Supervisor supervisor(effective);
  return supervisor.run(
      [&](std::size_t process, const std::string& attach) -> Supervisor::StartFailure {
        setenv(base::launch_variable, attach.c_str(), 1);
        std::vector<std::string> words = command;
        if (int(process) == on_terminal) words.insert(words.begin(), {"gdb", "-q", "--args"});
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        execvp(arguments[0], arguments.data());
        const int error = errno;
        return {fmt::format("cannot start {}: {}", words[0], std::strerror(error)), error == ENOENT ? 127 : 126};
      },
      on_terminal);
}

}  // namespace headway::launch
