// SPDX-License-Identifier: BSD-3-Clause
/// Threads that move a process's frames over the wire while its PEs compute.
#pragma once

#include <headway/transport/wire/port.hpp>
#include <stop_token>
#include <thread>

namespace headway::wire {

/// While it exists, posted frames are sent and arriving frames are received, whether or not a PE calls the library.
/// Handlers still run on their PEs; PEs also post open buffers, frames that wait for credit, and frames to forward. An
/// idle thread polls every 100 us. The port's next progress() throws its failure.
class CommunicationThread {
 public:
  /// `drives`: always moves frames. `helps`: moves frames and service messages only while no PE of the process does; it
  /// wakes every 3 to 7 ms and takes about one percent of a core at most.
  enum class Role { drives, helps };

  CommunicationThread(Port& port, Role role);

 private:
  static void drive(const std::stop_token& stop, Port& port);
  static void help(const std::stop_token& stop, Port& port);

  std::jthread thread_;
};

}  // namespace headway::wire
