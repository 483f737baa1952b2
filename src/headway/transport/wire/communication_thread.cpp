#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <headway/transport/wire/communication_thread.hpp>

namespace headway::wire {
namespace {

// What is under way goes on within microseconds; a look costs about one.
constexpr unsigned eager_rounds = 1000;
constexpr std::chrono::microseconds nap_min(10), nap_max(100);
// A nap and a look take about 5 us: well below 1 % of a core.
constexpr std::chrono::microseconds helper_nap(1000);
constexpr unsigned helper_looks_max = 64;

/// The process's signals are for its PEs.
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
  for (std::uint64_t seen = port.polls(); !stop.stop_requested();) {
    std::this_thread::sleep_for(helper_nap);
    if (const std::uint64_t polls = port.polls(); polls != seen) {
      seen = polls;
      continue;
    }
    // What has come may wait for more of the same.
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
