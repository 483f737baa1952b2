// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <thread>
#include <vector>

#include "scenarios.hpp"

namespace victim {
namespace {

bool sums_up(Pe& pe) { return headway::allreduce(pe, std::size_t(1), std::plus<>()) == pe.size(); }

int ignores_child_signals(int argc, char** argv) {
  signal(SIGCHLD, SIG_IGN);
  const int code = headway::run(argc, argv, [](Pe& pe) { return pe.id() == 1 ? 3 : 0; });
  struct sigaction now {};
  sigaction(SIGCHLD, nullptr, &now);
  return now.sa_handler == SIG_IGN ? code : 99;
}

int reaps_all_children(int argc, char** argv) {
  signal(SIGCHLD, [](int) {
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  });
  return headway::run(argc, argv, [](Pe& pe) { return pe.id() == 1 ? 3 : 0; });
}

int ignores_termination(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) signal(s, SIG_IGN);
    say_who(pe);
    for (;;) pe.progress();
  });
}

std::atomic<bool> told{false};

/// cleans_up: a handler of SIGTERM from before run() lets the PEs end in their own way.
int cleans_up(int argc, char** argv) {
  signal(SIGTERM, [](int) { told = true; });
  const int code = headway::run(argc, argv, [](Pe& pe) {
    say_who(pe);
    while (!told) pe.progress();
    std::printf("PE %zu has cleaned up\n", std::size_t(pe.id()));
  });
  std::printf("run returned %d\n", code);
  return code;
}

/// forks: a child of a PE returns from the callable, as if it were the PE.
int forks(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    headway::Aggregator<int> messages(pe);
    std::size_t handled = 0;
    messages.on([&](int) { ++handled; });
    for (std::size_t p = 0; p < pe.size(); ++p) messages.send(p, 1);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      if (argc > 2) pe.quiesce();
      return 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    pe.quiesce();
    if (handled != pe.size() || !sums_up(pe)) return 1;
    std::puts("fine");
    return 0;
  });
}

/// commands: a PE may run others, Headway programs too, by system().
int commands(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    if (!sums_up(pe)) return 1;
    if (std::system("test -z \"$HEADWAY_LAUNCH\" && ls -l /proc/self/fd/ >&2") != 0) return 2;
    if (std::system((std::string(argv[0]) + " hello > /dev/null").c_str()) != 0) return 3;
    return sums_up(pe) ? 0 : 4;
  });
}

int executes(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    if (pe.id() == 0) execlp("true", "true", nullptr);
    for (;;) pe.progress();
  });
}

/// closes_descriptors: all from 3, and opens others in their place.
int closes_descriptors(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    pe.quiesce();
    if (pe.id() % 2 == 0) {
      for (int d = 3; d < 1024; ++d) close(d);
      for (int i = 0; i < 4; ++i) {
        int ends[2];
        if (pipe(ends) != 0) return 1;
        close(ends[1]);  // polls as hung up
      }
    }
    for (int i = 0; i < 30; ++i) {
      if (!sums_up(pe)) return 2;
      usleep(10'000 * useconds_t(1 + pe.id()));
    }
    pe.quiesce();
    return 0;
  });
}

int changes_directory(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    if (chdir("/") != 0) return 1;
    return sums_up(pe) ? 0 : 2;
  });
}

/// uses_stack MIB: an array so large on each PE's stack.
[[gnu::noinline]] int touch(std::size_t bytes) {
  volatile char* array = static_cast<char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 4096) array[i] = 1;
  return array[bytes / 2];
}
int uses_stack(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) { return touch(number(argv[2]) << 20) >= 0 && sums_up(pe) ? 0 : 1; });
}

int has_threads(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    std::atomic<std::uint64_t> count{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 100'000; ++i) ++count;
      });
    const bool good = sums_up(pe);
    for (std::thread& thread : threads) thread.join();
    pe.quiesce();
    return good && count == 400'000 ? 0 : 1;
  });
}

/// leaves_thread: one that runs on when the callable returns.
int leaves_thread(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    std::thread([] {
      for (;;) sleep(1);
    }).detach();
    pe.quiesce();
  });
}

int kills_parent(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    say_who(pe);
    headway::barrier(pe);
    if (pe.id() == 0) kill(getppid(), SIGKILL);
    for (;;) continue;  // never looks whether it is still wanted
  });
}

/// leaves_noise: a process that holds the outputs and writes on when all PEs have ended.
int leaves_noise(int argc, char** argv) {
  return headway::run(argc, argv,
                      [&](Pe& pe) { return pe.id() == 0 && std::system("timeout 20 yes & sleep 0.1") != 0 ? 1 : 0; });
}

/// as_before [bound]: signals, limits, processors and descriptors are the caller's, in the PEs (but processors, where
/// they are bound) and after the run (but descriptors, where another process started this one).
int as_before(int argc, char** argv) {
  struct State {
    void (*handlers[3])(int);
    sigset_t mask;
    rlim_t descriptors;
    cpu_set_t processors;
    bool operator==(const State& other) const {
      for (int i = 0; i < 3; ++i) {
        if (handlers[i] != other.handlers[i]) return false;
      }
      for (int s = 1; s < 32; ++s) {
        if (sigismember(&mask, s) != sigismember(&other.mask, s)) return false;
      }
      return descriptors == other.descriptors && CPU_EQUAL(&processors, &other.processors);
    }
  };
  auto look = [] {
    State state{};
    int i = 0;
    for (const int s : {SIGPIPE, SIGCHLD, SIGINT}) {
      struct sigaction action {};
      sigaction(s, nullptr, &action);
      state.handlers[i++] = action.sa_handler;
    }
    sigprocmask(SIG_BLOCK, nullptr, &state.mask);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    state.descriptors = limit.rlim_cur;
    sched_getaffinity(0, sizeof state.processors, &state.processors);
    return state;
  };
  auto open_descriptors = [] {
    int count = 0;
    for (int d = 0; d < 1024; ++d) count += fcntl(d, F_GETFD) >= 0;
    return count;
  };
  const rlimit some{200, 1000};
  setrlimit(RLIMIT_NOFILE, &some);
  signal(SIGINT, [](int) {});
  const State before_run = look();
  const int descriptors = open_descriptors();
  const int code = headway::run(argc, argv, [&](Pe& pe) {
    State inside = look();
    if (argc > 2) inside.processors = before_run.processors;
    return inside == before_run && sums_up(pe) ? 0 : 1;
  });
  if (code != 0) return code;
  if (!(look() == before_run)) return 2;
  return argc > 2 || open_descriptors() == descriptors ? 0 : 3;
}

/// From now on the system call fails with EPERM, here and in all that comes from here.
bool forbid(std::initializer_list<unsigned> calls) {
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// without_pidfd [FAILURE]: on a system that has none.
int without_pidfd(int argc, char** argv) {
  if (!forbid({SYS_pidfd_open})) return 98;
  return headway::run(argc, argv, [&](Pe& pe) {
    say_who(pe);
    while (argc > 2) pe.progress();
    return sums_up(pe) ? 0 : 1;
  });
}

/// without_memory_access COMMAND ...: executes it where processes may not reach into each other's memory.
int without_memory_access(int, char** argv) {
  if (!forbid({SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace})) return 98;
  execv(argv[2], argv + 2);
  return 97;
}

}  // namespace

Scenarios meddling() {
  return {{"ignores_child_signals", ignores_child_signals},
          {"reaps_all_children", reaps_all_children},
          {"ignores_termination", ignores_termination},
          {"cleans_up", cleans_up},
          {"forks", forks},
          {"commands", commands},
          {"executes", executes},
          {"closes_descriptors", closes_descriptors},
          {"changes_directory", changes_directory},
          {"uses_stack", uses_stack},
          {"has_threads", has_threads},
          {"leaves_thread", leaves_thread},
          {"kills_parent", kills_parent},
          {"leaves_noise", leaves_noise},
          {"as_before", as_before},
          {"without_pidfd", without_pidfd},
          {"without_memory_access", without_memory_access}};
}

}  // namespace victim
