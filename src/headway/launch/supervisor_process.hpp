/// What the supervisor keeps of each process that it started, and of its own that started them.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <headway/report/report_signals.hpp>
#include <headway/launch/supervisor.hpp>
#include <headway/base/error.hpp>

namespace headway::launch {

inline void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

struct Supervisor::Process {
  std::size_t index = 0;
  pid_t pid = -1;
  int descriptor = -1;       // a pidfd, or -1 where the system has none
  int output[2] = {-1, -1};  // what it writes to standard output and error
  LineSplitter lines[2];
  bool ended = false;
  bool ended_by_us = false;
  std::int64_t failed_at = 0;  // when it was first seen to have recorded a failure
  int wait_status = 0;
};

/// What is changed of the caller's process for the time of the run, to be put back, also in each child.
struct Supervisor::Caller {
  std::array<int, 3> ending = {SIGINT, SIGTERM, SIGHUP};
  sigset_t signals_before;
  struct sigaction pipe_before {
  }, child_before{};
  rlimit descriptors_before{};
  bool takes_reports = false;  // the signal that asks for one
  int descriptor = -1;  // the signals that end a program arrive here, those apart that the caller ignores or blocks

  Caller() {
    sigset_t watched;
    sigemptyset(&watched);
    sigprocmask(SIG_BLOCK, nullptr, &signals_before);
    for (const int signal : ending) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN && sigismember(&signals_before, signal) == 0) sigaddset(&watched, signal);
    }
    // One that the caller ignores, blocks or handles is the caller's.
    struct sigaction report {};
    sigaction(report::report_signal(), nullptr, &report);
    takes_reports = report.sa_handler == SIG_DFL && sigismember(&signals_before, report::report_signal()) == 0;
    if (takes_reports) sigaddset(&watched, report::report_signal());
    descriptor = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) throw_errno("signalfd");
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    struct sigaction action {};
    action.sa_handler = SIG_IGN;  // a closed output is an error, not a death
    sigaction(SIGPIPE, &action, &pipe_before);
    action.sa_handler = SIG_DFL;  // nobody else may wait for our children
    sigaction(SIGCHLD, &action, &child_before);
    if (getrlimit(RLIMIT_NOFILE, &descriptors_before) == 0) {
      const rlimit most{descriptors_before.rlim_max, descriptors_before.rlim_max};
      setrlimit(RLIMIT_NOFILE, &most);
    }
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller() {
    close(descriptor);
    if (takes_reports) {  // one that has come too late does nothing
      ::signal(report::report_signal(), SIG_IGN);
      ::signal(report::report_signal(), SIG_DFL);
    }
    restore();
  }
  void restore() const {
    setrlimit(RLIMIT_NOFILE, &descriptors_before);
    sigaction(SIGCHLD, &child_before, nullptr);
    sigaction(SIGPIPE, &pipe_before, nullptr);
    sigprocmask(SIG_SETMASK, &signals_before, nullptr);
  }
};

}  // namespace headway::launch
