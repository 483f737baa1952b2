/// Where the processes of a run meet before a wire connects them: a place that all can reach by TCP, which hands what
/// each says to all. For UCX where there is no MPI; never on the data path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace headway::wire {

/// What a process must know to come: in one variable, "HOST:PORT:TOKEN:PROCESS:PROCESSES". The token keeps strangers
/// out.
struct Invitation {
  std::string host;
  std::uint16_t port = 0;
  std::uint64_t token = 0;
  std::uint32_t process = 0, processes = 1;

  std::string text() const;
  /// Throws SettingError.
  static Invitation parse(const std::string& text);
};

/// A process's way to the place. When the place goes, the run is over: the process ends with exit_status::failed.
class Meeting {
 public:
  /// Throws SystemError when the place cannot be reached within seconds.
  explicit Meeting(const Invitation& invitation);
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting();

  std::uint32_t process() const { return invitation_.process; }
  std::uint32_t processes() const { return invitation_.processes; }

  /// Collective: gathers `bytes` bytes of every process, by number, in `all`. False when the place has gone.
  bool exchange(const void* mine, std::size_t bytes, void* all);
  /// Tells the place that the run is to end with that status.
  void abort(int status);

 private:
  void watch();

  Invitation invitation_;
  int socket_ = -1;
  std::atomic<bool> exchanging_{false}, leaving_{false};
  std::thread watcher_;
};

/// The place, for whoever has started the processes.
class MeetingPlace {
 public:
  /// Listens on a port of the system's choice: of this host alone, or (`open`) of all its addresses. Throws
  /// SystemError.
  MeetingPlace(std::uint32_t processes, bool open);
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;
  ~MeetingPlace();

  /// Closes this process's copy, in one that was forked: it is another's place.
  void forget();

  Invitation invitation(const std::string& host, std::uint32_t process) const;
  /// Serves what comes within `ms_max`. Returns whether anything did.
  bool serve(int ms_max);
  /// What a process has asked to end the run with; -1: none has.
  int aborted() const { return aborted_; }
  /// awaited -> here -> left | lost | gone; left -> here where a program runs again
  enum class State {
    awaited,
    here,
    left,  // said that it leaves, or that all are to end
    lost,  // the network no longer reaches it
    gone   // ended without a word
  };
  State state(std::size_t process) const { return states_[process]; }
  /// Those that are lost, in the order of noticing.
  struct Lost {
    std::size_t process;
    std::string why;
  };
  const std::vector<Lost>& lost() const { return lost_; }
  /// How many processes have come.
  std::size_t arrived() const { return arrived_; }

 private:
  struct Guest {
    int socket = -1;
    std::int64_t process = -1;  // -1: has not said yet
    bool left = false;
    std::vector<std::byte> heard;
  };
  bool hear(Guest& guest);
  void hand_out();

  std::uint32_t processes_;
  std::uint64_t token_;
  int listener_;
  std::uint16_t port_;
  int aborted_ = -1;
  std::vector<State> states_;  // by process
  std::vector<Lost> lost_;
  std::size_t arrived_ = 0;
  std::vector<Guest> guests_;
  std::vector<std::vector<std::byte>> said_;  // by process, in the exchange under way
  std::vector<bool> has_said_;
};

}  // namespace headway::wire
