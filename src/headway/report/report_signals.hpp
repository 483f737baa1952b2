/// Signals by which the processes of a run take part in reports.
#pragma once

#include <headway/report/process_record.hpp>
#include <headway/report/report_area.hpp>
#include <headway/transport/local/segment.hpp>

namespace headway::report {

/// Asks for a report; at the supervisor, or at any process of the run.
int report_signal();
/// Makes a PE's thread write down its stack.
int stack_signal();

/// While it lives, this process answers both signals; each only if the program has left it at its default, and for as
/// long as the program installs no handler of its own.
class ReportSignals {
 public:
  ReportSignals(local::SegmentHeader& header, ProcessRecord& process_record);
  ReportSignals(const ReportSignals&) = delete;
  ReportSignals& operator=(const ReportSignals&) = delete;
  ~ReportSignals();

 private:
  ProcessRecord* record_;
};

/// While it lives, the calling thread is that PE's.
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
