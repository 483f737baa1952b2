// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <headway/base/clock.hpp>
#include <headway/base/costs_setting.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/given_settings.hpp>
#include <headway/base/machine.hpp>
#include <headway/launch/identity.hpp>
#include <headway/launch/launched_run.hpp>
#include <headway/launch/measured_costs.hpp>
#include <headway/transport/wire/endpoint.hpp>
#include <system_error>
#include <thread>

namespace headway::launch {
namespace {

// A process that has finished looks for the ends of the others at this interval, which grows.
constexpr std::chrono::microseconds poll_interval_min(20), poll_interval_max(500);

/// Equal for all processes on one kernel since its start.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

/// The line of the variable, or "NAME not set".
std::string line_of_setting(std::string_view given, const std::string& name) {
  for (std::size_t at = 0; at < given.size();) {
    const std::size_t end = std::min(given.find('\n', at), given.size());
    const std::string_view line = given.substr(at, end - at);
    if (line.substr(0, line.find('=')) == name) return std::string(line);
    at = end + 1;
  }
  return name + " not set";
}

/// The first variable that differs; empty if none does.
std::string first_difference(std::string_view given, std::string_view other) {
  for (const auto& [text, against] : {std::pair(given, other), std::pair(other, given)}) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string name(text.substr(at, text.find('=', at) - at));
      if (line_of_setting(against, name) != text.substr(at, end - at)) return name;
      at = end + 1;
    }
  }
  return "";
}

}  // namespace

// --- meeting

LaunchedRun::LaunchedRun(const base::Settings& settings, const std::function<int(Pe&)>& body)
    : ProcessPes(body),
      settings_(settings),
      simulated_(settings.launcher && settings.launcher->simulated),
      wire_(wire::start(settings.transport, settings.launcher, settings.plugin_dir)),
      process_(wire_.facts.process),
      processes_(wire_.facts.processes) {
  const std::vector<Introduction> all = meet();
  try {
    join_segment(all);
    set_up_pes();
    connect_lifelines(all);
  } catch (const SystemError& error) {  // only in this process: the others wait for it
    print_message(fmt::format("process {} (pid {}): {}", process_, pid_, error.what()));
    end_all(exit_status::unusable_settings);
  }
  if (!simulated_) watch_exit();  // all simulated processes share one exit(), after the simulator has ended
}

LaunchedRun::~LaunchedRun() {
  lifelines_.reset();
  signals_.reset();
  forget_exit();
}

void LaunchedRun::check(int result, const char* call) const {
  if (result >= 0) return;
  throw SystemError(fmt::format("{} of {}: {}", call, wire_.functions->name, wire_.functions->failure(wire_.wire)));
}

std::vector<LaunchedRun::Introduction> LaunchedRun::meet() {
  // Without a launcher there is one process.
  if (!settings_.launcher && processes_ != settings_.processes()) {
    throw SettingError(fmt::format(
        "{} knows {} of this program, but no launcher has said that it started more "
        "than one: set HEADWAY_PES to {}",
        wire_.functions->name, base::counted(processes_, "process"), processes_ * settings_.pes_per_process));
  }
  self_.pes = settings_.pes;
  self_.pes_per_process = settings_.pes_per_process;
  self_.budget_bytes = settings_.budget_bytes;
  self_.cores = base::available_cores();
  self_.eager_bytes = wire_.functions->eager_bytes == nullptr ? 0 : wire_.functions->eager_bytes(wire_.wire);
  self_.shares = settings_.share == base::Share::host && !simulated_;  // the simulator does not see shared memory
  copy_text(self_.build_identity, build_identity());
  copy_text(self_.program, program_path());
  gethostname(self_.host, sizeof self_.host - 1);
  copy_text(self_.boot_id, boot_id());
  copy_text(self_.given, fmt::format("{}", fmt::join(base::given_settings(), "\n")));
  std::vector<Introduction> all(processes_);
  check(wire_.functions->exchange(wire_.wire, &self_, sizeof self_, all.data()), "exchange");
  refuse_others(all);

  std::size_t pes_here = 0, cores_here = 0;
  budget_bytes_min_ = settings_.budget_bytes;
  for (std::size_t process = 0; process < processes_; ++process) {
    const Introduction& other = all[process];
    hosts_.emplace_back(other.host);
    budget_bytes_min_ = std::min<std::size_t>(budget_bytes_min_, other.budget_bytes);
    if (other.eager_bytes != 0 && (eager_bytes_min_ == 0 || other.eager_bytes < eager_bytes_min_)) {
      eager_bytes_min_ = other.eager_bytes;
    }
    if (std::strcmp(other.host, self_.host) != 0) {
      several_hosts_ = true;
      continue;
    }
    pes_here += std::min(settings_.pes_per_process, settings_.pes - process * settings_.pes_per_process);
    cores_here = std::max<std::size_t>(cores_here, other.cores);
  }
  // Fewer cores than the host has: the launcher has bound each process to its own. Else all processes share all cores.
  const std::size_t own = std::min(settings_.pes_per_process, settings_.pes - process_ * settings_.pes_per_process);
  have_cores_ = own <= self_.cores && (pes_here <= cores_here || self_.cores < base::processors_online());
  return all;
}

/// All processes find the same difference; process 0 prints it.
void LaunchedRun::refuse_others(const std::vector<Introduction>& all) const {
  const Introduction& first = all[0];
  for (std::size_t process = 1; process < processes_; ++process) {
    const Introduction& other = all[process];
    const auto at_host = [&](const Introduction& one) {
      return std::strcmp(first.host, other.host) != 0 ? fmt::format(" on {}", one.host) : "";
    };
    if (std::strcmp(first.build_identity, other.build_identity) != 0) {
      throw SettingError(
          fmt::format("differing programs: process 0 runs {}{} (build {}), process {} runs {}{} (build {}); "
                      "all processes of a run must run the same build",
                      first.program, at_host(first), first.build_identity, process, other.program, at_host(other),
                      other.build_identity));
    }
    if (const std::string name = first_difference(first.given, other.given); !name.empty()) {
      throw SettingError(
          fmt::format("differing settings: {} for process 0{}, and {} for process {}{}; pass HEADWAY_ variables "
                      "to all processes (mpirun of Open MPI: -x {})",
                      line_of_setting(first.given, name), at_host(first), line_of_setting(other.given, name), process,
                      at_host(other), name));
    }
    if (first.pes != other.pes || first.pes_per_process != other.pes_per_process) {
      throw SettingError(fmt::format(
          "differing settings: {}, {} in a process, for process 0, and {}, {} for process "
          "{}; pass HEADWAY_ variables to all processes",
          base::counted(first.pes, "PE"), first.pes_per_process, other.pes, other.pes_per_process, process));
    }
  }
}

/// The first process of this host makes a segment, and the others open it. If one of them cannot, each process makes a
/// segment for itself alone.
void LaunchedRun::join_segment(const std::vector<Introduction>& all) {
  if (settings_.pes_per_process > 1 && wire_.facts.any_thread == 0) {
    throw SettingError(
        fmt::format("HEADWAY_PES_PER_PROCESS={} needs an MPI that threads may call: let the program "
                    "initialise it with MPI_THREAD_SERIALIZED or more",
                    settings_.pes_per_process));
  }
  if (has_thread() && (wire_.facts.any_thread == 0 || simulated_)) {
    throw SettingError(fmt::format(
        "{}{}", thread_setting(),
        simulated_ ? ": a simulated rank is one thread"
                   : " needs an MPI that threads may call: let the program initialise it with "
                     "MPI_THREAD_MULTIPLE, or with MPI_THREAD_SERIALIZED if it calls MPI only before and after run()"));
  }
  const auto group_of = [&](std::size_t process) {
    return host_group_of(process, processes_, [&](std::size_t a, std::size_t b) {
      return all[a].shares != 0 && all[b].shares != 0 && std::strcmp(all[a].host, all[b].host) == 0 &&
             std::strcmp(all[a].boot_id, all[b].boot_id) == 0;
    });
  };
  group_ = group_of(process_);
  if (group_.first == process_) segment_ = make_segment(group_);
  const SegmentAddress own = segment_ != nullptr ? SegmentAddress::of(*segment_) : SegmentAddress{};
  std::vector<SegmentAddress> addresses(processes_);
  check(wire_.functions->exchange(wire_.wire, &own, sizeof own, addresses.data()), "exchange");
  if (segment_ == nullptr) segment_ = try_attach(addresses[group_.first]);
  const char attached = segment_ != nullptr ? 1 : 0;
  std::vector<char> all_attached(processes_);
  check(wire_.functions->exchange(wire_.wire, &attached, sizeof attached, all_attached.data()), "exchange");

  for (std::size_t process = 0; process < processes_;) {
    const HostGroup group = group_of(process);
    const bool together =
        std::all_of(all_attached.begin() + std::ptrdiff_t(group.first),
                    all_attached.begin() + std::ptrdiff_t(group.last), [](char one) { return one != 0; });
    for (std::size_t leader = group.first; leader < (together ? group.first + 1 : group.last); ++leader) {
      leaders_.push_back(leader);
      host_firsts_.push_back(leader * settings_.pes_per_process);
    }
    if (!together && group == group_) {
      group_ = {process_, process_ + 1};
      segment_ = make_segment(group_);
    }
    process = group.last;
  }
  if (simulated_) return;
  share_costs();
  const std::uint64_t pool_bytes = segment_->header().pool_bytes;
  std::vector<std::uint64_t> pools(processes_);
  check(wire_.functions->exchange(wire_.wire, &pool_bytes, sizeof pool_bytes, pools.data()), "exchange");
  have_pools_ = *std::ranges::min_element(pools) >= wire::pool_bytes_min;
}

/// Process 0 reads the costs, so that all PEs derive the same buffers and routes. The exchange of pools after it makes
/// sure that each process sees them in its segment.
void LaunchedRun::share_costs() {
  if (!base::wants_probed_costs()) return;
  struct Shared {
    transport::FrameCosts within_host, between_hosts;
    std::uint64_t failed = 0;
  } own;
  std::string failure = "HEADWAY_COSTS=probed: process 0 cannot use the kept results";
  if (process_ == 0) {
    try {
      const bool several_processes = leaders_.size() < processes_;
      if (several_processes || settings_.pes_per_process > 1)
        own.within_host = measured_costs_within_host(several_processes);
      if (leaders_.size() > 1)
        own.between_hosts = measured_costs(wire_.functions->name, several_hosts_ ? "host" : "process");
    } catch (const SettingError& error) {
      failure = error.what();
      own.failed = 1;
    }
  }
  std::vector<Shared> all(processes_);
  check(wire_.functions->exchange(wire_.wire, &own, sizeof own, all.data()), "exchange");
  if (all[0].failed != 0) throw SettingError(failure);
  if (group_.first != process_) return;
  segment_->header().costs_within_host = all[0].within_host;
  segment_->header().costs_between_hosts = all[0].between_hosts;
}

std::unique_ptr<local::Segment> LaunchedRun::make_segment(HostGroup group) const {
  const std::size_t k = settings_.pes_per_process, first_pe = group.first * k;
  const std::size_t pes = std::min(group.size() * k, settings_.pes - first_pe);
  auto segment = std::make_unique<local::Segment>(pes, group.size(), k, budget_bytes_min_);
  fcntl(segment->descriptor(), F_SETFD, FD_CLOEXEC);
  local::SegmentHeader& header = segment->header();
  header.first_pe = first_pe;
  header.spill_bytes = settings_.spill_bytes;
  header.bind_cores = settings_.bind == base::Bind::core;
  return segment;
}

void LaunchedRun::set_up_pes() {
  const std::size_t k = settings_.pes_per_process;
  const std::size_t first = (process_ - group_.first) * k;
  const std::size_t last = std::min<std::size_t>(first + k, segment_->header().pes);
  // A child that a PE forks must not write into the run.
  madvise(&segment_->header(), segment_->bytes(), MADV_DONTFORK);
  report::ProcessRecord& process_record = report::process_record_of(*segment_, first);
  process_record.pid_namespace.store(report::pid_namespace(), std::memory_order_relaxed);
  process_record.pid.store(pid_, std::memory_order_release);
  for (std::size_t pe = first; pe < last; ++pe) {
    report::board_of(*segment_, pe).waiting_for.store(report::no_pe, std::memory_order_relaxed);
    report::board_of(*segment_, pe).phase.store(report::Phase::computing, std::memory_order_relaxed);
  }
  port_.emplace(wire::PortOptions{.functions = wire_.functions,
                                  .wire = wire_.wire,
                                  .process = process_,
                                  .processes = processes_,
                                  .pes = settings_.pes,
                                  .pes_per_process = k,
                                  .credit_bytes = wire::credit_for(budget_bytes_min_, settings_.pes),
                                  .posted = wire::posted_for(processes_),
                                  .eager_bytes = eager_bytes_min_,
                                  .hosts = several_hosts_ ? hosts_ : std::vector<std::string>{},
                                  .driven = settings_.progress == base::Progress::thread,
                                  .pools = have_pools_},
                *segment_, first);
  watch_.emplace(*segment_, *port_, process_, leaders_, settings_.stall);
  enter(*segment_, first, last);
  if (!simulated_) signals_.emplace(segment_->header(), process_record);
}

// --- running

std::unique_ptr<transport::Endpoint> LaunchedRun::make_endpoint(std::size_t pe) {
  if (segment_->header().pes == settings_.pes) return local::make_endpoint(*segment_, pe, &shared_);
  return std::make_unique<wire::WireEndpoint>(*segment_, *port_, pe, &shared_, host_firsts_);
}

const char* LaunchedRun::thread_setting() const {
  switch (settings_.progress) {
    case base::Progress::thread: return "HEADWAY_PROGRESS=thread";
    case base::Progress::helper: return "HEADWAY_PROGRESS=helper";
    default: return "HEADWAY_PROGRESS=both";
  }
}

am::Idle LaunchedRun::idle() const {
  const bool sleeps =
      simulated_ || (settings_.progress == base::Progress::helper && segment_->header().pes != settings_.pes);
  return sleeps ? am::Idle::sleep : have_cores_ ? am::Idle::spin : am::Idle::yield;
}

/// Called after set-up, during which this thread calls the wire itself.
void LaunchedRun::start_communication() {
  const bool uses_wire = segment_->header().pes != settings_.pes;
  if (!has_thread() || !uses_wire) return;
  using Role = wire::CommunicationThread::Role;
  try {
    driver_.emplace(*port_, settings_.progress == base::Progress::thread ? Role::drives : Role::helps);
  } catch (const std::system_error& error) {
    print_message(fmt::format("process {} (pid {}): {}: its thread cannot be made: {}", process_, pid_,
                              thread_setting(), error.what()));
    end_all(exit_status::unusable_settings);
  }
}

int LaunchedRun::run() {
  start_communication();
  run_threads();
  return leave();
}

Pe& LaunchedRun::open() {
  start_communication();
  return open_pe();
}

int LaunchedRun::close(int status) {
  close_pe(status);
  return leave();
}

int LaunchedRun::leave() {
  const int status = status_of_all();
  forget_exit();
  driver_.reset();
  port_->close();
  left_ = true;
  return status;
}

/// Waits for the status of the run. Meanwhile it answers requests of other processes: their PEs may be late or stall.
int LaunchedRun::status_of_all() {
  int mine = 0;
  for (std::size_t pe = first_; pe < last_ && mine == 0; ++pe) mine = board(pe).status;
  watch_->finish(mine);
  for (auto interval = poll_interval_min;; interval = std::min(2 * interval, poll_interval_max)) {
    while_waiting();
    if (const auto status = watch_->status_of_all()) return *status;
    std::this_thread::sleep_for(interval);
  }
}

void LaunchedRun::while_waiting() {
  port_->progress();  // a LocalEndpoint does not call it
  const auto page = watch_->step(base::monotonic_ns());
  if (!page) return;
  if (page->stalled) claim_end();
  print_message(page->text);
  if (page->stalled) end_all(exit_status::stalled);
}

}  // namespace headway::launch
