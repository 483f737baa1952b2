/// Connections between processes of a run on several hosts, over which nothing is said but goodbye: by which each
/// notices that another is lost, where the library below would take minutes.
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

/// Where a process can be reached. Exchanged as it lies in memory; without pointers.
struct LifelineAddress {
  static constexpr std::size_t numbers_max = 8;

  std::uint64_t token = 0;  // that only processes of this run know
  std::uint16_t port = 0;   // 0: it expects nobody
  std::uint16_t numbers = 0;
  char number[numbers_max][16] = {};  // "10.0.0.7": its one in each network
};

/// One of a tree: each process has a line to its parent, and one from each of its children. The system watches them,
/// see notice_loss(), whatever the processes do. What cannot be connected has no line and is not watched.
///
///   connecting -> held -> ended by goodbye | lost | told to end
class Lifelines {
 public:
  enum class Event {
    unreachable,  // the network does not get to it any more
    ended,        // it has ended without a goodbye, and some time ago
    told          // it has said that the run ends, with a status
  };
  struct Loss {
    Event event;
    std::size_t process;
    std::string why;  // unreachable: by the system
    int status;       // told
  };

  /// Expects children or not. Throws SystemError.
  Lifelines(std::size_t process, bool expects_children);
  Lifelines(const Lifelines&) = delete;
  Lifelines& operator=(const Lifelines&) = delete;
  /// Says goodbye.
  ~Lifelines();

  const LifelineAddress& address() const { return address_; }

  /// Once. A parent without a port, and no children: holds nothing. Reports to `lost`, from a thread of its own: each
  /// process at most once.
  void hold(std::size_t parent, const LifelineAddress& parent_address, const std::vector<std::size_t>& children,
            std::function<void(const Loss&)> lost);

  /// Tells those at the other ends that the run ends with that status. Never waits. From any thread.
  void tell_end(int status);

 private:
  struct Line;
  struct Packet;
  void watch();
  void look_at(Line& line, short events, std::int64_t now);
  void accept_one(std::int64_t now);
  void try_parent(std::int64_t now);
  void greet(Line& line, std::int64_t now);
  void hear(Line& line, std::int64_t now);
  void take(Line& line, const Packet& packet, std::int64_t now);
  void give_up(Line& line, int error, std::int64_t now);
  void say(Line& line, std::uint32_t kind, int status) const;

  std::size_t process_, parent_ = 0;
  int listener_ = -1, wake_ = -1;
  LifelineAddress address_, parent_address_;
  std::vector<std::size_t> children_;
  std::function<void(const Loss&)> lost_;
  std::mutex mutex_;  // of what follows
  std::list<Line> lines_;
  std::vector<Loss> losses_;  // to be reported
  std::size_t tries_ = 0;     // to reach the parent
  std::atomic<bool> leaving_{false};
  std::thread watcher_;
};

}  // namespace headway::wire
