// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <headway/am/engine.hpp>
#include <headway/launch/identity.hpp>
#include <headway/launch/process_run.hpp>
#if defined(HEADWAY_SIM)
#include <headway/launch/simulation.hpp>
#endif
#include <headway/base/bytes.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/base/settings.hpp>
#include <headway/transport/local/local.hpp>
#include <memory>

namespace headway::launch {
namespace {

constexpr std::int64_t meet_check_ns = 100'000'000;
constexpr std::size_t stack_bytes_simulated = 8_MiB;

/// Makes the kernel kill this process when the supervisor's end of the lifeline closes, in any state and under any
/// parent.
void die_with_supervisor(int lifeline) {
  // A newly opened pipe has its own settings. Without /proc, the death of the parent is the signal (attach()).
  const int own = open(fmt::format("/proc/self/fd/{}", lifeline).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (own < 0) return;
  fcntl(own, F_SETOWN, getpid());
  fcntl(own, F_SETSIG, SIGKILL);
  fcntl(own, F_SETFL, O_NONBLOCK | O_ASYNC);
}

int duplicate_segment(const Attachment& attachment) {
  const int descriptor = fcntl(attachment.segment, F_DUPFD_CLOEXEC, 3);
  if (descriptor < 0) {
    throw SettingError(
        fmt::format("{}: the run's descriptor {} is not open here; a wrapper that starts a program under "
                    "`headway run` must keep open descriptors open",
                    base::launch_variable, attachment.segment));
  }
  return descriptor;
}

}  // namespace

Attachment Attachment::parse(const std::string& text) {
  Attachment attachment;
  const char* at = text.data();
  const char* end_of_text = at + text.size();
  bool good = true;
  auto number = [&](auto& value, char separator) {
    const auto [next, error] = std::from_chars(at, end_of_text, value);
    good = good && error == std::errc() &&
           (separator == 0 ? next == end_of_text : next != end_of_text && *next == separator);
    at = good ? next + (separator != 0) : end_of_text;
  };
  number(attachment.segment, ':');
  number(attachment.lifeline, ':');
  number(attachment.process, 0);
  if (!good) throw SettingError(fmt::format("{}={}: it is set by `headway run` only", base::launch_variable, text));
  return attachment;
}

// --- attaching and meeting

ProcessRun::ProcessRun(const Attachment& attachment, const std::function<int(Pe&)>& body)
    : ProcessPes(body),
      attachment_(attachment),
      segment_(duplicate_segment(attachment)),
      have_cores_(segment_.header().pes <= base::available_cores()) {
  local::SegmentHeader& header = segment_.header();
  if (attachment.process >= header.processes) {
    throw SettingError(fmt::format("{}: process {} of {}: it is set by `headway run` only", base::launch_variable,
                                   attachment.process, header.processes));
  }
  first_ = attachment.process * header.pes_per_process;
  last_ = std::min<std::size_t>(first_ + header.pes_per_process, header.pes);
  attach();
  enter(segment_, first_, last_);

  // Each process counts once per run. It starts the next run only after all processes have left this one.
  const std::uint64_t generation = header.arrived.fetch_add(1, std::memory_order_acq_rel) / header.processes + 1;
  meet(header.arrived, generation);
  for (std::size_t pe = first_; pe < last_; ++pe) {
    if (header.simulated == 0) local::reset(segment_, pe);
    std::ranges::fill(segment_.board(pe), std::byte(0));
  }
  report::process_record_of(segment_, first_).pid_namespace.store(report::pid_namespace(), std::memory_order_relaxed);
  report::process_record_of(segment_, first_).pid.store(pid_, std::memory_order_release);
  signals_.emplace(header, report::process_record_of(segment_, first_));
  report::PeBoard& mine = board(first_);
  copy_text(mine.program, program_path());
  copy_text(mine.build_identity, build_identity());
  for (std::size_t pe = first_; pe < last_; ++pe) {
    board(pe).waiting_for.store(report::no_pe, std::memory_order_relaxed);
    board(pe).phase.store(report::Phase::computing, std::memory_order_relaxed);
  }
  header.ready.fetch_add(1, std::memory_order_acq_rel);
  meet(header.ready, generation);
  refuse_other_builds();
}

ProcessRun::~ProcessRun() {
  signals_.reset();
  report::process_record_of(segment_, first_).pid.store(0, std::memory_order_release);
}

void ProcessRun::attach() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A child that a PE forks must not write into the run. A program that it executes needs no descriptors of the run.
  madvise(&segment_.header(), segment_.bytes(), MADV_DONTFORK);
  fcntl(attachment_.segment, F_SETFD, FD_CLOEXEC);
  fcntl(attachment_.lifeline, F_SETFD, FD_CLOEXEC);
  struct stat status {};
  if (fstat(attachment_.lifeline, &status) == 0) lifeline_inode_ = status.st_ino;
  static const bool held = (die_with_supervisor(attachment_.lifeline), true);
  static_cast<void>(held);
  check_lifeline();

  std::int32_t holder = 0;
  if (!report::process_record_of(segment_, first_)
           .pid.compare_exchange_strong(holder, pid_, std::memory_order_acq_rel)) {
    throw SettingError(
        fmt::format("process {} of this run is pid {} already, so pid {} cannot be; start one program "
                    "after the other under `headway run`, and others without {}",
                    attachment_.process, holder, pid_, base::launch_variable));
  }
}

/// Waits until every process of the run has counted `generation` times.
void ProcessRun::meet(std::atomic<std::uint64_t>& count, std::uint64_t generation) {
  const std::uint64_t all = generation * segment_.header().processes;
  // The last process wakes the others, which sleep on the counter's low half.
  static_assert(std::endian::native == std::endian::little);
  auto* low_half = reinterpret_cast<std::uint32_t*>(&count);
  std::atomic<std::uint32_t>& meeting = report::process_record_of(segment_, first_).meeting;
  meeting.store(1, std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t seen = count.load(std::memory_order_acquire);
    if (seen >= all) break;
    if (segment_.header().processes_gone.load(std::memory_order_acquire) != 0) {
      fail(first_, report::FailureKind::failed,
           "another process of this run ended without calling run() as often as this one");
    }
    check_lifeline();
    const timespec look{0, meet_check_ns};
    syscall(SYS_futex, low_half, FUTEX_WAIT, std::uint32_t(seen), &look, nullptr, 0);
  }
  meeting.store(0, std::memory_order_relaxed);
  syscall(SYS_futex, low_half, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

/// No PE starts unless all processes run the same build. A process with another build than PE 0 fails; the others
/// wait until the supervisor ends them.
void ProcessRun::refuse_other_builds() {
  const local::SegmentHeader& header = segment_.header();
  const report::PeBoard& first = board(0);
  for (std::size_t pe = header.pes_per_process; pe < header.pes; pe += header.pes_per_process) {
    const report::PeBoard& other = board(pe);
    if (std::strcmp(first.build_identity, other.build_identity) == 0) continue;
    if (pe == first_) {
      fail(pe, report::FailureKind::settings,
           fmt::format("differing programs: PE 0 runs {} (build {}), PE {} runs {} (build {}); all processes of a run "
                       "must run the same build",
                       first.program, first.build_identity, pe, other.program, other.build_identity)
               .c_str());
    }
    for (;;) {
      check_lifeline();
      usleep(unsigned(meet_check_ns / 1000));
    }
  }
}

/// Ends this process if the supervisor has ended.
void ProcessRun::check_lifeline() {
  pollfd lifeline{attachment_.lifeline, 0, 0};
  if (poll(&lifeline, 1, 0) <= 0 || (lifeline.revents & (POLLHUP | POLLERR)) == 0) return;
  struct stat status {};
  if (fstat(attachment_.lifeline, &status) != 0 || status.st_ino != lifeline_inode_)
    return;  // the program has reused the descriptor's number
  _exit(exit_status::failed);
}

// --- running

std::unique_ptr<transport::Endpoint> ProcessRun::make_endpoint(std::size_t pe) {
  return local::make_endpoint(segment_, pe, &shared_);
}

/// The supervisor reads the failure on the board, and prints it.
void ProcessRun::end_failed(std::size_t pe) { end_process(int(board(pe).failure.load(std::memory_order_relaxed))); }

int ProcessRun::run() {
  if (segment_.header().simulated != 0) {
    run_simulation();
  } else {
    run_threads();
  }
  return leave();
}

Pe& ProcessRun::open() { return open_pe(); }

int ProcessRun::close(int status) {
  close_pe(status);
  return leave();
}

int ProcessRun::leave() {
  // All PEs have finished the last quiesce(), so their statuses are known.
  int status = 0;
  for (std::size_t pe = 0; pe < segment_.header().pes && status == 0; ++pe) status = board(pe).status;
  board(first_).process_finished.store(1, std::memory_order_release);
  return status;
}

/// Runs all PEs as fibers of this thread. A PE that fails ends the process.
void ProcessRun::run_simulation() {
#if defined(HEADWAY_SIM)
  local::SegmentHeader& header = segment_.header();
  const base::Settings settings = base::Settings::from_environment();
  sim::WorldOptions options{.pes = header.pes,
                            .seed = settings.seed,
                            .frame_memory_bytes = header.arena_bytes,
                            .stack_bytes = stack_bytes_simulated,
                            .board = [this](std::size_t pe) { return segment_.board(pe); }};
  options.conditions.parse("HEADWAY_SIM", settings.sim, header.pes);
  Simulation simulation(std::move(options), settings.stall.count());
  const bool finished = simulation.run([&](transport::Endpoint& endpoint) {
    const std::size_t pe = endpoint.id();
    run_pe(endpoint, pe, {.idle = am::Idle::sleep, .reporter = &simulation.reporter(pe)},
           [&simulation, pe](std::int64_t ns) { simulation.world().pass_time(pe, ns); });
  });
  header.simulated_ns = std::uint64_t(simulation.world().now());
  header.simulated_frames = simulation.world().frames();
  if (!finished) fail(first_, report::FailureKind::stalled, simulation.stall().c_str());
#endif
}

}  // namespace headway::launch
