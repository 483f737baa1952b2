// SPDX-License-Identifier: BSD-3-Clause
/// The supervisor's state for each process, and for its own process.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <headway/base/error.hpp>
#include <headway/launch/supervisor.hpp>
#include <headway/report/report_signals.hpp>

namespace headway::launch {

inline void close_if_open(int& descriptor) {
  if (descriptor >= 0) close(descriptor);
  descriptor = -1;
}

struct Supervisor::Process {
  std::size_t index = 0;
  pid_t pid = -1;
  int descriptor = -1;       // pidfd, or -1 if the system has none
  int output[2] = {-1, -1};  // pipes from its standard output and error
  LineSplitter lines[2];
  bool ended = false;
  bool ended_by_us = false;
  std::int64_t failed_at = 0;  // time at which a recorded failure was first seen; 0: none
  int wait_status = 0;
};

/// Changes the caller's process during the run: signals and limits. restore() undoes it, also in each child.
struct Supervisor::Caller {
  std::array<int, 3> ending = {SIGINT, SIGTERM, SIGHUP};
  sigset_t signals_before;
  struct sigaction pipe_before {
  }, child_before{};
  rlimit descriptors_before{};
  bool takes_reports = false;  // whether this process handles the signal for reports
  int descriptor = -1;         // signalfd of signals that end a program, except those that the caller ignores or blocks

  Caller() {
    sigset_t watched;
    sigemptyset(&watched);
    sigprocmask(SIG_BLOCK, nullptr, &signals_before);
    for (const int signal : ending) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN && sigismember(&signals_before, signal) == 0) sigaddset(&watched, signal);
    }
    // The supervisor leaves a signal that the caller ignores, blocks or handles.
    struct sigaction report {};
    sigaction(report::report_signal(), nullptr, &report);
    takes_reports = report.sa_handler == SIG_DFL && sigismember(&signals_before, report::report_signal()) == 0;
    if (takes_reports) sigaddset(&watched, report::report_signal());
    descriptor = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) base::throw_errno("signalfd");
    sigprocmask(SIG_BLOCK, &watched, nullptr);
    struct sigaction action {};
    action.sa_handler = SIG_IGN;  // writing to a closed pipe returns EPIPE
    sigaction(SIGPIPE, &action, &pipe_before);
    action.sa_handler = SIG_DFL;  // only the supervisor waits for its children
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
    if (takes_reports) {  // drops a pending request
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
