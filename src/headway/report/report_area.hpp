// SPDX-License-Identifier: BSD-3-Clause
/// The PE's report pages in shared memory: the PE writes its report and its stack there for the supervisor.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <headway/report/stall_page.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// The PE's thread writes one answer per request (PeBoard::wanted), and stores the request's number last. The
/// supervisor reads only the answer to its newest request. So it never reads an answer while it is written.
struct ReportArea {
  static constexpr std::size_t waits_for_max = 64, stack_depth_max = 64;

  std::atomic<std::uint32_t> given;        // the request that `waits_for` and `text` answer
  std::atomic<std::uint32_t> stack_given;  // the request that `stack` answers
  std::atomic<std::uint32_t> busy;         // 1: the thread is writing; the signal handler does nothing then
  // 1: the innermost address is the interrupted instruction, not a return address
  std::uint32_t stack_is_exact;
  Phase phase;          // phase on the board at the time of the answer
  std::uint64_t moves;  // moves_of() the board at that time
  std::uint32_t waits_for_count, stack_depth, text_bytes;
  std::uint32_t waits_for[waits_for_max];
  std::uint64_t stack[stack_depth_max];  // return addresses, innermost first
  char text[7000];                       // lines, each ended by a newline
};
static_assert(sizeof(ReportArea) <= local::report_bytes);

inline ReportArea& report_area_of(const local::Segment& segment, std::size_t pe) {
  return *reinterpret_cast<ReportArea*>(segment.report(pe).data());
}

/// A number that changes whenever the PE may have begun to wait for something else.
inline std::uint64_t moves_of(const PeBoard& board) {
  return board.frames_received.load(std::memory_order_relaxed) + board.activity.load(std::memory_order_relaxed);
}

/// Writes the PE's answer to a request, and its stack. Called by the PE's thread.
struct GiveReport {
  ReportArea* area;
  const PeBoard* board;
  void operator()(std::uint32_t request, const PeReport& report) const;
};

}  // namespace headway::report
