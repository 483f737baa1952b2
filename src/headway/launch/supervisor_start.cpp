// SPDX-License-Identifier: BSD-3-Clause
// How the supervisor starts a process, and the first steps of that process.
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio_ext.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <headway/base/counted.hpp>
#include <headway/launch/supervisor_process.hpp>

namespace headway::launch {
namespace {

/// Limits that may have refused a fork, and how to stay below them.
std::string processes_limit() {
  rlimit limit{};
  const bool limited = getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return fmt::format(" ({}a container's pids.max may allow fewer; use fewer PEs)",
                     limited ? fmt::format("ulimit -u allows this user {}; ",
                                           base::counted(limit.rlim_cur, "process or thread", "processes and threads"))
                             : "");
}

}  // namespace

void Supervisor::start(std::size_t p, const Child& child, bool on_terminal, const Caller& caller) {
  Process& process = processes_[p];
  process.index = p;
  int ends[2][2] = {{-1, -1}, {-1, -1}};
  auto throw_after_closing = [&](const std::string& call) {
    const int error = errno;
    for (auto& pair : ends) {
      for (int& end : pair) close_if_open(end);
    }
    errno = error;
    const bool descriptors = error == EMFILE || error == ENFILE;
    base::throw_errno(!descriptors ? call.c_str()
                                   : fmt::format("{}: {} {} 3 descriptors each (ulimit -n allows {})", call,
                                                 base::counted(processes_.size(), "process"),
                                                 base::by_number(processes_.size(), "needs", "need"),
                                                 caller.descriptors_before.rlim_max)
                                         .c_str());
  };
  for (int stream = 0; stream < 2 && !on_terminal; ++stream) {
    if (pipe2(ends[stream], O_CLOEXEC) != 0) throw_after_closing("pipe");
  }
  const pid_t supervisor = getpid();
  process.pid = fork();
  if (process.pid < 0) {
    const int error = errno;
    const std::string call = fmt::format("fork of process {} of {}", p, processes_.size());
    const std::string limit = error == EAGAIN ? processes_limit() : "";
    errno = error;
    throw_after_closing(call + limit);
  }
  if (process.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(exit_status::failed);
    for (int stream = 0; stream < 2 && !on_terminal; ++stream) {
      dup2(ends[stream][1], stream + 1);
      close(ends[stream][0]);
      close(ends[stream][1]);
    }
    if (p != 0 && !on_terminal) {
      const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        close(nothing);
      }
      __fpurge(stdin);  // input that the caller has buffered belongs to PE 0 alone
    }
    become_child(p, child, caller);
  }
  process.descriptor = int(syscall(SYS_pidfd_open, process.pid, 0));
  if (process.descriptor < 0 && errno == EMFILE) throw_after_closing("pidfd_open");
  for (int stream = 0; stream < 2; ++stream) {
    close_if_open(ends[stream][1]);
    process.output[stream] = ends[stream][0];
    if (process.output[stream] >= 0) fcntl(process.output[stream], F_SETFL, O_NONBLOCK);
  }
}

void Supervisor::become_child(std::size_t p, const Child& child, const Caller& caller) {
  for (Process& other : processes_) {
    for (int& output : other.output) close_if_open(output);
    close_if_open(other.descriptor);
  }
  close(lifeline_[1]);
  fcntl(lifeline_[0], F_SETFD, 0);  // lifeline and segment stay open after exec
  close(caller.descriptor);
  caller.restore();
  StartFailure failure;
  try {
    failure = child(p, fmt::format("{}:{}:{}", segment_.descriptor(), lifeline_[0], p));
  } catch (const std::exception& error) {
    failure = {error.what(), exit_status::unusable_settings};
  }
  report::PeBoard& board = report::board_of(segment_, p * settings_.pes_per_process);
  const std::size_t length = std::min(failure.text.size(), sizeof board.failure_text - 1);
  std::memcpy(board.failure_text, failure.text.data(), length);
  board.failure_text[length] = 0;
  board.failure.store(report::FailureKind::settings, std::memory_order_release);
  _exit(failure.status);
}

}  // namespace headway::launch
