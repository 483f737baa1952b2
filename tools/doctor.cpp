// SPDX-License-Identifier: BSD-3-Clause
/// `headway doctor`: the features of this machine, its problems, and their cures.
#include "doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/wire/loader.hpp>
#include <iostream>
#include <iterator>
#include <record/command_line.hpp>
#include <string_view>

#include "commands.hpp"
#include "peers.hpp"
#include "probe_cache.hpp"
#include "probes.hpp"

namespace headway::tools {
namespace {

using Grade = Finding::Grade;

/// 24684092 KiB as "23.5 GiB".
std::string about(std::uint64_t bytes) {
  return bytes >= 1_GiB ? fmt::format("{:.1f} GiB", double(bytes) / double(1_GiB))
                        : fmt::format("{:.0f} MiB", double(bytes) / double(1_MiB));
}

Finding cores() {
  const std::size_t online = base::processors_online(), allowed = base::allowed_processors().size(),
                    available = base::available_cores();
  const double limit = base::cgroup_cpu_limit();
  Finding found{"cores", Grade::ok, fmt::format("{} available of {} online", available, online), ""};
  if (limit > 0) found.text += fmt::format("; the cgroup allows {:.2f} CPUs' worth of time", limit);
  if (limit > 0 && limit < double(allowed)) {
    found.grade = Grade::warning;
    found.cure = fmt::format(
        "raise cpu.max of the cgroup (containers: --cpus={}); until then the kernel stops all PEs for part of each "
        "period",
        allowed);
  } else if (allowed < online) {
    found.grade = Grade::warning;
    found.cure =
        "the affinity mask leaves cores out: start without taskset, or with more CPUs in the job or container "
        "(--cpuset-cpus)";
  }
  return found;
}

Finding load() {
  const double running = load_average();
  Finding found{"load", Grade::ok, fmt::format("{:.1f} processes ran on average in the last minute", running), ""};
  if (running > 0.5 * double(base::available_cores())) {
    found.grade = Grade::warning;
    found.cure = "other work runs here: measurements are disturbed, wait for it to end";
  }
  return found;
}

Finding clock_speed() {
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (governor.empty()) return {"clock speed", Grade::ok, "not set by this system (virtual machine or firmware)", ""};
  Finding found{"clock speed", Grade::ok, "governor " + governor, ""};
  if (governor == "powersave" && first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver") != "intel_pstate") {
    found.grade = Grade::warning;
    found.cure = "cores run slowly: cpupower frequency-set -g performance";
  }
  return found;
}

Finding caches() {
  const base::CacheSizes sizes = base::cache_sizes();
  if (sizes.own == 0 || sizes.share == 0) return {"caches", Grade::ok, "not told by this system", ""};
  return {"caches", Grade::ok,
          fmt::format("{} a core, and {} as a core's share of the last level", about(sizes.own), about(sizes.share)),
          ""};
}

Finding memory() {
  Finding found{"memory", Grade::ok, about(base::available_memory_bytes()), ""};
  if (const std::uint64_t limit = base::cgroup_memory_limit_bytes(); limit > 0)
    found.text += fmt::format("; the cgroup's limit is {}", about(limit));
  if (base::available_memory_bytes() < 512_MiB) {
    found.grade = Grade::warning;
    found.cure = "little memory: raise memory.max of the cgroup (containers: --memory), or lower HEADWAY_BUDGET";
  }
  return found;
}

Finding settings() {
  try {
    const base::Settings s = base::Settings::from_environment();
    Finding found{"PEs", Grade::ok,
                  fmt::format("{} in {} by default; budget {} and spill cap {} a PE, {} in all", s.pes,
                              base::counted(s.processes(), "process"), about(s.budget_bytes), about(s.spill_bytes),
                              about(s.pes * (s.budget_bytes + s.spill_bytes))),
                  ""};
    if (s.pes > base::available_cores()) {
      found.grade = Grade::warning;
      found.text += fmt::format("; oversubscribed, {} on {}", base::counted(s.pes, "PE"),
                                base::counted(base::available_cores(), "core"));
      found.cure = fmt::format("works, slower: set HEADWAY_PES to {} or fewer", base::available_cores());
    } else if (s.pes * s.budget_bytes > base::available_memory_bytes() / 2) {
      found.grade = Grade::warning;
      found.cure = "budgets take more than half of the memory: lower HEADWAY_BUDGET";
    }
    return found;
  } catch (const SettingError& error) {
    return {"PEs", Grade::error, error.what(), "correct or unset that variable: every program is refused with it"};
  }
}

Finding aggregation() {
  Finding found{"aggregation", Grade::ok, "options that programs do not give are derived", ""};
  try {
    const base::AggregationSettings s = base::AggregationSettings::from_environment();
    std::string set;
    auto add = [&](const char* name, bool given) {
      if (given) set += fmt::format("{}{}", set.empty() ? "" : ", ", name);
    };
    add("HEADWAY_BUFFER_BYTES", s.buffer_bytes.has_value());
    add("HEADWAY_TOPOLOGY", s.topology.has_value());
    add("HEADWAY_THRESHOLD", s.threshold.has_value());
    add("HEADWAY_CUTOFF", s.cutoff.has_value());
    add("HEADWAY_TIMEOUT", s.timeout.has_value());
    if (!set.empty()) found.text += "; but for " + set;
  } catch (const SettingError&) {  // said above
    found.text = "not known";
  }
  return found;
}

Finding shared_memory() {
  const std::string failure = probe_shared_memory();
  if (failure.empty()) return {"shared memory", Grade::ok, "memfd works between processes", ""};
  return {"shared memory", Grade::error, failure,
          "programs need memfd_create: Linux 3.17 or later, and a seccomp profile that allows it (containers: "
          "--security-opt seccomp=FILE)"};
}

Finding process_watch() {
  const std::string failure = probe_pidfd();
  if (failure.empty()) return {"process watch", Grade::ok, "pidfd_open works", ""};
  return {"process watch", Grade::error, failure,
          "needs Linux 5.3 or later, and a seccomp profile that allows pidfd_open"};
}

Finding cross_memory() {
  const std::string failure = probe_cross_memory_attach();
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  const std::string yama = scope.empty() ? "no yama" : "yama ptrace_scope " + scope;
  if (failure.empty()) return {"CMA", Grade::ok, "process_vm_readv works between sibling processes; " + yama, ""};
  return {"CMA", Grade::warning, fmt::format("{}; {}", failure, yama),
          "large transfers go through shared frames instead: sysctl kernel.yama.ptrace_scope=0, containers: --cap-add "
          "SYS_PTRACE"};
}

Finding open_files() {
  const std::uint64_t limit = open_files_limit();
  Finding found{"open files", Grade::ok, fmt::format("{} allowed", limit), ""};
  if (limit < 1024) {
    found.grade = Grade::warning;
    found.cure = "many PEs as processes need some each: ulimit -n 4096";
  }
  return found;
}

/// The one of these that is in brackets.
std::string chosen(const std::string& all) {
  const std::size_t begin = all.find('['), end = all.find(']');
  return begin < end && end != all.npos ? all.substr(begin + 1, end - begin - 1) : "not known to this kernel";
}

Finding huge_pages() {
  const std::string enabled = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::string shared = chosen(first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled"));
  const bool shared_may = shared == "always" || shared == "within_size" || shared == "advise" || shared == "force";
  const std::string reserved = first_line("/proc/sys/vm/nr_hugepages");
  Finding found{
      "huge pages", Grade::ok,
      fmt::format("{}; for shared memory: {} ({}){}", enabled.empty() ? "not known to this kernel" : enabled,
                  shared_may ? "yes" : "no", shared,
                  reserved.empty() || reserved == "0" ? "" : "; " + reserved + " reserved, which are not used"),
      ""};
  if (enabled.find("[never]") != std::string::npos) {
    found.grade = Grade::warning;
    found.cure = "large tables miss the TLB: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
  }
  return found;
}

Finding mpis() {
  std::string text;
  std::string cure;
  const auto peers = find_peers();
  for (const std::string mpi : {"openmpi", "mpich"}) {
    const std::string compiler = find_in_path("mpicxx." + mpi), launcher = find_launcher(mpi);
    const bool built = std::ranges::find(peers, mpi, &Peer::mpi) != peers.end();
    if (compiler.empty() && !built) continue;
    text += fmt::format("{}{}: compiler {}, launcher {}, peer {}", text.empty() ? "" : "; ", mpi,
                        compiler.empty() ? "not found" : compiler, launcher.empty() ? "not found" : launcher,
                        built ? "built" : "not built");
    if (built && launcher.empty())
      cure = "a peer needs its launcher: apt install " + std::string(mpi == "openmpi" ? "openmpi-bin" : "mpich");
    if (!built && !compiler.empty()) cure = "build again: the peer of " + mpi + " is missing";
  }
  if (text.empty() && !find_in_path("mpicxx").empty()) text = "mpicxx: " + find_in_path("mpicxx");
  if (text.empty())
    text = "none; none is needed, peers of the benchmarks use one (Debian: apt install libopenmpi-dev openmpi-bin)";
  return {"MPI", cure.empty() ? Grade::ok : Grade::warning, text, cure};
}

Finding plugins() {
  Finding found{"plug-ins", Grade::ok, "", ""};
  for (const wire::Plugin& plugin : wire::known_plugins(base::plugin_dir())) {
    if (plugin.path.empty()) continue;
    found.text += fmt::format("{}{} ({}{})", found.text.empty() ? "" : ", ", plugin.name, plugin.path,
                              plugin.problem.empty() ? "" : ": " + plugin.problem);
    if (plugin.problem.empty()) continue;
    found.grade = Grade::warning;
    found.cure = "programs do not run over " + plugin.name + ": its library is missing or another one";
  }
  if (found.text.empty()) {
    found.text =
        "none; programs run on this machine alone. Build where the headers of an MPI are (Debian: apt install "
        "libopenmpi-dev openmpi-bin) to run under its mpirun";
  }
  return found;
}

/// " on cores 0 and 2, no shared cache"; empty where they are not known.
std::string cores_of(const bench::Json& record) {
  if (!record.contains("cores") || !record["cores"].is_array() || record["cores"].size() != 2) return "";
  return fmt::format(" on cores {} and {}, {}", record["cores"][0].dump(), record["cores"][1].dump(),
                     record.value("shared_cache", false) ? "shared cache" : "no shared cache");
}

/// What `headway probe --save` has measured.
Finding costs_of_frames() {
  Finding found{"frames", Grade::ok, "", ""};
  const auto value = [](const bench::Json& record, const char* name) {
    const bool is_known = record.contains(name) && record[name].is_object() && record[name].contains("value") &&
                          record[name]["value"].is_number();
    return is_known ? record[name]["value"].get<double>() : 0;
  };
  for (const SavedProbe& saved : saved_probes()) {
    char day[16] = "";
    std::tm parts{};
    if (::gmtime_r(&saved.saved_at, &parts) != nullptr) std::strftime(day, sizeof day, "%Y-%m-%d", &parts);
    for (const bench::Json& record : saved.records) {
      found.text += fmt::format("{}{}, {}{}: o {:.0f} + {:.0f} ns, L {:.0f} ns, g {:.0f} ns, G {:.2g} ns/B ({})",
                                found.text.empty() ? "" : "; ", record["transport"].get<std::string>(),
                                record["pair"].get<std::string>(), cores_of(record), value(record, "o_send_ns"),
                                value(record, "o_recv_ns"), value(record, "latency_ns"), value(record, "g_ns"),
                                value(record, "gap_per_byte_ns"), day);
    }
  }
  if (found.text.empty())
    return {"frames", Grade::ok, "their costs are not measured; `headway probe --save` measures them", ""};
  const char* const used = std::getenv("HEADWAY_COSTS");
  found.text += used != nullptr && used == std::string_view("probed")
                    ? "; programs derive buffers and routes from them (HEADWAY_COSTS=probed)"
                    : "; programs derive buffers and routes from estimates, and from these with HEADWAY_COSTS=probed";
  return found;
}

Finding debugger() {
  const std::string gdb = find_in_path("gdb");
  return {"debugger", Grade::ok, gdb.empty() ? "no gdb; `headway run --debug` needs it (apt install gdb)" : gdb, ""};
}

}  // namespace

int doctor_command(int argc, char** argv) {
  bench::CommandLine app(
      "What this machine offers and what is wrong with it, with the cure. Ends with 1 where programs cannot run.",
      "headway doctor");
  if (const auto status = app.parse(argc, argv)) return *status;
  std::vector<Finding> findings = {cores(),         load(),         clock_speed(), caches(),
                                   memory(),        settings(),     aggregation(), shared_memory(),
                                   process_watch(), cross_memory(), open_files(),  huge_pages(),
                                   debugger(),      mpis(),         plugins(),     costs_of_frames()};
  std::ranges::move(ways_to_start(), std::back_inserter(findings));
  std::size_t warnings = 0, errors = 0;
  for (const Finding& found : findings) {
    const char* grade = found.grade == Grade::ok ? "ok" : found.grade == Grade::warning ? "warning" : "ERROR";
    std::cout << fmt::format("{:<8} {:<14} {}\n", grade, found.subject, found.text);
    if (found.grade != Grade::ok) std::cout << fmt::format("{:<8} {:<14} -> {}\n", "", "", found.cure);
    warnings += found.grade == Grade::warning;
    errors += found.grade == Grade::error;
  }
  std::cout << fmt::format("{}, {}\n", base::counted(warnings, "warning"), base::counted(errors, "error"))
            << std::flush;
  return errors == 0 ? 0 : 1;
}

}  // namespace headway::tools
