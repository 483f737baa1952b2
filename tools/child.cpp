#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("pipe2");
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

[[noreturn]] void become(const std::vector<std::string>& command, const std::vector<Variable>& environment,
                         const Pipe& output, const Pipe& errors) {
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

/// Reads both pipes until both are closed. Ends the child by `first`, then by `last` five seconds later.
void collect(pid_t child, Pipe& output, Pipe& errors, std::chrono::seconds limit, ChildResult& result) {
  std::int64_t deadline = monotonic_ns() + std::chrono::nanoseconds(limit).count();
  std::array<pollfd, 2> polled = {pollfd{output.read, POLLIN, 0}, pollfd{errors.read, POLLIN, 0}};
  std::array<std::string*, 2> texts = {&result.output, &result.errors};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    const std::int64_t left_ms = (deadline - monotonic_ns()) / 1'000'000;
    if (left_ms <= 0) {
      ::kill(child, result.timed_out ? SIGKILL : SIGTERM);
      if (result.timed_out) return;
      result.timed_out = true;
      deadline = monotonic_ns() + 5'000'000'000;
      continue;
    }
    if (::poll(polled.data(), polled.size(), int(std::min<std::int64_t>(left_ms + 1, 1'000'000))) < 0 &&
        errno != EINTR) {
      throw_errno("poll");
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      std::array<char, 65536> piece;
      const ssize_t bytes = ::read(polled[i].fd, piece.data(), piece.size());
      if (bytes > 0) texts[i]->append(piece.data(), std::size_t(bytes));
      if (bytes == 0 || (bytes < 0 && errno != EINTR)) polled[i].fd = -1;
    }
  }
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, const std::vector<Variable>& environment,
                      std::chrono::seconds limit) {
  Pipe output, errors;
  const pid_t child = ::fork();
  if (child < 0) throw_errno("fork");
  if (child == 0) become(command, environment, output, errors);
  output.close_write();
  errors.close_write();
  ChildResult result;
  collect(child, output, errors, limit, result);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw_errno("waitpid");
  }
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace headway::tools
