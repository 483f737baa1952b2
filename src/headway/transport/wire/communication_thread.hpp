/// Threads that move a process's frames over the wire while its PEs compute.
#pragma once

#include <headway/transport/wire/port.hpp>
#include <stop_token>
#include <thread>

namespace headway::wire {

/// As long as it lives, frames that have been posted go out, large ones are agreed on and what arrives is received,
/// whether or not a PE calls the library. Handlers still run on their PEs, which also post what is in open buffers, what
/// found no credit and what they forward. Where nothing moves it looks every 100 us. What fails is thrown by the port's
/// next progress().
class CommunicationThread {
 public:
  /// `drives`: moves frames always; `helps`: sleeps, and moves them, and what Services take, only while no PE of the
  /// process does: it looks every 3 to 7 ms, for one percent of a core at most, about. What PEs move themselves it does not touch.
  enum class Role { drives, helps };

  CommunicationThread(Port& port, Role role);

 private:
  static void drive(const std::stop_token& stop, Port& port);
  static void help(const std::stop_token& stop, Port& port);

  std::jthread thread_;
};

}  // namespace headway::wire
