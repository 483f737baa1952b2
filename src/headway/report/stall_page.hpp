/// One page on what each PE of a run does, waits for and holds: when the run has stalled, or when somebody asks.
#pragma once

#include <cstdint>
#include <headway/report/board.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::report {

/// What a PE says of itself when it is asked.
struct PeReport {
  std::vector<std::uint32_t> waits_for;  // PEs without which it cannot go on
  std::vector<std::string> lines;        // messages that are not delivered, and the memory they hold
};

/// One PE as the page shows it, whatever its transport and whoever has looked.
struct PeView {
  std::string who;  // a pid, say; may be empty
  Phase phase = Phase::starting;
  bool meeting = false;  // has come to run() and waits for the others to start
  std::string state;     // what holds it up by itself: "is stopped by a signal", say; or empty
  std::uint64_t created = 0, handled = 0, held_frames = 0;
  std::string last_handler;  // empty: none has run
  bool answered = false;     // else the counts are those of its last wait
  bool consistent = true;    // it has not moved since it said what it waits for
  PeReport report;
  std::vector<std::string> stack;  // innermost first; empty: not available
};

/// What the PE's board shows, without its report.
PeView view_of(const PeBoard& board);

/// The page, without a newline at its end. `pes` are all PEs of the run, by number. Those that matter are shown in
/// full, the others, where there are many, together.
std::string stall_page(const std::string& title, std::span<const PeView> pes);

}  // namespace headway::report
