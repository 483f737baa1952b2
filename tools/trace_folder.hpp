// SPDX-License-Identifier: BSD-3-Clause
/// A folder of traces as `headway trace` converts it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <headway/model/trace/flows.hpp>
#include <record/record.hpp>
#include <string>
#include <vector>

namespace headway::tools {

/// A process of the run, or of a simulated run a host.
struct TraceProcess {
  std::size_t host = 0;   // from 0 on
  std::uint32_t pid = 0;  // no other process of the trace has it
  std::string name = {};
  std::vector<std::size_t> pes = {};
};

/// Reads all files once for the frames; trace() reads one of them again, so that a long trace fits in memory.
class TraceFolder {
 public:
  /// SystemError with one line: a file is missing, damaged, of another version or of another run.
  explicit TraceFolder(const std::string& folder);

  std::size_t pes() const { return process_of_.size(); }
  model::trace::PeTrace trace(std::size_t pe) const;
  const model::trace::Flows& flows() const { return flows_; }
  const std::vector<TraceProcess>& processes() const { return processes_; }
  std::size_t process_of(std::size_t pe) const { return process_of_[pe]; }

  bool simulated() const { return first_.clock == model::trace::Clock::simulated; }
  const model::trace::Header& first() const { return first_; }
  const bench::Json& description() const { return description_; }  // trace.json, or null without one

  std::uint64_t records() const { return records_; }
  std::uint64_t lost(std::size_t pe) const { return lost_[pe]; }
  std::uint64_t lost() const;                             // of all PEs
  std::size_t unfinished() const { return unfinished_; }  // PEs of which the trace has no end
  std::int64_t residual_ns() const;                       // the largest one of all hosts
  std::size_t unaligned_hosts() const;                    // by their realtime clocks alone

  /// Facts about the run, then lost records and undelivered frames; one line each.
  std::string summary() const;

 private:
  void read_description(const std::string& folder);
  void add(const model::trace::PeTrace& trace);

  std::string folder_;
  model::trace::Header first_{};
  model::trace::Flows flows_;
  std::vector<TraceProcess> processes_;
  std::vector<std::size_t> process_of_;
  std::vector<std::uint64_t> lost_;
  std::vector<std::uint64_t> written_;  // records of each PE when they were first read
  bench::Json description_;
  std::uint64_t records_ = 0;
  std::size_t unfinished_ = 0;
};

}  // namespace headway::tools
