// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/machine.hpp>
#include <headway/launch/process_pes.hpp>
#include <headway/report/report_signals.hpp>
#include <iostream>
#include <utility>

namespace headway::launch {
namespace {

constexpr std::size_t stack_bytes_where_unlimited = 64_MiB;
/// How simulated time passes where the process runs in SMPI, in which reading the clock alone takes none. Else empty.
std::function<void(std::int64_t ns)> pass_simulated_time() {
#if defined(HEADWAY_SMPI)
  return [](std::int64_t ns) {
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    nanosleep(&time, nullptr);
  };
#else
  return {};
#endif
}

// In SMPI a short sleep does not end with the arrival of a frame. A delay may begin late by a part of it.
constexpr std::int64_t sleep_ns_min_smpi = 200, parts_of_latency = 100;

constexpr const char* setting_up = "setting the PE up threw: ";

std::atomic<bool> inside_run{false};

/// The kernel keeps one byte of an exit status: 256 must not become success.
int exit_status_of(int status) { return status != 0 && (status & 0xff) == 0 ? 255 : status & 0xff; }

}  // namespace

void end_process(int status) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

ProcessPes::ProcessPes(const std::function<int(Pe&)>& body)
    : pid_(getpid()), body_(&body), processors_(base::allowed_processors()) {}

ProcessPes::~ProcessPes() { inside_run = false; }

bool ProcessPes::inside() { return inside_run.load(std::memory_order_relaxed); }

void ProcessPes::enter(local::Segment& segment, std::size_t first, std::size_t last) {
  memory_ = &segment;
  first_ = first;
  last_ = last;
  inside_run = true;
}

void ProcessPes::fail(std::size_t pe, report::FailureKind kind, const char* what, const char* why) {
  if (getpid() != pid_) {  // forked by a PE: the run continues without it
    std::fprintf(stderr, "headway: a process forked by PE %zu: %s%s\n", pe, what, why);
    end_process(int(kind));
  }
  report::PeBoard& mine = board(pe);
  std::snprintf(mine.failure_text, sizeof mine.failure_text, "%s%s", what, why);
  mine.failure.store(kind, std::memory_order_release);
  end_failed(pe);
  std::abort();  // not reached
}

// --- threads

struct ProcessPes::PeThread {
  ProcessPes* run;
  std::size_t pe;
  pthread_t id;

  static void* enter(void* self) {
    const PeThread& thread = *static_cast<PeThread*>(self);
    thread.run->run_pe(thread.pe);
    return nullptr;
  }
};

void ProcessPes::run_threads() {
  warn_of_dials();
  cpu_set_t processors_before;
  const bool known = pthread_getaffinity_np(pthread_self(), sizeof processors_before, &processors_before) == 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Without a stack limit, threads get far less stack than the main program.
  if (rlimit stack{}; getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur == RLIM_INFINITY) {
    pthread_attr_setstacksize(&attributes, stack_bytes_where_unlimited);
  }
  std::vector<PeThread> threads(last_ - first_ - 1);
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads[t] = {this, first_ + 1 + t, {}};
    if (const int error = pthread_create(&threads[t].id, &attributes, &PeThread::enter, &threads[t])) {
      char why[200];
      std::snprintf(why, sizeof why, "%s; ulimit -u, -v or -s, or a container's pids.max or memory, allows no more",
                    std::strerror(error));
      fail(threads[t].pe, report::FailureKind::failed, "its thread cannot be made: pthread_create: ", why);
    }
  }
  pthread_attr_destroy(&attributes);
  run_pe(first_);
  for (const PeThread& thread : threads) pthread_join(thread.id, nullptr);
  if (known) pthread_setaffinity_np(pthread_self(), sizeof processors_before, &processors_before);
}

void ProcessPes::bind(std::size_t pe) {
  if (memory_->header().bind_cores == 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  const int processor = processors_[(memory_->header().first_pe + pe) % processors_.size()];
  if (processor >= CPU_SETSIZE) return;
  CPU_SET(processor, &set);
  pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

void ProcessPes::run_pe(std::size_t pe) noexcept {
  try {
    bind(pe);
    const report::ThreadOfPe this_thread(board(pe), report::report_area_of(*memory_, pe));
    const std::unique_ptr<transport::Endpoint> endpoint = make_endpoint(pe);
    return run_pe(*endpoint, pe, {.idle = idle()});
  } catch (const std::exception& error) {
    fail(pe, report::FailureKind::failed, setting_up, error.what());
  }
}

void ProcessPes::complete(am::EngineOptions& options, std::size_t pe) {
  const local::SegmentHeader& header = memory_->header();
  options.budget_bytes = header.arena_bytes;
  options.spill_bytes = header.spill_bytes;
  options.aggregation = aggregation_;
  options.transfer = transfer_;
  options.collectives = collectives_;
  options.sizes = sizes_;
  options.while_waiting = [this] { while_waiting(); };
  options.when_failed = [this, pe] { after_failure(pe); };
  options.give_report = report::GiveReport{&report::report_area_of(*memory_, pe), &board(pe)};
}

/// The first process of the run says so, if its PEs share cores.
void ProcessPes::warn_of_dials() const {
  if (!dials_ || idle() != am::Idle::yield || memory_->header().first_pe + first_ != 0) return;
  std::fputs(
      "headway: HEADWAY_DIAL: there are more PEs than cores here, so that delays are longer than their dialled "
      "values; give each PE a core of its own\n",
      stderr);
}

/// At the end PE 0 says so, if its delays were longer than dialled for another reason.
void ProcessPes::warn_of_delays(std::size_t pe, const dial::DialledEndpoint::Kept& kept) const {
  if (!kept.is_exceeded() || idle() == am::Idle::yield || memory_->header().first_pe + pe != 0) return;
  std::fprintf(stderr,
               "headway: HEADWAY_DIAL: %lld delays of PE 0 by o and item_o took %.3g us on average instead of %.3g us; "
               "give each PE a core without other load\n",
               static_cast<long long>(kept.waits), 1e-3 * double(kept.dialled_ns + kept.longer_ns) / double(kept.waits),
               1e-3 * double(kept.dialled_ns) / double(kept.waits));
}

/// The endpoint for the engine: with HEADWAY_DIAL one in `dialled` over `endpoint`, else `endpoint` itself. With a
/// trace alone, dials of 0 make all data move in frames.
transport::Endpoint& ProcessPes::apply_dials(std::optional<dial::DialledEndpoint>& dialled,
                                             transport::Endpoint& endpoint,
                                             std::function<void(std::int64_t ns)> pass_time) const {
  if (!dials_ && trace_folder_.empty()) return endpoint;
  const bool in_smpi = !pass_time && bool(pass_simulated_time());
  if (in_smpi) pass_time = pass_simulated_time();
  const bool yields = !pass_time && idle() == am::Idle::yield;
  const base::DialSettings dials = dials_.value_or(base::DialSettings{});
  dial::Options options{dials, std::move(pass_time), yields};
  if (in_smpi) options.sleep_ns_max = std::max(sleep_ns_min_smpi, std::int64_t(dials.latency_ns) / parts_of_latency);
  return dialled.emplace(endpoint, std::move(options));
}

void ProcessPes::run_pe(transport::Endpoint& endpoint, std::size_t pe, am::EngineOptions options,
                        std::function<void(std::int64_t ns)> pass_time) noexcept {
  const char* during = setting_up;
  try {
    complete(options, pe);
    std::optional<dial::DialledEndpoint> dialled;
    std::optional<TracedRun> traced;
    std::optional<CountedRun> counted;
    const bool simulated = bool(pass_time) || bool(pass_simulated_time());
    transport::Endpoint* frames = &apply_dials(dialled, endpoint, std::move(pass_time));
    if (!trace_folder_.empty()) frames = &traced.emplace(trace_folder_, *frames, board(pe), simulated).endpoint();
    if (!counts_file_.empty()) frames = &counted.emplace(counts_file_, *frames, board(pe), simulated).endpoint();
    am::Engine engine(*frames, std::move(options));
    if (traced) traced->begin(engine);
    if (counted) counted->begin(engine);
    during = "the program threw: ";
    const int status = exit_status_of((*body_)(engine.pe()));
    if (getpid() != pid_) end_process(status);  // a child that the program forked and that returned: it is not a PE
    board(pe).status = status;
    if (!engine.has_failed()) {
      engine.finish();
      during = "";
      if (traced) traced->end();
      if (counted) counted->finish(engine);
      if (dialled) {
        dialled->drain();
        warn_of_delays(pe, dialled->kept());
      }
    }
  } catch (const am::RunFailed&) {  // already recorded
  } catch (const std::exception& error) {
    fail(pe, report::FailureKind::failed, during, error.what());
  } catch (...) {
    fail(pe, report::FailureKind::failed, during, "something that is no std::exception");
  }
  if (board(pe).failure.load(std::memory_order_relaxed) != report::FailureKind::none) end_failed(pe);
  board(pe).phase.store(report::Phase::finished, std::memory_order_relaxed);
}

// --- attached programs

// Messages of the program's own MPI move only in calls of MPI, and a PE that waits makes one after each sleep.
constexpr std::int64_t sleep_ns_max_attached = 200'000;

/// The process is not bound to a processor: threads that the program makes later would inherit that.
Pe& ProcessPes::open_pe() {
  open_.reset(
      new OpenPe{report::ThreadOfPe(board(first_), report::report_area_of(*memory_, first_)), {}, {}, {}, {}, {}});
  open_->endpoint = make_endpoint(first_);
  am::EngineOptions options{.idle = idle(), .sleep_ns_max = sleep_ns_max_attached};
  complete(options, first_);
  options.when_failed = [this] { end_failed(first_); };
  warn_of_dials();
  try {
    transport::Endpoint* frames = &apply_dials(open_->dialled, *open_->endpoint, {});
    const bool simulated = bool(pass_simulated_time());
    if (!trace_folder_.empty())
      frames = &open_->traced.emplace(trace_folder_, *frames, board(first_), simulated).endpoint();
    if (!counts_file_.empty())
      frames = &open_->counted.emplace(counts_file_, *frames, board(first_), simulated).endpoint();
    am::Engine& engine = open_->engine.emplace(*frames, std::move(options));
    if (open_->traced) open_->traced->begin(engine);
    if (open_->counted) open_->counted->begin(engine);
    return engine.pe();
  } catch (const std::exception& error) {  // the other PEs wait for this one
    fail(first_, report::FailureKind::failed, setting_up, error.what());
  }
}

void ProcessPes::close_pe(int status) {
  open_->engine->require_may_block(report::Phase::quiescing);
  board(first_).status = exit_status_of(status);
  open_->engine->finish();
  if (open_->traced) open_->traced->end();
  if (open_->counted) open_->counted->finish(*open_->engine);
  if (open_->dialled) {
    open_->dialled->drain();
    warn_of_delays(first_, open_->dialled->kept());
  }
  board(first_).phase.store(report::Phase::finished, std::memory_order_relaxed);
  open_.reset();
}

}  // namespace headway::launch
