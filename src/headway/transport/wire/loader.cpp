// SPDX-License-Identifier: BSD-3-Clause
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/wire/loader.hpp>
#include <headway/transport/wire/meeting.hpp>
#include <memory>

/// Entry of a plug-in that is linked into the program, for simulators (cmake/HeadwaySmpi.cmake).
extern "C" [[gnu::weak]] const headway_wire_functions* headway_wire_plugin();

namespace headway::wire {
namespace {

namespace fs = std::filesystem;

/// The plug-in for any MPI with the standard ABI of MPI 5.0.
const char* const mpi_abi = "mpi-abi";
const char* const mpi_abi_library = "libmpi_abi.so.1";

const char* const known_names[] = {"openmpi", "mpich", mpi_abi, "ucx"};

std::string file_of(const std::string& name) { return "libheadway-" + name + ".so"; }

/// The name for users.
std::string title_of(const std::string& name) {
  return name == "openmpi" ? "Open MPI"
         : name == "mpich" ? "MPICH"
         : name == mpi_abi ? "an MPI of the standard ABI"
         : name == "ucx"   ? "UCX"
                           : name;
}

/// Folders with plug-ins, in the order of the search.
std::vector<fs::path> folders(const std::string& first_dir) {
  std::vector<fs::path> all;
  if (!first_dir.empty()) all.emplace_back(first_dir);
  std::error_code error;
  if (const fs::path program = fs::read_symlink("/proc/self/exe", error); !error) {
    all.push_back(program.parent_path());
    all.push_back(program.parent_path().parent_path() / "lib");
  }
  all.emplace_back(HEADWAY_INSTALL_LIBDIR);
  return all;
}

std::string find(const std::string& name, const std::string& first_dir) {
  std::error_code error;
  for (const fs::path& folder : folders(first_dir)) {
    if (fs::exists(folder / file_of(name), error)) return folder / file_of(name);
  }
  return "";
}

/// The MPI with that version text; empty if it is neither Open MPI nor an MPICH.
std::string mpi_of_library(const std::string& text) {
  if (text.find("Open MPI") != text.npos) return "openmpi";
  const bool mpich =
      text.find("MPICH") != text.npos || text.find("MVAPICH") != text.npos || text.find("Intel") != text.npos;
  return mpich ? "mpich" : "";
}

/// The version text of the MPI in this process, also before it is initialised.
std::string library_in_process() {
  using GetVersion = int (*)(char*, int*);
  void* const symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  std::string text(8192, '\0');  // longer than MPI_MAX_LIBRARY_VERSION_STRING of any
  int length = 0;
  if (symbol != nullptr) reinterpret_cast<GetVersion>(symbol)(text.data(), &length);
  text.resize(std::size_t(std::max(length, 0)));
  return text;
}

/// The MPI that this process has linked or loaded; empty: none.
std::string mpi_in_process() {
  // The version text is the same for the standard ABI and for the MPI's own, which has other constants.
  if (dlopen(mpi_abi_library, RTLD_LAZY | RTLD_NOLOAD) != nullptr) return mpi_abi;
  if (dlsym(RTLD_DEFAULT, "MPI_Init") == nullptr) return "";
  const std::string mpi = mpi_of_library(library_in_process());
  return mpi.empty() ? "another" : mpi;
}

/// Names of plug-ins that may fit, the likeliest first.
std::vector<std::string> candidates(const std::string& transport, const std::optional<base::Launcher>& launcher) {
  if (transport == "ucx") return {transport};
  if (const std::string here = mpi_in_process(); !here.empty()) {
    if (here == "another" || (transport != "mpi" && transport != here)) {
      throw SettingError(fmt::format(
          "this program has an MPI of its own, {}, and only the plug-in for that will do, not HEADWAY_TRANSPORT={}",
          here == "another" ? "which is neither Open MPI nor MPICH, nor has the standard ABI" : title_of(here),
          transport));
    }
    return {here};
  }
  if (transport != "mpi") return {transport};
  if (launcher && !launcher->mpi.empty()) return {launcher->mpi, mpi_abi};
  if (launcher && !launcher->pmix) return {"mpich", "openmpi", mpi_abi};  // PMI-1 and 2
  return {"openmpi", "mpich", mpi_abi};
}

const headway_wire_functions* load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW);
  if (library == nullptr) {
    const std::string problem = dlerror();
    const bool is_missing = problem.find("cannot open shared object file") != problem.npos;
    throw SettingError(fmt::format("the plug-in cannot be loaded: {}{}", problem,
                                   is_missing ? "; name the folder of that library in LD_LIBRARY_PATH" : ""));
  }
  const auto entry = reinterpret_cast<headway_wire_entry>(dlsym(library, HEADWAY_WIRE_ENTRY));
  const headway_wire_functions* const functions = entry == nullptr ? nullptr : entry();
  if (functions == nullptr || functions->version != HEADWAY_WIRE_VERSION ||
      functions->bytes < sizeof(headway_wire_functions)) {
    throw SettingError(fmt::format(
        "{} is no plug-in of this version of Headway: {}", path,
        functions == nullptr
            ? std::string("it has no entry " HEADWAY_WIRE_ENTRY)
            : fmt::format("its version is {} and its size {}; expected are {} and {} or more", functions->version,
                          functions->bytes, HEADWAY_WIRE_VERSION, sizeof(headway_wire_functions))));
  }
  // Open MPI loads modules that need its symbols in the global scope. The plug-in for UCX stays out of that scope:
  // UCX's symbols would hide those that the plug-in for an MPI replaces (mpich_finalize.cpp).
  if (functions->needs_meeting == 0) dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  return functions;
}

[[noreturn]] void refuse_missing(const std::vector<std::string>& names, const std::optional<base::Launcher>& launcher,
                                 const std::string& first_dir) {
  std::vector<std::string> places, files;
  for (const fs::path& folder : folders(first_dir)) places.push_back(folder.lexically_normal());
  for (const std::string& n : names) files.push_back(file_of(n));
  throw SettingError(fmt::format(
      "{}the plug-in {} is not there: looked in {}; build Headway where the headers of {} are, or, for runs that know "
      "nothing of each other, set HEADWAY_TRANSPORT=local",
      launcher ? fmt::format("{} has started this program {} ({}={}), and ", launcher->name,
                             base::counted(launcher->size, "time"), launcher->variable, launcher->size)
               : "",
      fmt::join(files, " or "), fmt::join(places, ", "), title_of(names.front())));
}

/// Options of srun that let the processes find each other: for the installed plug-ins among `names`, else for all.
std::string fitting_srun(const std::vector<std::string>& names, const std::string& first_dir) {
  std::vector<std::string> here, all;
  const auto is_named = [&](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  for (const std::string name : {"openmpi", "mpich"}) {
    if (!is_named(name) && !is_named(mpi_abi)) continue;
    const std::string command = fmt::format("srun --mpi={} ({})", name == "openmpi" ? "pmix" : "pmi2", title_of(name));
    all.push_back(command);
    if (is_named(name) && !find(name, first_dir).empty()) here.push_back(command);
  }
  return fmt::format("{}", fmt::join(here.empty() ? all : here, " or "));
}

/// Without --mpi, srun may start processes that cannot find each other; Open MPI would end each with a page of text.
void require_that_srun_introduces(const base::Launcher& launcher, const std::vector<std::string>& names,
                                  const std::string& first_dir) {
  const bool has_pmi = launcher.variable != "SLURM_STEP_NUM_TASKS";  // srun sets PMI_SIZE with --mpi=pmi2
  if (!launcher.mpi.empty() || has_pmi || launcher.pmix) return;
  throw SettingError(
      fmt::format("{} has started this program {} ({}={}) so that each is alone: start it with {}, or, for runs "
                  "that know nothing of each other, set HEADWAY_TRANSPORT=local",
                  launcher.name, base::counted(launcher.size, "time"), launcher.variable, launcher.size,
                  fitting_srun(names, first_dir)));
}

std::string cure_for_another_mpi(const base::Launcher& launcher, const std::string& mpi) {
  return fmt::format("start it with the mpirun of {}, or let it use {} (HEADWAY_TRANSPORT, lib{})", title_of(mpi),
                     title_of(launcher.mpi), "headway-" + launcher.mpi + ".so");
}

/// Refuses an MPI with the standard ABI that is not the launcher's: it may crash when it starts. Known only after
/// loading.
void require_the_launchers_abi(const base::Launcher& launcher) {
  const std::string mpi = mpi_of_library(library_in_process());
  if (launcher.mpi.empty() || mpi.empty() || mpi == launcher.mpi) return;
  throw SettingError(fmt::format("{} has started this program {} ({}={}), but {} is that of {} here: {}", launcher.name,
                                 base::counted(launcher.size, "time"), launcher.variable, launcher.size,
                                 mpi_abi_library, title_of(mpi), cure_for_another_mpi(launcher, mpi)));
}

/// Refuses processes of one launcher that do not find each other: the most common mistake.
void require_the_launchers_processes(const Started& started, const base::Launcher& launcher,
                                     const std::string& first_dir) {
  if (started.facts.processes == launcher.size) return;
  const std::string name = started.functions->name;
  const std::string owner = name == mpi_abi ? mpi_of_library(started.facts.library) : "";
  const std::string mpi = owner.empty() ? name : owner;
  std::string cure;
  if (launcher.mpi.empty()) {
    cure = fmt::format("start it with {}", fitting_srun({mpi}, first_dir));
  } else if (launcher.mpi == mpi) {
    cure = fmt::format("its mpirun and this library ({}) do not fit each other", started.facts.library);
  } else {
    cure = cure_for_another_mpi(launcher, mpi);
  }
  throw SettingError(
      fmt::format("{} has started this program {} ({}={}), but in {} each is {}: {}", launcher.name,
                  base::counted(launcher.size, "time"), launcher.variable, launcher.size, title_of(mpi),
                  started.facts.processes == 1 ? "alone" : fmt::format("one of {}", started.facts.processes), cure));
}

}  // namespace

std::vector<Plugin> known_plugins(const std::string& first_dir) {
  std::vector<Plugin> plugins;
  for (const std::string name : known_names) {
    Plugin plugin{.name = name, .mpi = {}, .path = find(name, first_dir), .problem = {}};
    if (!plugin.path.empty()) {
      int ends[2];
      if (pipe(ends) != 0) base::throw_errno("pipe");
      const pid_t child = fork();
      if (child == 0) {
        std::string answer;
        try {
          load(plugin.path);
          answer = mpi_of_library(library_in_process()) + "\n";
        } catch (const SettingError& error) {
          answer = std::string("\n") + error.what();
        }
        _exit(write(ends[1], answer.data(), answer.size()) < 0);
      }
      close(ends[1]);
      char buffer[1024];
      std::string answer;
      for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) answer.append(buffer, std::size_t(got));
      close(ends[0]);
      const std::size_t end = std::min(answer.find('\n'), answer.size());
      plugin.mpi = answer.substr(0, end);
      plugin.problem = answer.substr(std::min(end + 1, answer.size()));
      int status = 0;
      if (child > 0) waitpid(child, &status, 0);
      if (child < 0 || status != 0) plugin.problem += "loading it failed";
    }
    plugins.push_back(std::move(plugin));
  }
  return plugins;
}

bool has_plugin(const std::string& transport, const std::optional<base::Launcher>& launcher,
                const std::string& first_dir) {
  if (launcher && launcher->simulated) return true;
  return std::ranges::any_of(candidates(transport, launcher),
                             [&](const std::string& name) { return !find(name, first_dir).empty(); });
}

namespace {

/// The meeting of processes that `headway run` has started.
headway_wire_meeting meeting_of(Meeting& meeting) {
  return {.processes = meeting.processes(),
          .process = meeting.process(),
          .context = &meeting,
          .exchange = [](void* context, const void* mine, std::size_t bytes,
                         void* all) { return static_cast<Meeting*>(context)->exchange(mine, bytes, all) ? 0 : -1; },
          .abort = [](void* context, int status) { static_cast<Meeting*>(context)->abort(status); }};
}

/// The meeting of processes of another launcher: over the wire of its MPI, which stays started for that.
headway_wire_meeting meeting_of(Started& other) {
  return {.processes = other.facts.processes,
          .process = other.facts.process,
          .context = &other,
          .exchange =
              [](void* context, const void* mine, std::size_t bytes, void* all) {
                const auto& wire = *static_cast<Started*>(context);
                return wire.functions->exchange(wire.wire, mine, bytes, all);
              },
          .abort =
              [](void* context, int status) {
                const auto& wire = *static_cast<Started*>(context);
                wire.functions->abort(wire.wire, status);
              }};
}

void start_with(Started& started, const std::string& name, const headway_wire_meeting* meeting) {
  char reason[512] = "";
  if (started.functions->start(meeting, &started.wire, &started.facts, reason, sizeof reason) != 0) {
    throw SettingError(fmt::format("{} cannot be started: {}", title_of(name), reason));
  }
}

}  // namespace

Started start(const std::string& transport, const std::optional<base::Launcher>& launcher,
              const std::string& first_dir) {
  if (launcher && launcher->simulated && headway_wire_plugin != nullptr) {
    Started started{.functions = headway_wire_plugin()};
    start_with(started, started.functions->name, nullptr);
    return started;
  }
  const std::vector<std::string> names = candidates(transport, launcher);
  const auto name = std::ranges::find_if(names, [&](const std::string& n) { return !find(n, first_dir).empty(); });
  if (name == names.end()) refuse_missing(names, launcher, first_dir);
  if (launcher && transport != "ucx") require_that_srun_introduces(*launcher, names, first_dir);
  const bool chosen_for_launcher = launcher && transport == "mpi" && mpi_in_process().empty();
  Started started{.functions = load(find(*name, first_dir))};
  if (chosen_for_launcher && *name == mpi_abi) require_the_launchers_abi(*launcher);
  if (started.functions->needs_meeting == 0) {
    start_with(started, *name, nullptr);
  } else if (const std::string invitation = base::meeting(); !invitation.empty()) {
    started.meeting = std::make_shared<Meeting>(Invitation::parse(invitation));
    const headway_wire_meeting meeting = meeting_of(*started.meeting);
    start_with(started, *name, &meeting);
  } else {
    started.below = std::make_shared<Started>(start("mpi", launcher, first_dir));
    const headway_wire_meeting meeting = meeting_of(*started.below);
    start_with(started, *name, &meeting);
  }
  if (launcher) require_the_launchers_processes(started, *launcher, first_dir);
  return started;
}

}  // namespace headway::wire
