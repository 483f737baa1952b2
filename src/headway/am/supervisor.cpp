#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <headway/am/board.hpp>
#include <headway/am/supervisor.hpp>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>

namespace headway::am {
namespace {

constexpr int watch_interval_ms = 100;
constexpr std::int64_t interrupt_patience_ns = 1'000'000'000;
constexpr std::size_t line_bytes_max = 64 * 1024;  // a longer line is passed on in pieces

PeBoard& board_of(const local::Segment& segment, std::size_t pe) {
  return *reinterpret_cast<PeBoard*>(segment.board(pe).data());
}

void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

bool is_stopped(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(status, text);
  const auto name_end = text.rfind(')');
  return name_end != text.npos && name_end + 2 < text.size() && text[name_end + 2] == 'T';
}

const char* describe(Phase phase) {
  switch (phase) {
    case Phase::starting: return "is starting";
    case Phase::computing: return "is outside the library";
    case Phase::sending: return "waits in a send";
    case Phase::quiescing: return "waits in quiesce()";
    case Phase::collective: return "waits in a blocking collective";
    case Phase::finished: return "has finished";
  }
  return "is in an unknown state";
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

struct Supervisor::Process {
  std::size_t index = 0;
  pid_t pid = -1;
  int descriptor = -1;         // a pidfd
  int output[2] = {-1, -1};    // what it writes to standard output and error
  std::string partial[2];      // lines that are not complete yet
  bool ended = false;
  bool ended_by_us = false;
  int wait_status = 0;
};

/// While it lives, the signals that end a program arrive at `descriptor` and a closed output is an error, not a death.
struct Supervisor::Signals {
  sigset_t watched, before;
  struct sigaction pipe_before {};
  int descriptor;

  Signals() {
    sigemptyset(&watched);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&watched, signal);
    sigprocmask(SIG_BLOCK, &watched, &before);
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &pipe_before);
    descriptor = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~Signals() {
    close(descriptor);
    restore();
  }
  void restore() const {
    sigaction(SIGPIPE, &pipe_before, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }
};

Supervisor::Supervisor(const Settings& settings)
    : settings_(settings),
      segment_(settings.pes, settings.processes(), settings.pes_per_process, settings.budget_bytes) {
  local::SegmentHeader& header = segment_.header();
  header.spill_bytes = settings.spill_bytes;
  header.bind_cores = settings.bind == Bind::core;
}

Supervisor::~Supervisor() {
  for (Process& process : processes_) {
    for (int& output : process.output) close_if_open(output);
    close_if_open(process.descriptor);
  }
  for (int& end : lifeline_) close_if_open(end);
}

int Supervisor::run(const std::function<void(std::size_t, const std::string&)>& child, int on_terminal) {
  raise_descriptor_limit();
  if (pipe(lifeline_) != 0) throw_errno("pipe");
  std::fflush(nullptr);  // or children would write it again
  int signal_taken = 0;
  {
    Signals signals;
    const std::size_t processes = settings_.processes();
    if (processes == 1) on_terminal = 0;
    processes_.resize(processes);
    try {
      for (std::size_t p = 0; p < processes; ++p) start(p, child, int(p) == on_terminal, signals);
    } catch (...) {
      end_others();
      for (Process& process : processes_) {
        if (process.pid > 0) waitpid(process.pid, nullptr, 0);
      }
      throw;
    }
    close_if_open(lifeline_[0]);
    signal_taken = watch(signals);
  }
  if (signal_taken != 0) {
    raise(signal_taken);  // as the caller would have got it
    return 128 + signal_taken;
  }
  return status_;
}

void Supervisor::start(std::size_t p, const std::function<void(std::size_t, const std::string&)>& child,
                       bool on_terminal, const Signals& signals) {
  Process& process = processes_[p];
  process.index = p;
  int pipes[2][2] = {{-1, -1}, {-1, -1}};
  if (!on_terminal) {
    for (auto& ends : pipes) {
      if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe");
    }
  }
  const pid_t supervisor = getpid();
  process.pid = fork();
  if (process.pid < 0) {
    const int error = errno;
    for (auto& ends : pipes) {
      for (int& end : ends) close_if_open(end);
    }
    errno = error;
    throw_errno(fmt::format("fork of process {} of {}", p, processes_.size()).c_str());
  }
  if (process.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(exit_status::failed);
    for (Process& other : processes_) {
      for (int& output : other.output) close_if_open(output);
      close_if_open(other.descriptor);
    }
    close_if_open(lifeline_[1]);
    close(signals.descriptor);
    signals.restore();
    if (!on_terminal) {
      for (int stream = 0; stream < 2; ++stream) {
        dup2(pipes[stream][1], stream + 1);
        close(pipes[stream][0]);
        close(pipes[stream][1]);
      }
    }
    if (p != 0 && !on_terminal) {
      const int nothing = open("/dev/null", O_RDONLY);
      if (nothing >= 0) {
        dup2(nothing, 0);
        close(nothing);
      }
    }
    child(p, fmt::format("{}:{}:{}", segment_.descriptor(), lifeline_[0], p));
    _exit(exit_status::failed);
  }
  for (int stream = 0; stream < 2; ++stream) {
    close_if_open(pipes[stream][1]);
    process.output[stream] = pipes[stream][0];
    if (process.output[stream] >= 0) fcntl(process.output[stream], F_SETFL, O_NONBLOCK);
  }
  process.descriptor = int(syscall(SYS_pidfd_open, process.pid, 0));
  if (process.descriptor < 0) throw_errno("pidfd_open");
}

int Supervisor::watch(Signals& signals) {
  int signal_taken = 0;
  moved_at_ = monotonic_ns();
  for (;;) {
    std::vector<pollfd> polled{{signals.descriptor, POLLIN, 0}};
    std::vector<std::pair<Process*, int>> meaning{{nullptr, 0}};  // stream, or -1 for the end of the process
    for (Process& process : processes_) {
      for (int stream = 0; stream < 2; ++stream) {
        if (process.output[stream] < 0) continue;
        polled.push_back({process.output[stream], POLLIN, 0});
        meaning.emplace_back(&process, stream);
      }
      if (process.ended) continue;
      polled.push_back({process.descriptor, POLLIN, 0});
      meaning.emplace_back(&process, -1);
    }
    if (polled.size() == 1) break;
    const int ready = poll(polled.data(), polled.size(), watch_interval_ms);

    signalfd_siginfo information{};
    while (read(signals.descriptor, &information, sizeof information) == sizeof information) {
      if (signal_taken == 0) signal_taken = int(information.ssi_signo);
      interrupted_ = true;
      if (ending_since_ == 0) ending_since_ = monotonic_ns();
      // One from the terminal reaches the whole group; one sent to this process must be passed on.
      if (information.ssi_code != SI_KERNEL) {
        for (const Process& process : processes_) {
          if (!process.ended) kill(process.pid, int(information.ssi_signo));
        }
      }
    }
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (meaning[i].second >= 0 && polled[i].revents != 0) read_output(*meaning[i].first, meaning[i].second);
    }
    for (std::size_t i = 1; i < polled.size(); ++i) {
      if (meaning[i].second < 0 && polled[i].revents != 0) note_end(*meaning[i].first);
    }
    if (ready == 0 && isatty(1)) {  // a prompt without a line's end
      Process& first = processes_.front();
      if (!first.partial[0].empty()) write_out(0, first.partial[0].data(), first.partial[0].size());
      first.partial[0].clear();
    }
    if (interrupted_ && monotonic_ns() - ending_since_ > interrupt_patience_ns) end_others();
    if (!failed_ && !interrupted_) check_for_stall();
  }
  for (const Process& process : processes_) {
    if (!failed_ && status_ == 0 && WIFEXITED(process.wait_status)) status_ = WEXITSTATUS(process.wait_status);
  }
  return interrupted_ ? signal_taken : 0;
}

void Supervisor::note_end(Process& process) {
  waitpid(process.pid, &process.wait_status, 0);
  process.ended = true;
  segment_.header().processes_gone.fetch_add(1, std::memory_order_release);
  for (int stream = 0; stream < 2; ++stream) {
    if (process.output[stream] >= 0) read_output(process, stream);
    write_out(stream, process.partial[stream].data(), process.partial[stream].size());
    process.partial[stream].clear();
    close_if_open(process.output[stream]);
  }
  if (!process.ended_by_us && !interrupted_) explain_end(process);
}

void Supervisor::explain_end(const Process& process) {
  const std::size_t first = process.index * settings_.pes_per_process;
  const std::size_t last = std::min(first + settings_.pes_per_process, settings_.pes) - 1;
  for (std::size_t pe = first; pe <= last; ++pe) {
    const PeBoard& board = board_of(segment_, pe);
    const FailureKind kind = board.failure.load(std::memory_order_acquire);
    if (kind == FailureKind::none) continue;
    say(fmt::format("PE {} (pid {}): {}", pe, process.pid, board.failure_text));
    if (!failed_) status_ = int(kind);
    failed_ = true;
    end_others();
    return;
  }
  const PeBoard& board = board_of(segment_, first);
  const bool finished = board.process_finished.load(std::memory_order_acquire) != 0;
  const bool attached = board.phase.load(std::memory_order_relaxed) != Phase::starting;
  if (WIFEXITED(process.wait_status)) {
    if (finished) return;
    const int status = WEXITSTATUS(process.wait_status);
    if (!attached) {
      // The program ended before run(): its own words and its own status.
      if (status != 0 && !failed_) {
        status_ = status;
        failed_ = true;
        end_others();
      }
      return;
    }
    say(fmt::format("{} (pid {}) exited with status {} before run() had finished", pes_of(process.index), process.pid,
                    status));
  } else {
    const int signal = WTERMSIG(process.wait_status);
    say(fmt::format("{} (pid {}) was killed by signal {} ({}){}", pes_of(process.index), process.pid, signal,
                    strsignal(signal), finished ? " after run() had finished" : ""));
  }
  if (!failed_) status_ = exit_status::failed;
  failed_ = true;
  end_others();
}

void Supervisor::end_others() {
  for (Process& process : processes_) {
    if (process.pid <= 0 || process.ended || process.ended_by_us) continue;
    process.ended_by_us = true;
    kill(process.pid, SIGKILL);
  }
}

void Supervisor::check_for_stall() {
  const std::int64_t now = monotonic_ns();
  std::uint64_t activity = 0;
  bool somebody_waits = false, somebody_runs = false;
  for (const Process& process : processes_) {
    if (process.ended) continue;
    const std::size_t first = process.index * settings_.pes_per_process;
    for (std::size_t pe = first; pe < std::min(first + settings_.pes_per_process, settings_.pes); ++pe) {
      const PeBoard& board = board_of(segment_, pe);
      activity += board.activity.load(std::memory_order_relaxed);
      const Phase phase = board.phase.load(std::memory_order_relaxed);
      if (phase == Phase::sending || phase == Phase::quiescing || phase == Phase::collective) somebody_waits = true;
      if ((phase == Phase::computing || phase == Phase::starting) && !is_stopped(process.pid)) somebody_runs = true;
    }
  }
  if (activity != activity_ || somebody_runs || !somebody_waits) {
    activity_ = activity;
    moved_at_ = now;
    return;
  }
  if (settings_.stall.count() == 0 || now - moved_at_ < settings_.stall.count()) return;

  std::string page = fmt::format("nothing has moved for {:.3g} s though work is pending:", double(now - moved_at_) * 1e-9);
  for (std::size_t pe = 0; pe < settings_.pes; ++pe) {
    const Process& process = processes_[pe / settings_.pes_per_process];
    const PeBoard& board = board_of(segment_, pe);
    const std::uint32_t peer = board.waiting_for.load(std::memory_order_relaxed);
    const Phase phase = board.phase.load(std::memory_order_relaxed);
    page += fmt::format("\n  PE {} (pid {}) {}{}{}; messages created {}, handled {}; frames held {}", pe, process.pid,
                        describe(phase),
                        peer != no_pe && phase == Phase::sending ? fmt::format(" for room to PE {}", peer) : "",
                        !process.ended && is_stopped(process.pid) ? " and is stopped by a signal" : "",
                        board.created.load(std::memory_order_relaxed), board.handled.load(std::memory_order_relaxed),
                        board.held_frames.load(std::memory_order_relaxed));
  }
  say(page);
  status_ = exit_status::stalled;
  failed_ = true;
  end_others();
}

std::string Supervisor::pes_of(std::size_t process) const {
  const std::size_t first = process * settings_.pes_per_process;
  const std::size_t last = std::min(first + settings_.pes_per_process, settings_.pes) - 1;
  return first == last ? fmt::format("PE {}", first) : fmt::format("the process of PE {} to PE {}", first, last);
}

void Supervisor::read_output(Process& process, int stream) {
  char buffer[16384];
  std::string& partial = process.partial[stream];
  for (;;) {
    const ssize_t got = read(process.output[stream], buffer, sizeof buffer);
    if (got == 0) return close_if_open(process.output[stream]);
    if (got < 0) return;
    partial.append(buffer, std::size_t(got));
    const auto line_end = partial.rfind('\n');
    const std::size_t whole = line_end != partial.npos ? line_end + 1 : partial.size() > line_bytes_max ? partial.size() : 0;
    write_out(stream, partial.data(), whole);
    partial.erase(0, whole);
  }
}

void Supervisor::write_out(int stream, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(stream + 1, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd writable{stream + 1, POLLOUT, 0};
      poll(&writable, 1, watch_interval_ms);
      continue;
    }
    if (written <= 0) return;  // nobody reads it any more
    data += written;
    bytes -= std::size_t(written);
  }
}

void Supervisor::say(const std::string& text) {
  const std::string line = "headway: " + text + "\n";
  write_out(1, line.data(), line.size());
}

}  // namespace headway::am
