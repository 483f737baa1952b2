// SPDX-License-Identifier: BSD-3-Clause
/// A page of text about each PE of a run: its activity, the PEs that it waits for, and its messages. Printed when the
/// run has stalled, or on request.
#pragma once

#include <cstdint>
#include <headway/report/board.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::report {

/// A PE's answer to a request.
struct PeReport {
  std::vector<std::uint32_t> waits_for;  // PEs without which it cannot go on
  std::vector<std::string> lines;        // undelivered messages, and their memory
};

/// One PE as the page shows it, for every transport.
struct PeView {
  std::string process;  // for example "pid 123"; may be empty
  Phase phase = Phase::starting;
  bool meeting = false;  // has called run(), and waits for the other processes
  std::string state;     // an outside cause of its delay, such as "is stopped by a signal"; or empty
  std::uint64_t created = 0, handled = 0, held_frames = 0;
  std::string last_handler;  // empty: no handler has run
  bool answered = false;     // false: the counts are those of its last wait
  bool consistent = true;    // it has not moved since its answer
  PeReport report;
  std::vector<std::string> stack;  // innermost first; empty: not available
};

/// The view that the PE's board gives, without its report.
PeView view_of(const PeBoard& board);

/// The page, without a newline at its end. `pes` are all PEs of the run, by number. The most relevant ones are
/// described in full, the others by groups.
std::string stall_page(const std::string& title, std::span<const PeView> pes);

}  // namespace headway::report
