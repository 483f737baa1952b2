// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <headway/base/bytes.hpp>
#include <headway/base/clock.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/launch/measured_costs.hpp>
#include <headway/launch/supervisor_process.hpp>
#include <headway/report/process_record.hpp>
#include <headway/report/system_state.hpp>
#include <headway/transport/sim/conditions.hpp>
#include <iostream>
#include <utility>

namespace headway::launch {
namespace {

constexpr int watch_interval_ms = 100;
constexpr int watch_interval_without_pidfd_ms = 10;
constexpr int report_interval_ms = 5;  // while a report is being made
constexpr std::int64_t watch_interval_ns = watch_interval_ms * 1'000'000LL;
// Time for processes to end by themselves after a signal to the run.
constexpr std::int64_t signal_grace_ns = 1'000'000'000;
// Time for a process with a recorded failure to unwind its stack.
constexpr std::int64_t failure_grace_ns = 500'000'000;
constexpr int process_end = 2;  // beside streams 0 and 1: the end of a process

/// Shared memory counts as a file for `ulimit -f`. Raises the limit to its maximum, and turns the signal beyond it
/// into an error.
class FileSizeLimit {
 public:
  FileSizeLimit() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &ignore, &signal_before_);
    if (getrlimit(RLIMIT_FSIZE, &limit_before_) == 0) {
      const rlimit most{limit_before_.rlim_max, limit_before_.rlim_max};
      setrlimit(RLIMIT_FSIZE, &most);
    }
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &limit_before_);
    sigaction(SIGXFSZ, &signal_before_, nullptr);
  }

 private:
  struct sigaction signal_before_ {};
  rlimit limit_before_{};
};

void check_conditions([[maybe_unused]] const base::Settings& settings) {
#if defined(HEADWAY_SIM)
  sim::Conditions().parse("HEADWAY_SIM", settings.sim, settings.pes);
#endif
}

local::Segment make_segment(const base::Settings& settings) {
  check_conditions(settings);
  const FileSizeLimit limit;
  try {
    return local::Segment(settings.pes, settings.processes(), settings.pes_per_process, settings.budget_bytes);
  } catch (const SystemError& error) {
    throw SystemError(fmt::format("{}: {} with a frame memory of {} each (HEADWAY_BUDGET) {} {}", error.what(),
                                  base::counted(settings.pes, "PE"), base::format_bytes(settings.budget_bytes),
                                  base::by_number(settings.pes, "needs", "need"),
                                  base::format_bytes(local::Segment::bytes_for(settings.pes, settings.budget_bytes))));
  }
}

}  // namespace

StandardStreams::StandardStreams() {
  for (int stream = 0; stream < 3; ++stream) {
    // open() returns the lowest free number
    if (fcntl(stream, F_GETFD) < 0) opened_[stream] = open("/dev/null", O_RDWR);
  }
}

StandardStreams::~StandardStreams() {
  for (int& stream : opened_) close_if_open(stream);
}

Supervisor::Supervisor(const base::Settings& settings)
    : settings_(settings),
      segment_(make_segment(settings)),
      stall_(segment_, settings.stall),
      reporter_(segment_),
      killed_for_memory_before_(report::killed_for_memory()),
      outputs_{LineOutput(STDOUT_FILENO), LineOutput(STDERR_FILENO)} {
  local::SegmentHeader& header = segment_.header();
  header.spill_bytes = settings.spill_bytes;
  header.bind_cores = settings.bind == base::Bind::core;
  header.simulated = settings.simulated();
  if (!settings.simulated()) header.costs_within_host = measured_costs_within_host(settings.processes() > 1);
}

Supervisor::~Supervisor() {
  for (Process& process : processes_) {
    for (int& output : process.output) close_if_open(output);
    close_if_open(process.descriptor);
  }
  for (int& end : lifeline_) close_if_open(end);
}

int Supervisor::run(const Child& child, int on_terminal) {
  // Else children would write the buffers again.
  std::cout.flush();
  std::clog.flush();
  std::fflush(nullptr);
  {
    Caller caller;
    if (pipe2(lifeline_, O_CLOEXEC) != 0) base::throw_errno("pipe");
    processes_.resize(settings_.processes());
    if (processes_.size() == 1) on_terminal = 0;
    try {
      for (std::size_t p = 0; p < processes_.size(); ++p) start(p, child, int(p) == on_terminal, caller);
    } catch (...) {
      for (const Process& process : processes_) {
        if (process.pid <= 0) continue;
        kill(process.pid, SIGKILL);
        while (waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) continue;
      }
      throw;
    }
    close_if_open(lifeline_[0]);
    checked_at_ = base::monotonic_ns();
    watch(caller);
  }
  report_simulation();
  if (signal_ != 0) {
    raise(signal_);  // the caller gets the signal, as without this library
    return 128 + signal_;
  }
  return status_;
}

// --- watching

void Supervisor::watch(Caller& caller) {
  std::vector<pollfd> polled;
  // meaning of polled entries after the first: a process's stream, or its end
  std::vector<std::pair<Process*, int>> meaning;
  while (!all_ended() || outputs_[0].has_waiting() || outputs_[1].has_waiting()) {
    polled.assign(1, {caller.descriptor, POLLIN, 0});
    meaning.clear();
    int timeout_ms = watch_interval_ms;
    // The process that is read first changes each time: one that writes much, or a slow reader, must not delay the
    // others.
    first_read_ = (first_read_ + 1) % processes_.size();
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      Process& process = processes_[(first_read_ + i) % processes_.size()];
      if (process.ended) continue;
      for (int stream = 0; stream < 2; ++stream) {
        if (process.output[stream] < 0 || !outputs_[stream].wants_more()) continue;
        polled.push_back({process.output[stream], POLLIN, 0});
        meaning.emplace_back(&process, stream);
      }
      if (process.descriptor < 0) timeout_ms = watch_interval_without_pidfd_ms;
      polled.push_back({process.descriptor, POLLIN, 0});  // poll() skips a negative one
      meaning.emplace_back(&process, process_end);
    }
    for (const LineOutput& output : outputs_) {
      if (output.has_waiting()) polled.push_back({output.descriptor(), POLLOUT, 0});
    }
    if (reporter_.busy()) timeout_ms = report_interval_ms;
    const bool quiet = poll(polled.data(), polled.size(), timeout_ms) == 0;

    take_signals(caller);
    for (LineOutput& output : outputs_) output.write_some();
    for (std::size_t i = 0; i < meaning.size(); ++i) {
      const auto& [process, stream] = meaning[i];
      if (stream != process_end && polled[i + 1].revents != 0 && outputs_[stream].wants_more()) {
        read_output(*process, stream, buffer_.size());
      }
    }
    check_broken_outputs();
    for (std::size_t i = 0; i < meaning.size(); ++i) {
      const auto& [process, stream] = meaning[i];
      if (stream != process_end || (process->descriptor >= 0 && polled[i + 1].revents == 0)) continue;
      if (waitpid(process->pid, &process->wait_status, WNOHANG) == process->pid) record_end(*process);
    }
    for (int stream = 0; stream < 2 && quiet; ++stream) {  // the line may be a question without newline
      if (isatty(outputs_[stream].descriptor()) != 0) processes_[0].lines[stream].flush(0, outputs_[stream]);
    }
    if (const std::int64_t now = base::monotonic_ns(); now - checked_at_ >= watch_interval_ns) {
      check(now, std::min(now - checked_at_, 2 * watch_interval_ns));
      checked_at_ = now;
    }
    report(base::monotonic_ns());
  }
  for (const Process& process : processes_) {
    if (status_ == 0 && !ending_ && WIFEXITED(process.wait_status)) status_ = WEXITSTATUS(process.wait_status);
  }
}

void Supervisor::take_signals(const Caller& caller) {
  signalfd_siginfo information{};
  while (read(caller.descriptor, &information, sizeof information) == sizeof information) {
    if (int(information.ssi_signo) == report::report_signal()) {
      report_asked_ = true;
      continue;
    }
    if (signal_ == 0) {
      signal_ = int(information.ssi_signo);
      signal_at_ = base::monotonic_ns();
    }
    // A signal of the terminal reaches the whole group. A signal to this process must be forwarded.
    if (information.ssi_code == SI_KERNEL) continue;
    for (const Process& process : processes_) {
      if (!process.ended) kill(process.pid, int(information.ssi_signo));
    }
  }
}

void Supervisor::read_output(Process& process, int stream, std::size_t bytes_max) {
  while (process.output[stream] >= 0 && bytes_max > 0) {
    const ssize_t got = read(process.output[stream], buffer_.data(), std::min(buffer_.size(), bytes_max));
    if (got == 0) close_if_open(process.output[stream]);
    if (got <= 0) return;
    process.lines[stream].add(process.index, {buffer_.data(), std::size_t(got)}, outputs_[stream]);
    bytes_max -= std::size_t(got);
  }
}

/// If no process reads an output, its writers get SIGPIPE as usual.
void Supervisor::check_broken_outputs() {
  for (int stream = 0; stream < 2; ++stream) {
    const int error = outputs_[stream].error();
    if (error == 0 || reported_broken_[stream]) continue;
    reported_broken_[stream] = true;
    if (error != EPIPE) {
      say(fmt::format("standard {} cannot be written: {}; it is incomplete", stream == 0 ? "output" : "error",
                      std::strerror(error)));
      continue;
    }
    for (Process& process : processes_) close_if_open(process.output[stream]);
  }
}

void Supervisor::record_end(Process& process) {
  process.ended = true;
  segment_.header().processes_gone.fetch_add(1, std::memory_order_release);
  for (int stream = 0; stream < 2; ++stream) {
    int left = 0;  // another process may hold the pipe and continue to write
    if (process.output[stream] >= 0 && ioctl(process.output[stream], FIONREAD, &left) == 0 && left > 0) {
      read_output(process, stream, std::size_t(left));
    }
    process.lines[stream].flush(process.index, outputs_[stream]);
    close_if_open(process.output[stream]);
  }
  close_if_open(process.descriptor);
  if (!process.ended_by_us && signal_ == 0) explain_end(process);
}

// --- why it ended

void Supervisor::explain_end(const Process& process) {
  if (explain_failure(process)) return;
  const report::PeBoard& board = report::board_of(segment_, process.index * settings_.pes_per_process);
  const bool finished = board.process_finished.load(std::memory_order_acquire) != 0;
  const bool attached = board.phase.load(std::memory_order_relaxed) != report::Phase::starting;
  if (WIFEXITED(process.wait_status)) {
    if (finished) return;
    const int status = WEXITSTATUS(process.wait_status);
    if (!attached) {  // the program ended before run(): it has printed the reason and chosen the status
      if (status != 0) end_run(status);
      return;
    }
    say(fmt::format("{} ({}) exited with status {} before run() had finished", pes_of(process.index), pids_of(process),
                    status));
  } else {
    const int signal = WTERMSIG(process.wait_status);
    if (signal == SIGPIPE && (outputs_[0].error() == EPIPE || outputs_[1].error() == EPIPE)) {
      if (signal_ == 0) signal_ = SIGPIPE;  // SIGPIPE would have ended the process without this library, too
      signal_at_ = base::monotonic_ns();
      return end_run(128 + SIGPIPE);
    }
    const bool out_of_memory = signal == SIGKILL && report::killed_for_memory() != killed_for_memory_before_;
    say(fmt::format("{} ({}) was killed by signal {} ({}){}{}", pes_of(process.index), pids_of(process), signal,
                    strsignal(signal), finished ? " after run() had finished" : "",
                    out_of_memory
                        ? "; meanwhile the system has killed processes because memory ran out: use fewer PEs, or a "
                          "smaller HEADWAY_BUDGET or HEADWAY_SPILL"
                        : ""));
  }
  end_run(exit_status::failed);
}

/// Reports the failure that the process has recorded, if there is one, and ends the run.
bool Supervisor::explain_failure(const Process& process) {
  const std::size_t first = process.index * settings_.pes_per_process;
  for (std::size_t pe = first; pe < std::min(first + settings_.pes_per_process, settings_.pes); ++pe) {
    const report::PeBoard& board = report::board_of(segment_, pe);
    const report::FailureKind kind = board.failure.load(std::memory_order_acquire);
    if (kind == report::FailureKind::none) continue;
    if (kind == report::FailureKind::stalled) {  // the page of the simulation
      say(board.failure_text);
    } else {
      say(fmt::format("PE {} ({}): {}", pe, pids_of(process), board.failure_text));
    }
    const bool before_run = kind == report::FailureKind::settings && process.ended && WIFEXITED(process.wait_status);
    end_run(before_run ? WEXITSTATUS(process.wait_status) : int(kind));
    return true;
  }
  return false;
}

/// Prints the simulated time of a simulated run, and the settings that repeat it.
void Supervisor::report_simulation() {
  const local::SegmentHeader& header = segment_.header();
  if (header.simulated == 0) return;
  if (status_ == 0 && header.simulated_ns != 0) {
    say(fmt::format("simulated {}, seed {}: {:.6f} s of simulated time, {}", base::counted(settings_.pes, "PE"),
                    settings_.seed, double(header.simulated_ns) * 1e-9,
                    base::counted(header.simulated_frames, "frame")));
  } else {
    say(fmt::format("the run was simulated: HEADWAY_TRANSPORT=sim, HEADWAY_PES={}, HEADWAY_SEED={}{} repeat it",
                    settings_.pes, settings_.seed, settings_.sim.empty() ? "" : ", HEADWAY_SIM=" + settings_.sim));
  }
  while (outputs_[1].has_waiting() && outputs_[1].error() == 0) outputs_[1].write_some();
}

void Supervisor::check(std::int64_t now, std::int64_t interval_ns) {
  if (signal_ != 0) {
    if (now - signal_at_ < signal_grace_ns) return;
    end_run(128 + signal_);
    if (all_ended()) {
      for (LineOutput& output : outputs_) output.drop_waiting();
    }
    return;
  }
  if (ending_) return;
  for (Process& process : processes_) {
    if (process.ended) continue;
    const std::size_t first = process.index * settings_.pes_per_process;
    bool failed = false;
    for (std::size_t pe = first; pe < std::min(first + settings_.pes_per_process, settings_.pes); ++pe) {
      failed |= report::board_of(segment_, pe).failure.load(std::memory_order_relaxed) != report::FailureKind::none;
    }
    if (failed && process.failed_at == 0) process.failed_at = now;
    // The program has caught the exception, or does not finish unwinding.
    if (process.failed_at != 0 && now - process.failed_at >= failure_grace_ns && explain_failure(process)) return;
    if (is_gone_below_parent(process) && !failed) {
      say(fmt::format("{} ({}) ended before run() had finished", pes_of(process.index), pids_of(process)));
      return end_run(exit_status::failed);
    }
  }
  stall_.check([this](std::size_t p) { return pid_where_alive(p); }, interval_ns);
}

/// Begins a report when one is due, and continues the current one. A report because of a stall ends the run, unless
/// the run has moved meanwhile.
void Supervisor::report(std::int64_t now) {
  if (ending_ || signal_ != 0) return;
  const std::uint64_t asked = segment_.header().reports_asked.load(std::memory_order_relaxed);
  if (std::exchange(reports_seen_, asked) != asked) report_asked_ = true;
  if (!reporter_.busy()) {
    if (!stall_.stalled() && !(report_asked_ && outputs_[1].wants_more())) return;
    report_on_stall_ = stall_.stalled();
    report_asked_ = false;
    reporter_.begin(
        now, [this](std::size_t p) { return pid_where_alive(p); }, report_on_stall_);
  }
  const auto views = reporter_.step(now);
  if (!views || (report_on_stall_ && !stall_.stalled())) return;
  say(stall_page(
      !report_on_stall_
          ? fmt::format("a report on {}, asked for by a signal:", base::counted(settings_.pes, "PE"))
          : fmt::format("nothing has moved for {:.3g} s though work is pending:", double(stall_.still_ns()) * 1e-9),
      *views));
  if (report_on_stall_) end_run(exit_status::stalled);
}

void Supervisor::end_run(int status) {
  if (!ending_) status_ = status;
  ending_ = true;
  for (Process& process : processes_) {
    if (process.ended || process.ended_by_us) continue;
    process.ended_by_us = true;
    kill(process.pid, SIGKILL);
  }
}

bool Supervisor::all_ended() const {
  return std::ranges::all_of(processes_, [](const Process& process) { return process.ended; });
}

/// The pid of the process in the run: the one that the supervisor started, or a descendant of it.
pid_t Supervisor::pid_of(const Process& process) const {
  const report::ProcessRecord& process_record =
      report::process_record_of(segment_, process.index * settings_.pes_per_process);
  const pid_t attached = process_record.pid.load(std::memory_order_acquire);
  const bool known = attached != 0 && process_record.pid_namespace.load(std::memory_order_relaxed) == pid_namespace_;
  return known ? attached : process.pid;
}

pid_t Supervisor::pid_where_alive(std::size_t process) const {
  return processes_[process].ended ? -1 : pid_of(processes_[process]);
}

/// Whether the PEs' process died while the started one, for example a shell script, still runs.
bool Supervisor::is_gone_below_parent(const Process& process) const {
  const pid_t pid = pid_of(process);
  // Read pid_of() again: a process that has left the run normally is no longer in the record.
  return pid != process.pid && kill(pid, 0) != 0 && errno == ESRCH && pid_of(process) == pid;
}

std::string Supervisor::pids_of(const Process& process) const {
  const pid_t pid = pid_of(process);
  return pid == process.pid ? fmt::format("pid {}", pid) : fmt::format("pid {}, started by pid {}", pid, process.pid);
}

std::string Supervisor::pes_of(std::size_t process) const {
  const std::size_t first = process * settings_.pes_per_process;
  const std::size_t last = std::min(first + settings_.pes_per_process, settings_.pes) - 1;
  return first == last ? fmt::format("PE {}", first) : fmt::format("the process of PE {} to PE {}", first, last);
}

}  // namespace headway::launch
