// SPDX-License-Identifier: BSD-3-Clause
/// Where the views of `headway watch` come from: runs on this host, or watchers on other hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "watch_output.hpp"
#include "watch_view.hpp"
#include "watched_run.hpp"

namespace headway::tools {

class WatchSource {
 public:
  enum class Next { view, ended, interrupted };

  WatchSource() = default;
  WatchSource(const WatchSource&) = delete;
  WatchSource& operator=(const WatchSource&) = delete;
  virtual ~WatchSource() = default;

  /// Waits for the end of the next interval.
  virtual Next next(Wait& wait, WatchOutput& output, View& view) = 0;
  /// After the end: the exit status.
  virtual int status() const { return 0; }
};

/// The runs are parts of one program.
std::unique_ptr<WatchSource> watch_here(std::vector<std::unique_ptr<WatchedRun>> runs, std::int64_t interval_ns);

struct WatchedHosts {
  std::vector<std::string> hosts;
  std::string agent;                 // called as AGENT HOST LINE; empty: ssh
  std::vector<std::string> command;  // to start there
};
std::unique_ptr<WatchSource> watch_hosts(const WatchedHosts& hosts, std::int64_t interval_ns);

}  // namespace headway::tools
