// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <headway/report/process_record.hpp>
#include <headway/report/stall.hpp>
#include <headway/report/stall_page.hpp>
#include <headway/report/system_state.hpp>

namespace headway::report {

bool StallWatch::moves(const PidOf& pid_of) {
  const local::SegmentHeader& header = segment_->header();
  std::uint64_t activity = 0;
  // Processes in run() wait for those that have not called it.
  bool any_waits = header.arrived.load(std::memory_order_relaxed) % header.processes != 0;
  for (std::size_t pe = 0; pe < header.pes; ++pe) {
    const PeBoard& board = board_of(*segment_, pe);
    activity += board.activity.load(std::memory_order_relaxed);
    any_waits |= waits(board.phase.load(std::memory_order_relaxed));
  }
  if (activity != activity_ || !any_waits) {
    activity_ = activity;
    return true;
  }
  for (std::size_t process = 0; process < header.processes; ++process) {
    const pid_t pid = pid_of(process);
    if (pid < 0) continue;
    bool at_work = false;
    const std::size_t first = process * header.pes_per_process;
    const bool meeting = process_record_of(*segment_, first).meeting.load(std::memory_order_relaxed) != 0;
    const std::size_t last = std::min<std::size_t>(first + header.pes_per_process, header.pes);
    for (std::size_t pe = first; pe < last; ++pe) {
      const Phase phase = board_of(*segment_, pe).phase.load(std::memory_order_relaxed);
      at_work |= !meeting && !waits(phase) && phase != Phase::finished;
    }
    // A process held by a debugger counts as working.
    if (const char state = state_of(pid); at_work ? state != 'T' : state == 't') return true;
  }
  return false;
}

void StallWatch::check(const PidOf& pid_of, std::int64_t interval_ns) {
  still_ns_ = moves(pid_of) ? 0 : still_ns_ + interval_ns;
}

}  // namespace headway::report
