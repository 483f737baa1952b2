// SPDX-License-Identifier: BSD-3-Clause
#include <signal.h>

#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "scenarios.hpp"

namespace victim {
namespace {

struct Messages {
  explicit Messages(Pe& pe)
      : grid(pe, {.topology = headway::grid(2), .name = "load"}),
        recursion(pe, {.name = "recursion"}),
        large(pe, {.name = "large"}) {
    grid.on([this](std::uint64_t) { ++handled; });
    recursion.on([this, &pe](std::uint32_t hops) {
      ++handled;
      for (int i = 0; i < 2 && hops != 0; ++i, ++sent) recursion.send((pe.id() * 7 + hops + i) % pe.size(), hops - 1);
    });
    large.on([this](std::span<const std::uint64_t> words) {
      for (const std::uint64_t word : words) wrong += word != words.size();
      ++handled;
    });
  }
  headway::Aggregator<std::uint64_t> grid;
  headway::Aggregator<std::uint32_t> recursion;
  headway::Aggregator<std::span<const std::uint64_t>> large;
  std::uint64_t sent = 0, handled = 0, wrong = 0;
};

/// One round of work, in which every PE takes part: traffic | quiesce | allreduce | recursion | large | collectives |
/// mixed.
void work(Pe& pe, const std::string& load, Messages& messages) {
  if (load == "mixed") {
    for (const char* part : {"quiesce", "recursion", "allreduce", "large"}) work(pe, part, messages);
    return;
  }
  if (load == "allreduce") {
    for (int i = 0; i < 100; ++i) {
      if (headway::allreduce(pe, std::size_t(1), std::plus<>()) != pe.size()) std::abort();
    }
    return;
  }
  if (load == "collectives") {  // many at a time, some in segments, in any order of members
    const std::vector<double> few(100, 1.0), many(100'000, 1.0);
    std::vector<headway::Future<std::vector<double>>> sums;
    for (std::size_t i = 0; i < 20; ++i) {
      static_cast<void>(headway::reduce_async(pe, std::span(few), std::plus<>(), i % pe.size()));
      sums.push_back(headway::allreduce_async(pe, std::span(i % 5 == 0 ? many : few), std::plus<>()));
      sums.push_back(headway::scan_async(pe, std::span(few), std::plus<>()));
    }
    for (auto& sum : sums) {
      if (sum.get().front() > double(pe.size())) std::abort();
    }
    return;
  }
  if (load == "recursion") {
    for (int i = 0; i < 50; ++i, ++messages.sent) messages.recursion.send((pe.id() + i) % pe.size(), 6u);
    return;
  }
  if (load == "large") {
    for (int i = 0; i < 8; ++i, ++messages.sent) {
      const std::uint64_t size = std::uint64_t(1) << (8 + 2 * (i % 5));
      const std::vector<std::uint64_t> words(size, size);
      messages.large.send((messages.sent + pe.id()) % pe.size(), words);
    }
    return;
  }
  const int count = load == "quiesce" ? 10 : 20'000;
  for (int i = 0; i < count; ++i) {
    ++messages.sent;
    messages.grid.send((messages.sent * 7919 + pe.id()) % pe.size(), messages.sent);
  }
  if (load == "quiesce") pe.quiesce();
}

/// finite WHAT SECONDS [slow]: for so long, and then everything must have been handled, once. slow: the last PE's
/// handlers sleep now and then.
int finite(int argc, char** argv) {
  const std::string what = argv[2];
  const bool slow = argc > 4;
  return headway::run(argc, argv, [&](Pe& pe) {
    Messages messages(pe);
    headway::Aggregator<int> naps(pe, {.name = "naps"});
    naps.on([](int) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
    say_who(pe);
    headway::barrier(pe);
    const auto end = in_seconds(argv[3]);
    while (headway::allreduce(pe, int(before(end)), std::multiplies<>()) != 0) {
      for (int i = 0; i < 5; ++i) work(pe, what, messages);
      if (slow) naps.send(pe.size() - 1, 1);
    }
    pe.quiesce();
    const auto sum = [&](std::uint64_t value) { return headway::allreduce(pe, value, std::plus<>()); };
    return sum(messages.sent) == sum(messages.handled) && sum(messages.wrong) == 0 ? 0 : 9;
  });
}

/// Recursion without end that the compiler does not see through.
int use_stack(int depth);
int (*volatile use_more_stack)(int) = use_stack;
int use_stack(int depth) {
  volatile char page[4096];
  page[0] = char(depth);
  return page[0] + use_more_stack(depth + 1);
}

void go_wrong(const std::string& failure) {
  if (failure == "none") return;
  std::puts("now");
  std::fflush(stdout);
  if (failure == "_exit") _exit(7);
  if (failure == "exit") std::exit(7);
  if (failure == "exit0") std::exit(0);
  if (failure == "abort") std::abort();
  if (failure == "terminate") std::thread([] { throw std::runtime_error("from a thread of the user"); }).join();
  if (failure == "segmentation_fault") {
    int* volatile nowhere = nullptr;
    *nowhere = 1;
  }
  if (failure == "stack_overflow") std::exit(use_stack(0));
  if (failure == "kill") kill(getpid(), SIGKILL);
  if (failure == "throw") throw std::runtime_error("the cat sat on the keyboard");
  if (failure == "throw_int") throw 42;
  if (failure == "bad_alloc") {
    std::vector<std::vector<char>> all;
    for (std::size_t bytes = std::size_t(1) << 62;; bytes /= 2) all.emplace_back(bytes);
  }
  throw std::invalid_argument("no such failure: " + failure);
}

/// load WHAT FAILURE PE [in_handler]: all PEs work for ever, and PE goes wrong in the middle of it.
int load(int argc, char** argv) {
  const std::string what = argv[2], failure = argv[3];
  const std::size_t wrong_pe = number(argv[4]);
  const bool in_handler = argc > 5 && argv[5] == std::string("in_handler");
  return headway::run(argc, argv, [&](Pe& pe) {
    Messages messages(pe);
    headway::Aggregator<int> wrong(pe, {.name = "wrong"});
    wrong.on([&](int) { go_wrong(failure); });
    say_who(pe);
    headway::barrier(pe);
    for (std::size_t round = 0;; ++round) {
      work(pe, what, messages);
      if (round != 10 || failure == "none") continue;
      if (in_handler && pe.id() == (wrong_pe + 1) % pe.size()) {
        wrong.send(wrong_pe, 1);
        wrong.flush();
      }
      if (!in_handler && pe.id() == wrong_pe) go_wrong(failure);
    }
  });
}

/// computes_for_ever: never looks whether it is still wanted.
int computes_for_ever(int argc, char** argv) {
  return headway::run(argc, argv, [](Pe& pe) {
    say_who(pe);
    headway::barrier(pe);
    for (volatile bool for_ever = true; for_ever;) continue;
  });
}

/// exit_race: one thread of a process calls exit() while the others work.
int exit_race(int argc, char** argv) {
  return headway::run(argc, argv, [&](Pe& pe) {
    Messages messages(pe);
    for (std::size_t round = 0;; ++round) {
      work(pe, "traffic", messages);
      if (pe.id() == 1 && round == 2) std::exit(7);
    }
  });
}

/// swallow end|loop|sleep: the program catches the exception of a handler around the waiting calls, and goes on.
int swallow(int argc, char** argv) {
  const std::string then = argv[2];
  return headway::run(argc, argv, [&](Pe& pe) {
    headway::Aggregator<int> messages(pe, {.name = "swallowed"});
    messages.on([](int) { throw std::runtime_error("thrown by a handler"); });
    try {
      messages.send((pe.id() + 1) % pe.size(), 1);
      pe.quiesce();
    } catch (const std::exception&) {
    }
    while (then == "loop") {
      try {
        messages.send(0, 1);
        pe.progress();
      } catch (const std::exception&) {
      }
    }
    while (then == "sleep") sleep(1);
    if (then == "exit") std::exit(0);
    return 0;
  });
}

/// stuck_unwinding: a handler throws, and a destructor on the way out does not end.
int stuck_unwinding(int argc, char** argv) {
  struct Stuck {
    ~Stuck() {
      for (;;) sleep(1);
    }
  };
  return headway::run(argc, argv, [&](Pe& pe) {
    headway::Aggregator<int> messages(pe, {.name = "stuck"});
    messages.on([](int) { throw std::runtime_error("thrown by a handler"); });
    const Stuck stuck;
    messages.send((pe.id() + 1) % pe.size(), 1);
    pe.quiesce();
  });
}

}  // namespace

Scenarios working() {
  return {{"load", load},           {"finite", finite},   {"computes_for_ever", computes_for_ever},
          {"exit_race", exit_race}, {"swallow", swallow}, {"stuck_unwinding", stuck_unwinding}};
}

}  // namespace victim
