// SPDX-License-Identifier: BSD-3-Clause
/// A command that a test starts, with all processes that come from it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace headway::testing {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct SessionOptions {
  std::string input = {};       // standard input; empty: none
  bool terminal = false;        // standard streams are a terminal of its own; output() gives the terminal's text
  bool output_blocked = false;  // standard output is a pipe without a reader
};

/// Runs in a process group of its own, in an empty folder of its own. Its processes carry a mark in their environment:
/// the session finds them by it, also with another parent. Output goes to files, so that no process waits for the test.
class Session {
 public:
  Session(const std::vector<std::string>& command, const Variables& environment = {},
          const SessionOptions& options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  /// Kills the processes that are left.
  ~Session();

  pid_t pid() const { return pid_; }
  std::string output();
  std::string errors() const;

  /// Waits until the output has `lines` lines, or for `seconds`; false then.
  bool wait_for_lines(std::size_t lines, double seconds = 60);
  /// Types on the terminal.
  void type(const std::string& text) const;

  /// The living processes of the session; and those that the started one is the parent of.
  std::vector<pid_t> processes() const;
  std::vector<pid_t> children() const;

  /// Waits for the end of the started process. Its exit status, 128 + signal where one ended it; -1 after `seconds`,
  /// which are for what hangs: on a machine full of other work a start of many processes takes long.
  int wait(double seconds = 100);
  /// Waits until no process of the session lives, at most `seconds`.
  struct Seconds {
    double all = 0;   // that took; more than `seconds` if some still live
    double fair = 0;  // less those for which the started process was ready to run and got no processor
  };
  Seconds until_gone(double seconds = 10);
  /// The fair ones: on a machine that is full of other work the kernel's queue says nothing about the run.
  double seconds_until_gone(double seconds = 10) { return until_gone(seconds).fair; }

  /// The session's leftovers: processes, files in its folder, shared memory. Empty if there are none.
  std::string leftovers();

 private:
  void start(const std::vector<std::string>& command, const Variables& environment, const SessionOptions& options);
  void read_terminal();

  std::string mark_;
  std::filesystem::path folder_;
  pid_t pid_ = -1;
  int status_ = -1;
  bool ended_ = false;
  int terminal_ = -1;
  int unread_ = -1;
  std::string shown_;
};

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Starts a command and waits for its end.
struct Outcome {
  int status = -1;
  std::string output, errors, leftovers;
};
Outcome run_to_end(const std::vector<std::string>& command, const Variables& environment = {},
                   const SessionOptions& options = {});

/// The programs of this folder, and the headway command, set by the build.
std::string victim();
std::string headway_command();

/// Whether terminals can be made here; not in every container.
bool has_terminals();

/// So many PEs, so many of them in each process, and no more.
Variables pes(std::size_t n, std::size_t per_process = 1);
Variables operator+(Variables a, const Variables& b);

/// The number of times a test repeats its random part: from --repeat=N, else `fallback`.
std::size_t repeats(std::size_t fallback);

}  // namespace headway::testing
