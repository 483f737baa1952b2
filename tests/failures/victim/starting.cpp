// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <sys/wait.h>

#include <cstring>
#include <headway/launch/launch.hpp>
#include <mutex>
#include <thread>

#include "scenarios.hpp"

namespace victim {
namespace {

int hello(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    std::printf("hello from PE %zu of %zu\n", std::size_t(pe.id()), pe.size());
    pe.quiesce();
  });
}

/// status A B ...: each PE returns the argument of its number.
int status(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) { return int(pe.id()) + 2 < argc ? std::atoi(argv[pe.id() + 2]) : 0; });
}

/// Every PE sends a message to every one. Returns whether all came.
bool all_to_all(Pe& pe) {
  headway::Aggregator<int> messages(pe);
  std::size_t handled = 0;
  messages.on([&](int) { ++handled; });
  for (std::size_t p = 0; p < pe.size(); ++p) messages.send(p, 1);
  pe.quiesce();
  return handled == pe.size();
}

/// twice: runs one after the other; the second one returns 5 on PE 1.
int twice(int argc, char** argv) {
  int codes[2];
  for (int i = 0; i < 2; ++i) {
    codes[i] = headway::run(argc, argv, [&](Pe& pe) {
      if (!all_to_all(pe)) return 1;
      std::printf("run %d on PE %zu\n", i, std::size_t(pe.id()));
      return pe.id() == 1 ? i * 5 : 0;
    });
  }
  return codes[1] * 10 + codes[0];
}

/// after_failure: a run in which a PE dies, one that is interrupted, and one that is neither.
int after_failure(int argc, char** argv) {
  const int dead = headway::run(argc, argv, [](Pe& pe) {
    if (pe.id() == 1) _exit(7);
    pe.quiesce();
  });
  signal(SIGINT, [](int) {});
  const pid_t caller = getpid();
  const int interrupted = headway::run(argc, argv, [caller](Pe& pe) {
    pe.quiesce();
    if (pe.id() == 0) kill(caller, SIGINT);
    for (;;) pe.progress();
  });
  const int well = headway::run(argc, argv, [](Pe& pe) { return all_to_all(pe) ? 0 : 1; });
  std::printf("%d %d %d\n", dead, interrupted, well);
  return 0;
}

/// many_times N
int many_times(int argc, char** argv) {
  for (std::size_t i = 0; i < number(argv[2]); ++i) {
    const int code = headway::run(argc, argv, [](Pe& pe) { return all_to_all(pe) ? 0 : 1; });
    if (code != 0) return code;
  }
  return 0;
}

/// once_more PES: as often as others, and the processes of PES and above once more.
int fewer_runs(int argc, char** argv) {
  bool last = false;
  const int code = headway::run(argc, argv, [&](Pe& pe) { last = pe.id() + 1 == pe.size(); });
  if (code != 0 || last) return code;
  return headway::run(argc, argv, [](Pe&) {});
}

/// exit_before STATUS
int exit_before(int, char** argv) {
  std::fprintf(stderr, "unusable input\n");
  return std::atoi(argv[2]);
}

int inside(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    pe.quiesce();
    const int code = headway::run(argc, argv, [](Pe& inner) { inner.quiesce(); });
    pe.quiesce();
    return code;
  });
}

int with_thread_before(int argc, char** argv) {
  std::mutex held;
  held.lock();
  std::thread other([&] { const std::lock_guard wait(held); });
  const int code = hello(argc, argv);
  held.unlock();
  other.join();
  return code;
}

/// with_thread_that_has_ended: it is gone, so that fork is safe again.
int with_thread_that_has_ended(int argc, char** argv) {
  std::thread([] {}).join();
  return hello(argc, argv);
}

int without_environment(int argc, char** argv) {
  clearenv();
  return headway::run(argc, argv, [](Pe&) {});
}

int throws_before(int argc, char** argv) {
  if (argc > 2) throw std::runtime_error("before run");
  return hello(argc, argv);
}

/// launches COMMAND ...: headway::launch of a command by a program that is not the headway command.
int launches(int argc, char** argv) {
  return headway::launch::launch_processes({}, std::vector<std::string>(argv + 2, argv + argc));
}

/// arguments: prints how many there are and their bytes.
int arguments(int argc, char** argv) {
  std::size_t bytes = 0;
  for (int i = 0; i < argc; ++i) bytes += std::strlen(argv[i]);
  return headway::run(
      argc, argv, [&](Pe& pe) { std::printf("PE %zu: %d arguments, %zu bytes\n", std::size_t(pe.id()), argc, bytes); });
}

int no_arguments(int, char**) {
  return headway::run(0, nullptr, [](Pe& pe) { pe.quiesce(); });
}

}  // namespace

Scenarios starting() {
  return {{"hello", hello},
          {"status", status},
          {"twice", twice},
          {"after_failure", after_failure},
          {"many_times", many_times},
          {"fewer_runs", fewer_runs},
          {"exit_before", exit_before},
          {"inside", inside},
          {"with_thread_before", with_thread_before},
          {"with_thread_that_has_ended", with_thread_that_has_ended},
          {"without_environment", without_environment},
          {"throws_before", throws_before},
          {"launches", launches},
          {"arguments", arguments},
          {"no_arguments", no_arguments}};
}

}  // namespace victim
