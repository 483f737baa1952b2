// SPDX-License-Identifier: BSD-3-Clause
#include "processes.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>

namespace headway::limit {
namespace {

std::string with_reason(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

void bind_to(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof set, &set);  // a wish
}

/// A forked process from its first line to its last.
[[noreturn]] void be_process(Pe pe, int processor, pid_t supervisor, const sigset_t& signals,
                             const std::function<void(Pe&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // it died before it was asked for
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // siblings may read this process's memory where Yama would not let them
  if (processor >= 0) bind_to(processor);
  try {
    body(pe);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "headway-limit: PE %zu: %s\n", pe.id(), error.what());
    ::_exit(1);
  }
  ::_exit(0);
}

std::string how_it_ended(std::size_t pe, pid_t process, int status) {
  const std::string who = "PE " + std::to_string(pe) + " (process " + std::to_string(process) + ")";
  if (WIFSIGNALED(status)) return who + " was ended by signal " + std::to_string(WTERMSIG(status));
  return who + " ended with status " + std::to_string(WEXITSTATUS(status));
}

/// The processes of a run, which do not outlive this object.
class Children {
 public:
  ~Children() { end_all(); }
  void add(pid_t process) { processes_.push_back(process); }

  /// Reaps the processes that have ended. Returns the error of one that failed, or an empty string.
  std::string reap() {
    int status = 0;
    for (pid_t ended; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      for (std::size_t pe = 0; pe < processes_.size(); ++pe) {
        if (processes_[pe] != ended) continue;
        processes_[pe] = 0;
        ++ended_;
        if (status != 0) return how_it_ended(pe, ended, status);
      }
    }
    return "";
  }
  bool all_ended() const { return ended_ == processes_.size(); }

 private:
  void end_all() {
    for (const pid_t process : processes_) {
      if (process != 0) ::kill(process, SIGKILL);
    }
    for (const pid_t process : processes_) {
      while (process != 0 && ::waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }
  std::vector<pid_t> processes_;
  std::size_t ended_ = 0;
};

/// Holds SIGCHLD back, to be taken by sigtimedwait.
class HeldSignal {
 public:
  HeldSignal() {
    sigset_t held;
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &held, &before_);
  }
  ~HeldSignal() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;
  const sigset_t& before() const { return before_; }

  static void wait(double seconds) {
    sigset_t held;
    ::sigemptyset(&held);
    ::sigaddset(&held, SIGCHLD);
    const auto whole = time_t(seconds);
    const timespec time{whole, long((seconds - double(whole)) * 1e9)};
    ::sigtimedwait(&held, nullptr, &time);
  }

 private:
  sigset_t before_;
};

std::string supervise(Children& children, std::chrono::seconds time_limit) {
  const double deadline = now() + double(time_limit.count());
  while (true) {
    if (std::string failure = children.reap(); !failure.empty()) return failure;
    if (children.all_ended()) return "";
    const double left = deadline - now();
    if (left <= 0) return "not finished within " + std::to_string(time_limit.count()) + " s (--time-limit)";
    HeldSignal::wait(left);
  }
}

}  // namespace

Memory::Memory(Kind kind, std::size_t bytes) : bytes_(bytes == 0 ? 1 : bytes) {
  const int sharing = kind == Kind::shared ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error(with_reason("mmap"));
  if (kind == Kind::own) ::madvise(memory, bytes_, MADV_HUGEPAGE);  // a wish
  data_ = static_cast<std::byte*>(memory);
}

Memory::~Memory() { ::munmap(data_, bytes_); }

void Pe::meet_all() {
  const std::uint32_t meeting = meeting_.meetings.load(std::memory_order_acquire);
  if (meeting_.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    meeting_.arrived.store(0, std::memory_order_relaxed);
    meeting_.meetings.store(meeting + 1, std::memory_order_release);
    return;
  }
  Waiting wait = waiting();
  while (meeting_.meetings.load(std::memory_order_acquire) == meeting) wait.turn();
}

double Pe::largest_of_all(double number) {
  meeting_.values[id_].number = number;
  meet_all();
  double largest = number;
  for (std::size_t pe = 0; pe < size_; ++pe) largest = std::max(largest, meeting_.values[pe].number);
  meet_all();
  return largest;
}

std::uint64_t Pe::sum_of_all(std::uint64_t count) {
  meeting_.values[id_].count = count;
  meet_all();
  std::uint64_t sum = 0;
  for (std::size_t pe = 0; pe < size_; ++pe) sum += meeting_.values[pe].count;
  meet_all();
  return sum;
}

std::vector<int> processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> allowed;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &set)) allowed.push_back(processor);
  }
  return allowed;
}

std::string run_processes(std::size_t pes, bool bind, std::chrono::seconds time_limit,
                          const std::function<void(Pe&)>& body) {
  const Memory memory(Memory::Kind::shared, sizeof(Meeting));
  Meeting& meeting = *new (memory.data()) Meeting{};
  const std::vector<int> places = processors();
  const bool crowded = pes > places.size();
  const pid_t supervisor = ::getpid();
  const HeldSignal held;
  Children children;
  for (std::size_t pe = 0; pe < pes; ++pe) {
    const pid_t process = ::fork();
    if (process < 0) return with_reason("fork");
    if (process == 0) {
      be_process(Pe(meeting, pe, pes, crowded), bind && !crowded ? places[pe] : -1, supervisor, held.before(), body);
    }
    children.add(process);
  }
  return supervise(children, time_limit);
}

}  // namespace headway::limit
