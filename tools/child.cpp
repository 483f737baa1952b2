// SPDX-License-Identifier: BSD-3-Clause
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>

namespace headway::tools {
namespace {

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) base::throw_errno("pipe2");
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    ::close(read);
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
};

/// The signals that end or stop this process, and that of an ended child, held back and taken one by one. Those that
/// this process ignores, as under nohup, stay ignored.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&held_);
    ::sigaddset(&held_, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP}) {
      struct sigaction action {};
      ::sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) ::sigaddset(&held_, signal);
    }
    descriptor_ = ::signalfd(-1, &held_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor_ < 0) base::throw_errno("signalfd");
    ::signal(SIGCHLD, SIG_DFL);  // ignored, as it may be inherited, it would not come
    ::sigprocmask(SIG_BLOCK, &held_, &before_);
  }
  ~HeldSignals() {
    release();
    ::close(descriptor_);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  void release() const { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  /// Lets the signal act on this process as if it were not held; returns when this process goes on.
  void give_in(int signal) const {
    sigset_t it;
    ::sigemptyset(&it);
    ::sigaddset(&it, signal);
    ::raise(signal);
    ::sigprocmask(SIG_UNBLOCK, &it, nullptr);
    ::sigprocmask(SIG_BLOCK, &it, nullptr);
  }
  int descriptor() const { return descriptor_; }
  /// The next one that has come, or 0.
  int next() const {
    signalfd_siginfo signal;
    return ::read(descriptor_, &signal, sizeof signal) == sizeof signal ? int(signal.ssi_signo) : 0;
  }

 private:
  sigset_t held_{}, before_{};
  int descriptor_ = -1;
};

[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<Variable>& environment,
                         const Pipe& output, const Pipe& errors) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output.write, STDOUT_FILENO);
  ::dup2(errors.write, STDERR_FILENO);
  for (const Variable& variable : environment) ::setenv(variable.name.c_str(), variable.value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "cannot start %s: %s\n", arguments[0], std::strerror(errno));
  ::_exit(127);
}

/// Reads a child's output and ends its group when it must. Does not reap the child, so that no other process gets the
/// group's number meanwhile.
class Watch {
 public:
  Watch(pid_t child, const HeldSignals& signals, const Pipe& output, const Pipe& errors, std::size_t kept_bytes_max,
        ChildResult& result)
      : child_(child), signals_(&signals), kept_bytes_max_(kept_bytes_max), result_(&result) {
    polled_ = {pollfd{output.read, POLLIN, 0}, pollfd{errors.read, POLLIN, 0}, pollfd{signals.descriptor(), POLLIN, 0}};
  }

  /// Returns when the child has ended and no process can write to its pipes any more, or the whole group was killed.
  void wait(std::chrono::seconds limit) {
    deadline_ns_ = base::monotonic_ns() + std::chrono::nanoseconds(limit).count();
    while (!child_ended_ || polled_[0].fd >= 0 || polled_[1].fd >= 0) {
      const std::int64_t left_ms = (deadline_ns_ - base::monotonic_ns()) / 1'000'000;
      if (left_ms <= 0) {
        if (ending_) break;
        result_->timed_out = true;
        end_group(SIGTERM);
        continue;
      }
      if (::poll(polled_.data(), polled_.size(), int(std::min<std::int64_t>(left_ms + 1, 1'000'000))) < 0 &&
          errno != EINTR) {
        base::throw_errno("poll");
      }
      read_piece(polled_[0], result_->output);
      read_piece(polled_[1], result_->errors);
      take_signals();
    }
    if (ending_) ::kill(-child_, SIGKILL);
    keep_last(result_->output, kept_bytes_max_);
    keep_last(result_->errors, kept_bytes_max_);
  }

  /// The signal that this process was sent, or 0.
  int ended_by() const { return ended_by_; }

 private:
  /// After five seconds the rest of the group is killed.
  void end_group(int signal) {
    ::kill(-child_, signal);
    if (!ending_) deadline_ns_ = base::monotonic_ns() + 5'000'000'000;
    ending_ = true;
  }

  /// Stops the group, and then this process, until a signal lets this process go on.
  void stop() {
    const std::int64_t begin = base::monotonic_ns();
    ::kill(-child_, SIGSTOP);
    signals_->give_in(SIGTSTP);
    ::kill(-child_, SIGCONT);
    const std::int64_t ns = base::monotonic_ns() - begin;
    deadline_ns_ += ns;
    result_->stopped += std::chrono::nanoseconds(ns);
  }

  void take_signals() {
    while (const int signal = signals_->next()) {
      if (signal == SIGCHLD) {
        siginfo_t ended{};
        child_ended_ = ::waitid(P_PID, id_t(child_), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
      } else if (signal == SIGTSTP) {
        stop();
      } else {
        ended_by_ = signal;
        end_group(signal);
      }
    }
  }

  void read_piece(pollfd& polled, std::string& text) const {
    if (polled.fd < 0 || polled.revents == 0) return;
    std::array<char, 65536> piece;
    const ssize_t bytes = ::read(polled.fd, piece.data(), piece.size());
    if (bytes > 0) text.append(piece.data(), std::size_t(bytes));
    if (text.size() / 2 >= kept_bytes_max_) keep_last(text, kept_bytes_max_);
    if (bytes == 0 || (bytes < 0 && errno != EINTR)) polled.fd = -1;
  }

  static void keep_last(std::string& text, std::size_t bytes_max) {
    if (text.size() > bytes_max) text.erase(0, text.size() - bytes_max);
  }

  pid_t child_;
  const HeldSignals* signals_;
  std::size_t kept_bytes_max_;
  ChildResult* result_;
  std::array<pollfd, 3> polled_;
  std::int64_t deadline_ns_ = 0;
  bool child_ended_ = false, ending_ = false;
  int ended_by_ = 0;
};

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, const std::vector<Variable>& environment,
                      std::chrono::seconds limit, std::size_t kept_bytes_max) {
  const HeldSignals signals;
  Pipe output, errors;
  const pid_t child = ::fork();
  if (child < 0) base::throw_errno("fork");
  if (child == 0) {
    signals.release();
    become(command, environment, output, errors);
  }
  ::setpgid(child, child);  // the child does this too: either may be first
  output.close_write();
  errors.close_write();
  ChildResult result;
  Watch watch(child, signals, output, errors, kept_bytes_max, result);
  watch.wait(limit);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) base::throw_errno("waitpid");
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (watch.ended_by() != 0) {
    signals.release();
    ::raise(watch.ended_by());
  }
  return result;
}

}  // namespace headway::tools
