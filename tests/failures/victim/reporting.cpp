// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>

#include "scenarios.hpp"

namespace victim {

namespace {
volatile std::sig_atomic_t told_to_end = 0;
}

/// A name to be found in a stack.
[[gnu::noinline]] void stuck_in_user_code(std::chrono::steady_clock::time_point end) {
  while (told_to_end == 0 && before(end)) continue;
}

namespace {

/// flood: the last PE handles one message and stops itself; PE 0 sends to it without end, the others are in quiesce().
int flood(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    headway::Aggregator<std::uint64_t> messages(pe, {.name = "flood"});
    std::size_t handled = 0;
    messages.on([&](std::uint64_t) { ++handled; });
    if (pe.id() == 0) messages.send(pe.size() - 1, 0);
    pe.quiesce();
    if (pe.id() + 1 == pe.size()) raise(SIGSTOP);
    while (pe.id() == 0) messages.send(pe.size() - 1, 1);
    pe.quiesce();
  });
}

/// missing: PE 1 lacks an aggregator that PE 0 sends to, and the last PE has stopped itself.
int missing(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    if (pe.id() + 1 == pe.size()) raise(SIGSTOP);
    if (pe.id() == 1) {
      pe.quiesce();
      return;
    }
    headway::Aggregator<int> messages(pe, {.name = "lost"});
    messages.on([](int) {});
    if (pe.id() == 0) messages.send(1, 7);
    pe.quiesce();
  });
}

/// stuck SECONDS [in_handler]: PE 1 computes, or until its process gets SIGUSR2; the others wait for it.
int stuck(int argc, char** argv) {
  std::signal(SIGUSR2, [](int) { told_to_end = 1; });
  return headway::run(argc, argv, [&](Pe& pe) {
    const auto end = in_seconds(argv[2]);
    headway::Aggregator<int> messages(pe, {.name = "slow"});
    messages.on([&](int) { stuck_in_user_code(end); });
    say_who(pe);
    headway::barrier(pe);
    if (argc > 3 && pe.id() == 0) messages.send(1, 1);
    if (argc == 3 && pe.id() == 1) stuck_in_user_code(end);
    pe.quiesce();
  });
}

/// sleeps SECONDS: in one system call, that a signal would cut short.
int sleeps(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    say_who(pe);
    const double seconds = std::atof(argv[2]);
    const timespec duration{time_t(seconds), long((seconds - double(time_t(seconds))) * 1e9)};
    return nanosleep(&duration, nullptr) == 0 ? 0 : 7;
  });
}

std::atomic<int> caught{0};

/// own_handler before|after run: of SIGUSR1; each PE ends once it has caught one.
int own_handler(int argc, char** argv) {
  const bool before_run = argv[2] == std::string("before");
  const auto install = [] { signal(SIGUSR1, [](int) { ++caught; }); };
  if (before_run) install();
  const int status = headway::run(argc, argv, [&](Pe& pe) {
    if (!before_run) install();
    headway::barrier(pe);
    say_who(pe);
    while (caught == 0) pe.progress();
  });
  return before_run && status == 0 && caught == 0 ? 8 : status;
}

/// own_real_time_handlers SECONDS: the program uses all signals that are free; none may come.
int own_real_time_handlers(int argc, char** argv) {
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::signal(signal, [](int) { ++caught; });
  return headway::run(argc, argv, [&](Pe& pe) {
    say_who(pe);
    stuck_in_user_code(in_seconds(argv[2]));
    return int(caught);
  });
}

/// signals_afterwards: after run() both signals are as they were.
int signals_afterwards(int argc, char** argv) {
  const int status = headway::run(argc, argv, [](Pe& pe) { pe.quiesce(); });
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_DFL) return signal;
  }
  return status;
}

}  // namespace

Scenarios reporting() {
  return {{"flood", flood},
          {"missing", missing},
          {"stuck", stuck},
          {"sleeps", sleeps},
          {"own_handler", own_handler},
          {"own_real_time_handlers", own_real_time_handlers},
          {"signals_afterwards", signals_afterwards}};
}

}  // namespace victim
