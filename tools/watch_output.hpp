// SPDX-License-Identifier: BSD-3-Clause
/// Where `headway watch` shows its views: a terminal that is drawn anew, tables one below the other, or lines of JSON.
#pragma once

#include <poll.h>
#include <signal.h>
#include <termios.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "watch_view.hpp"

namespace headway::tools {

/// Waits, and notices that the user ends the watch: by SIGINT, SIGTERM or SIGHUP, or by q on a terminal. These signals
/// are blocked while it exists, except in wait().
class Wait {
 public:
  /// `keys`: standard input is a terminal from which keys are read.
  explicit Wait(bool keys);
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
  ~Wait();

  /// Waits until `until_ns` of the monotonic clock, or for one of the descriptors. False once the user has ended the
  /// watch.
  bool until(std::int64_t until_ns, std::vector<pollfd>& descriptors);
  bool until(std::int64_t until_ns) {
    std::vector<pollfd> none;
    return until(until_ns, none);
  }

 private:
  termios terminal_{};  // before the watch
  bool keys_;
  sigset_t before_{};
  struct sigaction actions_[4] = {};
};

enum class Form { terminal, tables, json };

class WatchOutput {
 public:
  explicit WatchOutput(Form form);
  WatchOutput(const WatchOutput&) = delete;
  WatchOutput& operator=(const WatchOutput&) = delete;
  ~WatchOutput();

  /// False if no process reads the output any more.
  bool show(const View& view);
  /// A line that stays: below the views on a terminal, else at once on standard error.
  void note(const std::string& text);

 private:
  void leave_terminal();

  Form form_;
  std::vector<std::string> notes_;
  View last_;
  bool any_ = false;
};

}  // namespace headway::tools
