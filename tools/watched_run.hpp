// SPDX-License-Identifier: BSD-3-Clause
/// The shared memory of a running program, as `headway watch` reads it.
#pragma once

#include <cstddef>
#include <headway/report/statistics.hpp>
#include <headway/transport/local/segment.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "watch_find.hpp"
#include "watch_view.hpp"

namespace headway::tools {

/// Reads boards. Writes nothing but requests for statistics (PeBoard::wanted).
class WatchedRun {
 public:
  /// Attaches. SettingError if the run is of another version, or has ended.
  explicit WatchedRun(FoundRun found);

  /// The path of the program. Before run(), that of a process which has the memory open.
  std::string program() const;
  /// The process that was started first, of those that are known.
  pid_t pid() const { return found_.holders.front().pid; }
  std::size_t pes() const { return segment_->header().pes; }
  bool is_simulated() const { return segment_->header().simulated != 0; }
  bool has_ended() const;

  /// Reads the phase of each PE.
  void sample();
  /// Asks all PEs for statistics.
  void ask();
  /// Takes the answers to the last ask(). Between two calls of ask().
  void take();
  /// Adds the PEs, with rates and shares since the last call.
  void add_to(View& view);

 private:
  struct Seen {
    report::PeStatistics shown, newest;  // answers: in the last view, and the last one
    bool has_answered = false;
    unsigned samples = 0, waiting = 0, handling = 0;
  };
  const report::PeBoard& board(std::size_t pe) const;
  void take(std::size_t pe);
  pid_t process_of(std::size_t pe) const;

  FoundRun found_;
  std::unique_ptr<local::Segment> segment_;
  std::map<pid_t, pid_t> pids_here_;  // by pid in its own namespace
  std::vector<Seen> seen_;            // by PE
};

}  // namespace headway::tools
