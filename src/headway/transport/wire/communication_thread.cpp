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

CommunicationThread::CommunicationThread(Port& port) {
  const SignalsBlocked inherited;
  thread_ = std::jthread([&port](const std::stop_token& stop) { drive(stop, port); });
}

void CommunicationThread::drive(const std::stop_token& stop, Port& port) {
  unsigned rounds_idle = 0;
  auto nap = nap_min;
  try {
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
  } catch (...) {
    port.fail(std::current_exception());
  }
}

}  // namespace headway::wire
