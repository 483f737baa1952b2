// SPDX-License-Identifier: BSD-3-Clause
/// The process that starts the others and watches them: it names a process that died and the cause, ends the others,
/// and forwards their output line by line. It is not a PE.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <headway/base/settings.hpp>
#include <headway/launch/lines.hpp>
#include <headway/report/process_record.hpp>
#include <headway/report/reporter.hpp>
#include <headway/report/stall.hpp>
#include <headway/transport/local/segment.hpp>
#include <string>
#include <vector>

namespace headway::launch {

/// While it exists, closed standard streams are open to /dev/null, so that no descriptor of the run gets their
/// numbers.
class StandardStreams {
 public:
  StandardStreams();
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;
  ~StandardStreams();

 private:
  int opened_[3] = {-1, -1, -1};
};

class Supervisor {
 public:
  /// Why a process of the run could not start, and its exit status.
  struct StartFailure {
    std::string text;
    int status;
  };
  /// Called in the new process with its number and the text for Attachment::parse(). Returns only on failure.
  using Child = std::function<StartFailure(std::size_t process, const std::string& attach)>;

  /// Makes the shared memory of the run. Throws SystemError.
  explicit Supervisor(const base::Settings& settings);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor();

  /// Starts the processes, and watches them until all have ended. Process `on_terminal` keeps standard input, output
  /// and error; -1: none, unless there is only one. Returns the exit status of the run. Throws SystemError when not
  /// all could be started; it has ended those that were.
  int run(const Child& child, int on_terminal = -1);

 private:
  struct Process;
  struct Caller;

  void start(std::size_t process, const Child& child, bool on_terminal, const Caller& caller);
  [[noreturn]] void become_child(std::size_t process, const Child& child, const Caller& caller);
  void watch(Caller& caller);
  void take_signals(const Caller& caller);
  void read_output(Process& process, int stream, std::size_t bytes_max);
  void check_broken_outputs();
  void record_end(Process& process);
  void explain_end(const Process& process);
  bool explain_failure(const Process& process);
  void report_simulation();
  void check(std::int64_t now, std::int64_t interval_ns);
  void report(std::int64_t now);
  void end_run(int status);
  bool all_ended() const;
  pid_t pid_of(const Process& process) const;
  pid_t pid_where_alive(std::size_t process) const;
  std::string pids_of(const Process& process) const;
  bool is_gone_below_parent(const Process& process) const;
  std::string pes_of(std::size_t process) const;
  void say(const std::string& text) { outputs_[1].put(LineOutput::nobody, "headway: " + text + "\n"); }

  base::Settings settings_;
  StandardStreams streams_;  // first, before other descriptors are opened
  local::Segment segment_;
  report::StallWatch stall_;
  report::Reporter reporter_;
  std::uint64_t killed_for_memory_before_;  // killed_for_memory() at the start
  LineOutput outputs_[2];
  bool reported_broken_[2] = {false, false};
  std::vector<Process> processes_;
  std::uint64_t pid_namespace_ = report::pid_namespace();
  std::size_t first_read_ = 0;  // index of the process to read first
  std::vector<char> buffer_ = std::vector<char>(64 * 1024);
  int lifeline_[2] = {-1, -1};
  int status_ = 0;
  bool report_asked_ = false;
  bool report_on_stall_ = false;    // whether the current report is because of a stall
  std::uint64_t reports_seen_ = 0;  // last value of SegmentHeader::reports_asked
  int signal_ = 0;                  // the signal that ended the run; 0: none
  bool ending_ = false;             // status_ is final, and all processes have been sent SIGKILL
  std::int64_t signal_at_ = 0;
  std::int64_t checked_at_ = 0;
};

}  // namespace headway::launch
