// SPDX-License-Identifier: BSD-3-Clause
/// The counts of a run, as HEADWAY_COUNTS writes them.
#pragma once

#include <cstddef>
#include <optional>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

/// Of one PE. transport/count/counts.hpp says what each number means.
struct PeRow {
  double frames_sent = 0, bytes_sent = 0, frames_received = 0, control_frames = 0, messages_in_frames = 0,
         receivers = 0, retries = 0, bursts = 0, burst_ns = 0, turns = 0, reads = 0, turns_of_all = 0,
         turns_of_handlers = 0, waits = 0, waits_of_all = 0, waiting_ns = 0, barriers = 0, bulk = 0, run_ns = 0,
         cpu_ns = 0, messages = 0, payload_bytes = 0, alone = 0, peak_buffer_bytes = 0, buffer_bytes = 0,
         spilled_bytes_peak = 0;
  std::vector<double> gap_delay_ns = {};  // by gap: count::gap_ns_of()
  // exclusive; together run_ns
  double program_ns = 0, handlers_ns = 0, communication_ns = 0, idle_ns = 0;

  double busy_ns() const { return run_ns - idle_ns; }
};

/// A phase of the program, over all PEs that had it: sums.
struct PhaseRow {
  std::string name;
  std::size_t depth = 0;  // phases that it lies in
  double pes = 0, calls = 0;
  double ns = 0, ns_max = 0;  // of one PE: the most
  std::size_t slowest_pe = 0;
  double program_ns = 0, handlers_ns = 0, communication_ns = 0, idle_ns = 0;
  std::optional<double> cycles = {}, instructions = {}, cache_misses = {};  // empty unless all PEs counted them
};

struct RunCounts {
  std::size_t pes = 0, pes_per_process = 1, hosts = 1;
  bool simulated = false;
  double budget_bytes = 0;
  bench::Json communication;
  std::vector<PeRow> rows;                 // by PE
  std::vector<PhaseRow> phases = {};       // each before those inside
  int hardware_errno = 0;                  // of the kernel that refused the processor's counters
  std::optional<double> own_seconds = {};  // by the program's own clock

  double mean(double PeRow::*value) const;
  double max(double PeRow::*value) const;
  double min(double PeRow::*value) const;
  double seconds() const { return own_seconds ? *own_seconds : max(&PeRow::run_ns) * 1e-9; }
};

/// SystemError if the file cannot be read, or is not one of a run that has come to its end.
RunCounts read_counts(const std::string& path);

/// A file in the folder for temporary files, removed at the end, also if SIGINT, SIGTERM or SIGHUP ends this process.
class TemporaryFile {
 public:
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// The tables of `headway run --table`: communication, times of each PE, times of each phase.
std::string communication_table(const RunCounts& counts);
std::string times_table(const RunCounts& counts);
std::string phases_table(const RunCounts& counts);

}  // namespace headway::tools
