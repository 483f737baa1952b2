// SPDX-License-Identifier: BSD-3-Clause
/// What `headway doctor` says of launchers, and of what programs need that they start.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <headway/base/bytes.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/wire/loader.hpp>

#include "child.hpp"
#include "doctor.hpp"
#include "peers.hpp"
#include "probes.hpp"

namespace headway::tools {
namespace {

using Grade = Finding::Grade;

// A launcher that answers no sooner is as good as none.
constexpr std::chrono::seconds answer_limit(5);
constexpr std::size_t answer_bytes = 4096;

std::string title_of(const std::string& mpi) { return mpi == "openmpi" ? "Open MPI" : "MPICH"; }

bool has_plugin(const std::vector<wire::Plugin>& plugins, const std::string& mpi) {
  return std::ranges::any_of(
      plugins, [&](const wire::Plugin& one) { return !mpi.empty() && one.mpi == mpi && one.problem.empty(); });
}

std::string answer_of(const std::vector<std::string>& command) {
  const ChildResult result = run_child(command, {}, answer_limit, answer_bytes);
  return result.timed_out ? "" : result.output + result.errors;
}

/// The MPI that this mpirun or mpiexec belongs to, or empty.
std::string mpi_of_launcher(const std::string& path) {
  const std::string text = answer_of({path, "--version"});
  if (text.find("Open MPI") != text.npos || text.find("OpenRTE") != text.npos || text.find("PRRTE") != text.npos)
    return "openmpi";
  return text.find("HYDRA") != text.npos || text.find("MPICH") != text.npos ? "mpich" : "";
}

/// mpirun and its like: each needs the plug-in of its MPI, or that of the standard ABI as its MPI has it.
Finding mpiruns(const std::vector<wire::Plugin>& plugins) {
  Finding found{"mpirun", Grade::ok, "", ""};
  bool openmpi = false;
  for (const char* name : {"mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich"}) {
    const std::string path = find_in_path(name);
    if (path.empty()) continue;
    const std::string mpi = mpi_of_launcher(path);
    openmpi |= mpi == "openmpi";
    const bool fits = has_plugin(plugins, mpi);
    found.text +=
        fmt::format("{}{}: {}", found.text.empty() ? "" : "; ", path,
                    mpi.empty() ? "of an MPI that is not known"
                                : title_of(mpi) + (fits ? "'s, with its plug-in" : "'s, without its plug-in"));
    if (fits) continue;
    found.grade = Grade::warning;
    found.cure = mpi.empty()
                     ? fmt::format("start programs with the mpirun of Open MPI or of MPICH, not {}", path)
                     : fmt::format(
                           "{} starts programs once its plug-in is there: install the headers of {} (apt install {}) "
                           "and build again",
                           path, title_of(mpi), mpi == "openmpi" ? "libopenmpi-dev" : "libmpich-dev");
  }
  if (found.text.empty()) {
    found.text = "none; programs start themselves here, or by `headway run`";
  } else if (openmpi && geteuid() == 0 && found.grade == Grade::ok &&
             (std::getenv("OMPI_ALLOW_RUN_AS_ROOT") == nullptr ||
              std::getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") == nullptr)) {
    found.grade = Grade::warning;
    found.text += "; this is root, whom Open MPI's refuses";
    found.cure = "mpirun --allow-run-as-root, or set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
  }
  return found;
}

/// The types of `srun --mpi` by which the processes of each plug-in find each other.
Finding srun(const std::vector<wire::Plugin>& plugins) {
  const std::string path = find_in_path("srun");
  if (path.empty()) return {"srun", Grade::ok, "none", ""};
  const std::string types = answer_of({path, "--mpi=list"});
  if (types.find("error:") != types.npos || types.find("none") == types.npos)
    return {"srun", Grade::ok, path + ": no cluster of Slurm answers it here", ""};
  std::string fitting, missing;
  for (const auto& [mpi, type] : {std::pair("openmpi", "pmix"), std::pair("mpich", "pmi2")}) {
    if (!has_plugin(plugins, mpi)) continue;
    std::string& list = types.find(type) != types.npos ? fitting : missing;
    list += fmt::format("{}srun --mpi={} ({})", list.empty() ? "" : " or ", type, title_of(mpi));
  }
  if (!fitting.empty()) return {"srun", Grade::ok, "starts programs as " + fitting, ""};
  return {
      "srun", Grade::warning, path + ": has no type for the plug-ins that are here",
      missing.empty() ? "build with the headers of Open MPI or of MPICH" : "install Slurm's plug-in for " + missing};
}

/// Containers have 64 MB there, which MPIs and UCX use for messages between processes of a host.
Finding dev_shm(bool has_plugins) {
  struct statvfs status {};
  if (statvfs("/dev/shm", &status) != 0)
    return {"/dev/shm", has_plugins ? Grade::warning : Grade::ok, "not there; Headway itself needs none",
            "MPIs want it: mount -t tmpfs tmpfs /dev/shm"};
  const double bytes = double(status.f_blocks) * double(status.f_frsize);
  Finding found{"/dev/shm", Grade::ok, fmt::format("{:.0f} MiB; Headway itself needs none", bytes / double(1_MiB)), ""};
  if (has_plugins && bytes < double(128_MiB)) {
    found.grade = Grade::warning;
    found.cure =
        "little for an MPI or UCX with many processes on this host, should they end with a bus error: containers: "
        "--shm-size=1g, or mount -o remount,size=1G /dev/shm";
  }
  return found;
}

Finding sharing() {
  const std::string failure = probe_descriptor_of_sibling();
  if (failure.empty()) return {"host's memory", Grade::ok, "processes that a launcher has started can share it", ""};
  return {"host's memory", Grade::warning, failure,
          "programs work, but under a launcher all frames go by the MPI, also within a host: same user for all "
          "processes, and /proc mounted without hidepid"};
}

/// This host's numbers in its networks, and the names that others may know it by.
Finding network() {
  std::string numbers, first;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) == 0) {
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
      if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
      char text[INET_ADDRSTRLEN] = "";
      inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
      if (first.empty()) first = text;
      numbers += fmt::format("{}{} {}", numbers.empty() ? "" : ", ", one->ifa_name, text);
    }
    freeifaddrs(all);
  }
  if (numbers.empty()) return {"network", Grade::ok, "none but the loopback: programs run on this host alone", ""};
  char name[HOST_NAME_MAX + 1] = "";
  gethostname(name, sizeof name - 1);
  addrinfo* answer = nullptr;
  const bool known = getaddrinfo(name, nullptr, nullptr, &answer) == 0;
  if (known) freeaddrinfo(answer);
  Finding found{
      "network", Grade::ok,
      fmt::format("{}; this host is called {}; ssh {}", numbers, name,
                  find_in_path("ssh").empty() ? "not found, `headway run --hosts` needs an --agent" : "found"),
      ""};
  if (!known) {
    found.grade = Grade::warning;
    found.text += "; a name that nobody knows here";
    found.cure = fmt::format("headway run --hosts A,B needs --address {}, or an entry in /etc/hosts everywhere", first);
  }
  return found;
}

}  // namespace

std::vector<Finding> ways_to_start() {
  const std::vector<wire::Plugin> plugins = wire::known_plugins(base::plugin_dir());
  const bool any = std::ranges::any_of(plugins, [](const wire::Plugin& one) { return !one.path.empty(); });
  return {mpiruns(plugins), srun(plugins), network(), dev_shm(any), sharing()};
}

}  // namespace headway::tools
