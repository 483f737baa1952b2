// SPDX-License-Identifier: BSD-3-Clause
/// Connections between the processes of a run on several hosts. They carry no data; their loss tells within seconds
/// that a process is lost, for which MPI or UCX would take minutes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace headway::wire {

/// Address of a process. Exchanged as its bytes, so without pointers.
struct LifelineAddress {
  static constexpr std::size_t numbers_max = 8;

  std::uint64_t token = 0;  // known only to processes of this run
  std::uint16_t port = 0;   // 0: it expects no connections
  std::uint16_t numbers = 0;
  char number[numbers_max][16] = {};  // "10.0.0.7": its IPv4 address in each network
};

/// The connections of one process in a tree: to its parent and from its children. The system watches them
/// (notice_loss()), whatever the processes do. A process that cannot be connected is not watched.
///
///   connecting -> held -> ended by goodbye | lost | told to end
class Lifelines {
 public:
  enum class Event {
    unreachable,  // the network no longer reaches the process
    ended,        // the process has ended without a goodbye, some time ago
    told          // the process has reported that the run ends, with a status
  };
  struct Loss {
    Event event;
    std::size_t process;
    std::string why;  // unreachable: the system's reason
    int status;       // told
  };

  /// Listens if it expects children. Throws SystemError.
  Lifelines(std::size_t process, bool expects_children);
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;
  /// Sends a goodbye.
  ~Lifelines();

  const LifelineAddress& address() const { return address_; }

  /// Connects; called once. A parent without a port is not connected. Calls `lost` from a thread of its own, at most
  /// once for each process.
  void hold(std::size_t parent, const LifelineAddress& parent_address, const std::vector<std::size_t>& children,
            std::function<void(const Loss&)> lost);

  /// Tells parent and children that the run ends with that status. Never waits. From any thread.
  void tell_end(int status);

 private:
  struct Line;
  struct Packet;
  void watch();
  void check_line(Line& line, short events, std::int64_t now);
  void accept_one(std::int64_t now);
  void try_parent(std::int64_t now);
  void greet(Line& line, std::int64_t now);
  void receive(Line& line, std::int64_t now);
  void take(Line& line, const Packet& packet, std::int64_t now);
  void end_line(Line& line, int error, std::int64_t now);
  void send_packet(Line& line, std::uint32_t kind, int status) const;

  std::size_t process_, parent_ = 0;
  int listener_ = -1, wake_ = -1;
  LifelineAddress address_, parent_address_;
  std::vector<std::size_t> children_;
  std::function<void(const Loss&)> lost_;
  std::mutex mutex_;  // guards the members below
  std::list<Line> lines_;
  std::vector<Loss> losses_;  // to be reported
  std::size_t tries_ = 0;     // connection attempts to the parent
  std::atomic<bool> leaving_{false};
  std::thread watcher_;
};

}  // namespace headway::wire
