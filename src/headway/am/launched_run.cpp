#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <headway/am/identity.hpp>
#include <headway/am/launched_run.hpp>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/transport/wire/endpoint.hpp>
#include <thread>

namespace headway::am {
namespace {

// A PE that has failed may unwind its stack for so long.
constexpr std::chrono::milliseconds failure_patience(500);

// Between looks whether the others have ended.
constexpr std::chrono::microseconds nap_min(20), nap_max(500);

// What exit() in a run must know of it. A program has one run at a time.
std::atomic<LaunchedRun*> running{nullptr};

}  // namespace

// --- meeting

LaunchedRun::LaunchedRun(const Settings& settings, const std::function<int(Pe&)>& body)
    : ProcessPes(body),
      settings_(settings),
      wire_(wire::start(settings.transport, settings.launcher, settings.plugin_dir)),
      process_(wire_.facts.process),
      processes_(wire_.facts.processes) {
  meet();
  make_segment();
  static const bool watches_exit = (::on_exit(&LaunchedRun::on_exit, nullptr), true);
  static_cast<void>(watches_exit);
  running = this;
}

LaunchedRun::~LaunchedRun() {
  signals_.reset();
  running = nullptr;
}

void LaunchedRun::check(int result, const char* call) const {
  if (result >= 0) return;
  throw SystemError(
      fmt::format("{} of {}: {}", call, wire_.functions->name, wire_.functions->failure(wire_.wire)));
}

void LaunchedRun::meet() {
  // Started without a launcher it is alone.
  if (!settings_.launcher && processes_ != settings_.processes()) {
    throw SettingError(fmt::format("{} knows {} processes of this program, but no launcher has said that it started more "
                                   "than one: set HEADWAY_PES to {}",
                                   wire_.functions->name, processes_, processes_ * settings_.pes_per_process));
  }
  self_.pes = settings_.pes;
  self_.pes_per_process = settings_.pes_per_process;
  self_.budget_bytes = settings_.budget_bytes;
  self_.cores = available_cores();
  self_.pid = std::uint64_t(pid_);
  copy_text(self_.build_identity, build_identity());
  copy_text(self_.program, program_path());
  gethostname(self_.host, sizeof self_.host - 1);
  std::vector<Introduction> all(processes_);
  check(wire_.functions->exchange(wire_.wire, &self_, sizeof self_, all.data()), "exchange");
  refuse_others(all);

  std::size_t pes_here = 0, cores_here = 0;
  budget_bytes_min_ = settings_.budget_bytes;
  for (std::size_t process = 0; process < processes_; ++process) {
    const Introduction& other = all[process];
    budget_bytes_min_ = std::min<std::size_t>(budget_bytes_min_, other.budget_bytes);
    if (std::strcmp(other.host, self_.host) != 0) {
      several_hosts_ = true;
      continue;
    }
    pes_here += std::min(settings_.pes_per_process, settings_.pes - process * settings_.pes_per_process);
    cores_here = std::max<std::size_t>(cores_here, other.cores);
  }
  // A launcher that binds gives each process cores of its own; one that does not leaves all to all.
  const std::size_t own = std::min(settings_.pes_per_process, settings_.pes - process_ * settings_.pes_per_process);
  have_cores_ = own <= self_.cores && (pes_here <= cores_here || self_.cores < processors_online());
}

/// All processes come to the same conclusion: process 0's words are theirs.
void LaunchedRun::refuse_others(const std::vector<Introduction>& all) const {
  const Introduction& first = all[0];
  for (std::size_t process = 1; process < processes_; ++process) {
    const Introduction& other = all[process];
    if (std::strcmp(first.build_identity, other.build_identity) != 0) {
      throw SettingError(fmt::format("differing programs: process 0 runs {} (build {}), process {} runs {} (build {}); all "
                                     "processes of a run must run the same build",
                                     first.program, first.build_identity, process, other.program,
                                     other.build_identity));
    }
    if (first.pes != other.pes || first.pes_per_process != other.pes_per_process) {
      throw SettingError(fmt::format("differing settings: {} PEs, {} in a process, for process 0, and {}, {} for process "
                                     "{}; pass HEADWAY_ variables to all processes",
                                     first.pes, first.pes_per_process, other.pes, other.pes_per_process, process));
    }
  }
}

void LaunchedRun::make_segment() {
  const std::size_t k = settings_.pes_per_process, first_pe = process_ * k;
  const std::size_t own = std::min(k, settings_.pes - first_pe);
  if (k > 1 && wire_.facts.any_thread == 0) {
    throw SettingError(fmt::format("HEADWAY_PES_PER_PROCESS={} needs an MPI that threads may call: let the program "
                                   "initialise it with MPI_THREAD_SERIALIZED or more",
                                   k));
  }
  segment_.emplace(own, 1, own, settings_.budget_bytes);
  fcntl(segment_->descriptor(), F_SETFD, FD_CLOEXEC);
  local::SegmentHeader& header = segment_->header();
  // A child that a PE makes by fork() must not write into the run.
  madvise(&header, segment_->bytes(), MADV_DONTFORK);
  header.first_pe = first_pe;
  header.spill_bytes = settings_.spill_bytes;
  header.bind_cores = settings_.bind == Bind::core;
  header.arrived = 1;
  attendance_of(*segment_, 0).pid_namespace.store(pid_namespace(), std::memory_order_relaxed);
  attendance_of(*segment_, 0).pid.store(pid_, std::memory_order_release);
  for (std::size_t pe = 0; pe < own; ++pe) {
    board_of(*segment_, pe).waiting_for.store(no_pe, std::memory_order_relaxed);
    board_of(*segment_, pe).phase.store(Phase::computing, std::memory_order_relaxed);
  }
  port_.emplace(wire::PortOptions{.functions = wire_.functions,
                                  .wire = wire_.wire,
                                  .process = process_,
                                  .processes = processes_,
                                  .pes = settings_.pes,
                                  .pes_per_process = k,
                                  .credit_bytes = wire::credit_for(budget_bytes_min_, settings_.pes)},
                *segment_, 0);
  watch_.emplace(*segment_, *port_, process_, processes_, settings_.stall);
  enter(*segment_, 0, own);
  signals_.emplace(header, attendance_of(*segment_, 0));
}

// --- running

std::unique_ptr<Endpoint> LaunchedRun::make_endpoint(std::size_t pe) {
  return std::make_unique<wire::WireEndpoint>(*segment_, *port_, pe, &shared_);
}

int LaunchedRun::run() {
  run_threads();
  const int status = status_of_all();
  running = nullptr;
  port_->close();
  return status;
}

/// PEs of other processes may be late, or stall: this one goes on to answer for its own.
int LaunchedRun::status_of_all() {
  int mine = 0;
  for (std::size_t pe = first_; pe < last_ && mine == 0; ++pe) mine = board(pe).status;
  watch_->finish(mine);
  for (auto nap = nap_min;; nap = std::min(2 * nap, nap_max)) {
    if (port_->progress()) nap = nap_min;
    while_waiting();
    if (const auto status = watch_->status_of_all()) return *status;
    std::this_thread::sleep_for(nap);
  }
}

void LaunchedRun::while_waiting() {
  const auto page = watch_->look(monotonic_ns());
  if (!page) return;
  say(page->text);
  if (page->stalled) end_all(exit_status::stalled);
}

// --- the end of all

void LaunchedRun::say(const std::string& text) const {
  // In one piece: others write to the same place.
  const std::string line = "headway: " + text + "\n";
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

/// Ends all even where the program does not come to an end by itself.
void LaunchedRun::after_failure(std::size_t pe) {
  std::thread([this, pe] {
    std::this_thread::sleep_for(failure_patience);
    end_failed(pe);
  }).detach();
}

void LaunchedRun::end_failed(std::size_t pe) {
  static std::atomic<bool> ending{false};
  if (ending.exchange(true)) {  // another PE of this process does it
    for (;;) pause();
  }
  const PeBoard& failed = board(pe);
  say(fmt::format("PE {} (pid {}{}): {}", port_->first_pe() + pe, pid_,
                  several_hosts_ ? fmt::format(" on {}", self_.host) : "", failed.failure_text));
  end_all(int(failed.failure.load(std::memory_order_relaxed)));
}

void LaunchedRun::end_all(int status) {
  running = nullptr;
  std::fflush(nullptr);
  wire_.functions->abort(wire_.wire, status);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  end_process(status);
}

/// exit() in the middle of a run: the others would wait for ever.
void LaunchedRun::on_exit(int status, void*) {
  LaunchedRun* const run = running.load();
  if (run == nullptr || getpid() != run->pid_) return;
  const std::size_t first = run->port_->first_pe(), last = first + run->last_ - 1;
  run->say(fmt::format("{} (pid {}) exited with status {} before run() had finished",
                       first == last ? fmt::format("PE {}", first)
                                     : fmt::format("the process of PE {} to PE {}", first, last),
                       run->pid_, status));
  run->end_all(exit_status::failed);
}

}  // namespace headway::am
