// SPDX-License-Identifier: BSD-3-Clause
/// Result records: one JSON object per measured case, as the command line and the report read them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace headway::bench {

using Json = nlohmann::ordered_json;

/// The measured case; the fields that every record has.
struct Case {
  std::string bench;      // "randomaccess", "stream"
  std::string mode;       // "direct", "1d", ..., or "peer:NAME"
  std::string transport;  // "local", "mpi", "sim" and "smpi" (their seconds are simulated), or the peer's MPI
  std::size_t pes = 1;
  std::size_t processes = 1;
  std::size_t pes_per_process = 1;
  std::size_t message_bytes = 0;
  std::uint64_t messages = 0;  // by all PEs
  std::size_t hosts = 1;       // the PEs of one share memory
};

/// How the frames of a run went, summed over all PEs.
struct FrameCounts {
  std::uint64_t frames = 0, frames_between_processes = 0, frames_between_hosts = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t copies = 0, copied_bytes = 0;  // of messages, by the library
  double fill_mean = 0;                        // bytes used over buffer_bytes when a frame was posted
  std::uint64_t full = 0, timeout = 0, idle = 0, explicitly = 0;  // reasons of flush
  std::uint64_t peak_buffer_bytes = 0;                            // the largest of any PE
};

struct Spread {
  double median = 0, min = 0, max = 0;
};

/// Median (of an even count: the mean of the middle two), minimum, maximum. All zero for no values.
Spread spread_of(std::vector<double> values);

/// {"median", "min", "max"}.
Json to_json(const Spread& spread);

/// A record of one run.
Json make_record(const Case& measured, double seconds, bool verified);
void add_frames(Json& record, const FrameCounts& counts);

/// One record from the repeats of one case: seconds become their spread, rates follow the median, counters become their
/// medians, latencies their spread, errors are summed, and it is verified if every repeat is. `repeats` must not be
/// empty.
Json merge_repeats(std::span<const Json> repeats);

/// A record's latency, processor time or rate, for people.
std::string speed_of(const Json& record);

/// Processor, cores, memory, kernel, compiler and build of this machine.
Json machine_description();

/// The whole result file.
Json result_file(const std::vector<std::string>& command, const std::vector<Json>& records);

/// Throws SettingError if the file that `option` names cannot be written: before a long measurement. Leaves it as it
/// is. Empty and "-" are no files.
void require_writable(const std::string& option, const std::string& path);

/// Writes to a file, or to standard output for "-". Throws SystemError when that fails.
void write_json(const std::string& path, const Json& value);

}  // namespace headway::bench
