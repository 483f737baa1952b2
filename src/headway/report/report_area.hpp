/// Where a PE puts its report and its stack for the supervisor: its report pages in the shared memory of the run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/report/stall_page.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// The PE's thread writes an answer once per request (PeBoard::report_wanted), and the request's number after it; the
/// supervisor reads what answers the newest request only, so neither meets the other half-way.
struct ReportArea {
  static constexpr std::size_t waits_for_max = 64, stack_depth_max = 64;

  std::atomic<std::uint32_t> given;        // the request that waits_for and the text answer
  std::atomic<std::uint32_t> stack_given;  // the request that the stack answers
  std::atomic<std::uint32_t> busy;         // the thread writes them: a signal's handler keeps off
  std::uint32_t stack_is_exact;            // the innermost address is that of an instruction, not behind a call
  Phase phase;                             // of the board when it was given
  std::uint64_t moves;                     // moves_of() the board then
  std::uint32_t waits_for_count, stack_depth, text_bytes;
  std::uint32_t waits_for[waits_for_max];
  std::uint64_t stack[stack_depth_max];  // return addresses, innermost first
  char text[7000];                       // lines
};
static_assert(sizeof(ReportArea) <= local::report_bytes);

inline ReportArea& report_area_of(const local::Segment& segment, std::size_t pe) {
  return *reinterpret_cast<ReportArea*>(segment.report(pe).data());
}

/// Changes whenever what the PE waits for may have changed.
inline std::uint64_t moves_of(const PeBoard& board) {
  return board.frames_received.load(std::memory_order_relaxed) + board.activity.load(std::memory_order_relaxed);
}

/// Writes the PE's answer to a request, and its stack; by its thread.
struct GiveReport {
  ReportArea* area;
  const PeBoard* board;
  void operator()(std::uint32_t request, const PeReport& report) const;
};

}  // namespace headway::report
