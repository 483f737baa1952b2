// SPDX-License-Identifier: BSD-3-Clause
#include "probes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace headway::tools {
namespace {

constexpr std::uint64_t pattern = 0x6865616477617921;

std::string failed(const char* call, int error) { return fmt::format("{}: {}", call, std::strerror(error)); }

/// Runs `body` in a child process, which ends with its result.
template <class Body>
pid_t start(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string probe_shared_memory() {
  constexpr std::size_t bytes = 1 << 16;
  const int file = ::memfd_create("headway-doctor", MFD_CLOEXEC);
  if (file < 0) return failed("memfd_create", errno);
  if (::ftruncate(file, bytes) != 0) {
    const int error = errno;
    ::close(file);
    return failed("ftruncate of a memfd", error);
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  if (memory == MAP_FAILED) return failed("mmap of a memfd", error);
  auto* const word = static_cast<volatile std::uint64_t*>(memory);
  const pid_t writer = start([word] {
    *word = pattern;
    return 0;
  });
  std::string failure;
  if (writer < 0) failure = failed("fork", errno);
  if (failure.empty() && (wait_for(writer) != 0 || *word != pattern))
    failure = "what one process wrote another did not read";
  ::munmap(memory, bytes);
  return failure;
}

std::string probe_pidfd() {
  const long descriptor = ::syscall(SYS_pidfd_open, ::getpid(), 0);
  if (descriptor < 0) return failed("pidfd_open", errno);
  ::close(int(descriptor));
  return "";
}

std::string probe_cross_memory_attach() {
  static std::uint64_t word = 0;  // at the same address in both children
  int ready[2];
  if (::pipe(ready) != 0) return failed("pipe", errno);
  const pid_t holder = start([&ready] {
    word = pattern;
    const char byte = 1;
    if (::write(ready[1], &byte, 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char byte = 0;
  const bool held = holder > 0 && ::read(ready[0], &byte, 1) == 1;
  int status = -1;
  if (held) {
    const pid_t reader = start([holder] {
      std::uint64_t copy = 0;
      const iovec here{&copy, sizeof copy}, there{&word, sizeof word};
      const ssize_t bytes = ::process_vm_readv(holder, &here, 1, &there, 1, 0);
      if (bytes < 0) return errno;
      return bytes == sizeof copy && copy == pattern ? 0 : 255;
    });
    status = wait_for(reader);
  }
  if (holder > 0) {
    ::kill(holder, SIGKILL);
    wait_for(holder);
  }
  ::close(ready[0]);
  ::close(ready[1]);
  if (!held || status < 0) return "no process could be made to try it";
  if (status == 255) return "process_vm_readv read something else";
  return status == 0 ? "" : failed("process_vm_readv", status);
}

std::string probe_descriptor_of_sibling() {
  const int file = ::memfd_create("headway-doctor", MFD_CLOEXEC);
  if (file < 0) return failed("memfd_create", errno);
  const pid_t holder = start([] {
    ::pause();
    return 0;
  });
  int status = -1;
  if (holder > 0) {
    const pid_t opener = start([holder, file] {
      const std::string path = fmt::format("/proc/{}/fd/{}", holder, file);
      return ::open(path.c_str(), O_RDWR | O_CLOEXEC) >= 0 ? 0 : errno;
    });
    status = wait_for(opener);
    ::kill(holder, SIGKILL);
    wait_for(holder);
  }
  ::close(file);
  if (status < 0) return "no process could be made to try it";
  return status == 0 ? "" : failed("opening what a sibling has open in /proc", status);
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::uint64_t open_files_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace headway::tools
