// SPDX-License-Identifier: BSD-3-Clause
/// Meeting of a run's processes before a wire connects them: all connect to one place by TCP, which sends each process
/// the bytes of all. For UCX without an MPI. Never on the data path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace headway::wire {

/// The data with which a process connects to the place, in one variable: "HOST:PORT:TOKEN:PROCESS:PROCESSES". The place
/// refuses connections with another token.
struct Invitation {
  std::string host;
  std::uint16_t port = 0;
  std::uint64_t token = 0;
  std::uint32_t process = 0, processes = 1;

  std::string text() const;
  /// Throws SettingError.
  static Invitation parse(const std::string& text);
};

/// A process's connection to the place. When the connection ends, the process ends with exit_status::failed.
class Meeting {
 public:
  /// Throws SystemError if the place cannot be reached within 2 s.
  explicit Meeting(const Invitation& invitation);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting();

  std::uint32_t process() const { return invitation_.process; }
  std::uint32_t processes() const { return invitation_.processes; }

  /// Collective: gathers `bytes` bytes of every process in `all`, ordered by process number. False if the connection
  /// has ended.
  bool exchange(const void* mine, std::size_t bytes, void* all);
  /// Asks the place to end the run with that status.
  void abort(int status);

 private:
  void watch();

  Invitation invitation_;
  int socket_ = -1;
  std::atomic<bool> exchanging_{false}, leaving_{false};
  std::thread watcher_;
};

/// The place, in the process that has started the others.
class MeetingPlace {
 public:
  /// Listens on a free port, on the loopback address or (`open`) on all addresses of the host. Throws SystemError.
  MeetingPlace(std::uint32_t processes, bool open);
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  ~MeetingPlace();

  /// Closes a forked process's copy of the place.
  void forget();

  Invitation invitation(const std::string& host, std::uint32_t process) const;
  /// Handles connections and messages that arrive within `ms_max`. True if any did.
  bool serve(int ms_max);
  /// The status with which a process has asked to end the run; -1: none has.
  int aborted() const { return aborted_; }
  /// awaited -> here -> left | lost | gone; left -> here if a program calls run() again
  enum class State {
    awaited,
    here,
    left,  // it has sent leave or abort
    lost,  // the network no longer reaches it
    gone   // it has ended without either
  };
  State state(std::size_t process) const { return states_[process]; }
  /// Lost processes, in the order of detection.
  struct Lost {
    std::size_t process;
    std::string why;
  };
  const std::vector<Lost>& lost() const { return lost_; }
  /// Processes that have connected.
  std::size_t arrived() const { return arrived_; }

 private:
  struct Guest {
    int socket = -1;
    std::int64_t process = -1;  // -1: it has not sent its hello
    bool left = false;
    std::vector<std::byte> received;
  };
  bool receive(Guest& guest);
  void send_exchange();

  std::uint32_t processes_;
  std::uint64_t token_;
  int listener_;
  std::uint16_t port_;
  int aborted_ = -1;
  std::vector<State> states_;  // by process
  std::vector<Lost> lost_;
  std::size_t arrived_ = 0;
  std::vector<Guest> guests_;
  std::vector<std::vector<std::byte>> contributions_;  // by process, in the current exchange
  std::vector<bool> has_contributed_;
};

}  // namespace headway::wire
