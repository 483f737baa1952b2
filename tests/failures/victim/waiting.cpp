// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>

#include <csignal>
#include <functional>
#include <thread>

#include "scenarios.hpp"

namespace victim {
namespace {

/// long_handler SECONDS busy|asleep: while the others are in quiesce().
int long_handler(int argc, char** argv) {
  const bool asleep = argv[3] == std::string("asleep");
  return headway::run(argc, argv, [&](Pe& pe) {
    headway::Aggregator<int> messages(pe);
    messages.on([&](int) {
      const auto end = in_seconds(argv[2]);
      if (asleep) std::this_thread::sleep_until(end);
      while (before(end)) continue;
    });
    if (pe.id() == 0) messages.send(pe.size() - 1, 1);
    pe.quiesce();
  });
}

/// long_computation SECONDS busy|asleep
int long_computation(int argc, char** argv) {
  const bool asleep = argv[3] == std::string("asleep");
  return headway::run(argc, argv, [&](Pe& pe) {
    const auto end = in_seconds(argv[2]);
    if (pe.id() == 0 && asleep) std::this_thread::sleep_until(end);
    while (pe.id() == 0 && before(end)) continue;
    pe.quiesce();
  });
}

/// reduce_for SECONDS: nothing but allreduce.
int reduce_for(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    const auto end = in_seconds(argv[2]);
    while (headway::allreduce(pe, int(before(end)), std::multiplies<>()) != 0) continue;
  });
}

volatile std::sig_atomic_t told_to_end = 0;

/// quiesce_for SECONDS: nothing but quiesce, or until one of the processes gets SIGUSR2.
int quiesce_for(int argc, char** argv) {
  std::signal(SIGUSR2, [](int) { told_to_end = 1; });
  return headway::run(argc, argv, [&](Pe& pe) {
    say_who(pe);
    const auto end = in_seconds(argv[2]);
    while (headway::allreduce(pe, int(told_to_end == 0 && before(end)), std::multiplies<>()) != 0) {
      for (int i = 0; i < 100; ++i) pe.quiesce();
    }
  });
}

/// cross_purposes: the last PE reduces, the others wait for quiescence.
int cross_purposes(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    say_who(pe);
    if (pe.id() + 1 == pe.size()) static_cast<void>(headway::allreduce(pe, 1, std::plus<>()));
    pe.quiesce();
  });
}

/// uneven: PE 0 calls quiesce() more often than the others.
int uneven(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    pe.quiesce();
    if (pe.id() == 0) pe.quiesce();
  });
}

/// stops_itself
int stops_itself(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    if (pe.id() + 1 == pe.size()) raise(SIGSTOP);
    pe.quiesce();
  });
}

/// waits_for_nothing SECONDS: all PEs sleep on their own.
int waits_for_nothing(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe&) { std::this_thread::sleep_until(in_seconds(argv[2])); });
}

/// undelivered missing|without_handler
int undelivered(int argc, char** argv) {
  const bool missing = argv[2] == std::string("missing");
  return headway::run(argc, argv, [&](Pe& pe) {
    if (missing && pe.id() == 1) {
      pe.quiesce();
      return;
    }
    headway::Aggregator<int> messages(pe, {.name = "lost"});
    if (missing || pe.id() == 0) messages.on([](int) {});
    if (pe.id() == 0) messages.send(1, 7);
    pe.quiesce();
  });
}

/// blocks progress|quiesce|allreduce|barrier in a handler; caught: the handler catches the error.
int blocks(int argc, char** argv) {
  const std::string how = argv[2];
  const bool caught = argc > 3 && argv[3] == std::string("caught");
  return headway::run(argc, argv, [&](Pe& pe) {
    headway::Aggregator<int> messages(pe, {.name = "blocking"});
    messages.on([&](int) {
      try {
        if (how == "progress") pe.progress();
        if (how == "quiesce") pe.quiesce();
        if (how == "allreduce") static_cast<void>(headway::allreduce(pe, 1, std::plus<>()));
        if (how == "barrier") headway::barrier(pe);
      } catch (const std::exception&) {
        if (!caught) throw;
      }
    });
    messages.send((pe.id() + 1) % pe.size(), 1);
    pe.quiesce();
  });
}

/// blocks_deferred: quiesce() under a guard that defers handlers.
int blocks_deferred(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    const headway::DeferHandlers guard(pe);
    pe.quiesce();
  });
}

}  // namespace

Scenarios waiting() {
  return {{"long_handler", long_handler},      {"long_computation", long_computation},
          {"reduce_for", reduce_for},          {"quiesce_for", quiesce_for},
          {"cross_purposes", cross_purposes},  {"uneven", uneven},
          {"stops_itself", stops_itself},      {"waits_for_nothing", waits_for_nothing},
          {"undelivered", undelivered},        {"blocks", blocks},
          {"blocks_deferred", blocks_deferred}};
}

}  // namespace victim
