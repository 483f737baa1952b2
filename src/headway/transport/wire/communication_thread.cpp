// SPDX-License-Identifier: BSD-3-Clause
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <headway/base/clock.hpp>
#include <headway/transport/wire/communication_thread.hpp>

namespace headway::wire {
namespace {

// Messages in flight move on within microseconds; one poll takes about 1 us.
constexpr unsigned eager_rounds = 16;
constexpr std::chrono::microseconds nap_min(10), nap_max(100);
// A nap takes some microseconds of processor time, with a poll twice that, with a message ten times. The helper sleeps
// 300 times as long as it has just run, within limits. So an idle helper takes almost no time, and a PE that computes
// for 10 ms mostly gets help. After a look that took more than 54 us, as on a slow processor, it sleeps 120 times as
// long: its share of a core stays below one percent there, too.
constexpr std::int64_t helper_naps_per_look = 300, helper_naps_per_look_min = 120;
constexpr std::int64_t helper_nap_ns_min = 3'000'000, helper_nap_ns_max = 6'500'000;
constexpr std::int64_t helper_long_nap_ns_max = 20'000'000;
constexpr unsigned helper_looks_max = 64;

std::int64_t helper_nap_ns_after(std::int64_t look_ns) {
  const std::int64_t nap = std::clamp(helper_naps_per_look * look_ns, helper_nap_ns_min, helper_nap_ns_max);
  return std::max(nap, std::min(helper_naps_per_look_min * look_ns, helper_long_nap_ns_max));
}

/// The threads of PEs handle the process's signals.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

CommunicationThread::CommunicationThread(Port& port, Role role) {
  const SignalsBlocked inherited;
  thread_ = std::jthread([&port, role](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), role == Role::drives ? "headway-drives" : "headway-helps");
    try {
      role == Role::drives ? drive(stop, port) : help(stop, port);
    } catch (...) {
      port.fail(std::current_exception());
    }
  });
}

void CommunicationThread::help(const std::stop_token& stop, Port& port) {
  std::int64_t used = base::thread_cpu_ns();
  for (std::uint64_t seen = port.polls(); !stop.stop_requested();) {
    const std::int64_t now = base::thread_cpu_ns();
    std::this_thread::sleep_for(std::chrono::nanoseconds(helper_nap_ns_after(now - used)));
    used = now;
    if (const std::uint64_t polls = port.polls(); polls != seen) {
      seen = polls;
      continue;
    }
    // A message may need further ones to arrive.
    for (unsigned looks = 0; looks < helper_looks_max && port.help(); ++looks) continue;
  }
}

void CommunicationThread::drive(const std::stop_token& stop, Port& port) {
  unsigned rounds_idle = 0;
  auto nap = nap_min;
  while (!stop.stop_requested()) {
    if (port.progress()) {
      rounds_idle = 0;
      nap = nap_min;
    } else if (rounds_idle < eager_rounds) {
      ++rounds_idle;
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(nap);
      nap = std::min(2 * nap, nap_max);
    }
  }
}

}  // namespace headway::wire
