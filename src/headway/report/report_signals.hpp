// SPDX-License-Identifier: BSD-3-Clause
/// The two signals of reports, and their handlers.
#pragma once

#include <headway/report/process_record.hpp>
#include <headway/report/report_area.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// Asks for a report. Sent to the supervisor or to any process of the run.
int report_signal();
/// Makes a PE's thread write its stack to its ReportArea.
int stack_signal();

/// While it exists, this process handles both signals: each only if the program has left it at its default, and until
/// the program installs a handler of its own.
class ReportSignals {
 public:
  ReportSignals(local::SegmentHeader& header, ProcessRecord& process_record);
  ReportSignals(const ReportSignals&) = delete;
  ReportSignals& operator=(const ReportSignals&) = delete;
  ~ReportSignals();

 private:
  ProcessRecord* record_;
};

/// While it exists, the signal handler takes the calling thread for that PE's thread.
class ThreadOfPe {
 public:
  ThreadOfPe(PeBoard& board, ReportArea& area);
  ThreadOfPe(const ThreadOfPe&) = delete;
  ThreadOfPe& operator=(const ThreadOfPe&) = delete;
  ~ThreadOfPe();

 private:
  PeBoard* board_;
};

}  // namespace headway::report
