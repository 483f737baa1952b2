#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <headway/am/attendance.hpp>
#include <headway/am/stall.hpp>

namespace headway::am {
namespace {

/// The letter for a process's state in /proc: T is stopped by a signal, t is held by a debugger. 0 if not known.
char state_of(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(status, text);
  const auto name_end = text.rfind(')');
  return name_end != text.npos && name_end + 2 < text.size() ? text[name_end + 2] : '\0';
}

}  // namespace

bool StallWatch::moves(const PidOf& pid_of) {
  const local::SegmentHeader& header = segment_->header();
  std::uint64_t activity = 0;
  // Processes that have come to run() wait for those that have not.
  bool somebody_waits = header.arrived.load(std::memory_order_relaxed) % header.processes != 0;
  for (std::size_t pe = 0; pe < header.pes; ++pe) {
    const PeBoard& board = board_of(*segment_, pe);
    activity += board.activity.load(std::memory_order_relaxed);
    somebody_waits |= waits(board.phase.load(std::memory_order_relaxed));
  }
  if (activity != activity_ || !somebody_waits) {
    activity_ = activity;
    return true;
  }
  for (std::size_t process = 0; process < header.processes; ++process) {
    const pid_t pid = pid_of(process);
    if (pid < 0) continue;
    bool at_work = false;
    const std::size_t first = process * header.pes_per_process;
    const bool meeting = attendance_of(*segment_, first).meeting.load(std::memory_order_relaxed) != 0;
    const std::size_t last = std::min<std::size_t>(first + header.pes_per_process, header.pes);
    for (std::size_t pe = first; pe < last; ++pe) {
      const Phase phase = board_of(*segment_, pe).phase.load(std::memory_order_relaxed);
      at_work |= !meeting && !waits(phase) && phase != Phase::finished;
    }
    // Where a debugger holds a process, somebody is at work.
    if (const char state = state_of(pid); at_work ? state != 'T' : state == 't') return true;
  }
  return false;
}

std::optional<std::string> StallWatch::look(const PidOf& pid_of, std::int64_t interval_ns) {
  still_ns_ = moves(pid_of) ? 0 : still_ns_ + interval_ns;
  if (limit_.count() == 0 || still_ns_ < limit_.count()) return std::nullopt;
  return page(pid_of);
}

std::string StallWatch::page(const PidOf& pid_of) const {
  std::string text = fmt::format("nothing has moved for {:.3g} s though work is pending:", double(still_ns_) * 1e-9);
  const local::SegmentHeader& header = segment_->header();
  for (std::size_t pe = 0; pe < header.pes; ++pe) {
    const pid_t pid = pid_of(pe / header.pes_per_process);
    const PeBoard& board = board_of(*segment_, pe);
    const std::uint32_t peer = board.waiting_for.load(std::memory_order_relaxed);
    const Phase phase = board.phase.load(std::memory_order_relaxed);
    const std::size_t first = pe - pe % header.pes_per_process;
    const bool meeting = attendance_of(*segment_, first).meeting.load(std::memory_order_relaxed) != 0;
    text += fmt::format("\n  PE {} ({}) {}{}{}; messages created {}, handled {}; frames held {}", pe,
                        pid < 0 ? std::string("ended") : fmt::format("pid {}", pid),
                        meeting ? "waits for the others to start" : describe(phase),
                        peer != no_pe && phase == Phase::sending ? fmt::format(" for room to PE {}", peer) : "",
                        pid >= 0 && state_of(pid) == 'T' ? " and is stopped by a signal" : "",
                        board.created.load(std::memory_order_relaxed), board.handled.load(std::memory_order_relaxed),
                        board.held_frames.load(std::memory_order_relaxed));
  }
  return text;
}

}  // namespace headway::am
