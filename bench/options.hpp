// SPDX-License-Identifier: BSD-3-Clause
/// Shared by the benchmark programs on Headway: the aggregator's options on the command line, and its statistics in a
/// record.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/settings.hpp>
#include <headway/headway.hpp>
#include <record/command_line.hpp>
#include <record/record.hpp>
#include <string>

namespace headway::bench {

/// Adds --mode, --buffer-bytes, --threshold, --cutoff, --timeout, --patient and --ordered, stored to `options`. A
/// member keeps its meaning of "derived" where its option is not given. Refuses values that no aggregator could take;
/// the aggregator itself refuses values that do not suit the message type.
inline void add_aggregator_options(CLI::App& app, AggregatorOptions& options) {
  add_value(
      app, "--mode", [&](const std::string& text) { options.topology = parse_topology(text); }, "NAME",
      "direct (a frame per message), 1d, 2d, 3d, ...; of processes: wps (or pe-to-process), wps-2d, ..., "
      "pp (or process-to-process), ...; of hosts: whs (or pe-to-host), ..., hh (or host-to-host), ... [1d]");
  add_value(
      app, "--buffer-bytes",
      [&](const std::string& text) {
        options.buffer_bytes = base::parse_bytes("--buffer-bytes", text);
        if (options.buffer_bytes < base::buffer_bytes_min || options.buffer_bytes > base::buffer_bytes_max) {
          throw SettingError(fmt::format("--buffer-bytes: '{}' is not allowed; allowed is {} to {}", text,
                                         base::format_bytes(base::buffer_bytes_min),
                                         base::format_bytes(base::buffer_bytes_max)));
        }
      },
      "SIZE", "bytes of a buffer, such as 16K [derived]");
  add_value(
      app, "--threshold",
      [&](const std::string& text) { options.threshold = parse_fraction("--threshold", text, false); }, "FRACTION",
      "send a buffer filled beyond this fraction [derived]");
  add_value(
      app, "--cutoff", [&](const std::string& text) { options.cutoff = parse_fraction("--cutoff", text, true); },
      "FRACTION", "send a message above this fraction of a buffer by itself [derived]");
  add_value(
      app, "--timeout", [&](const std::string& text) { options.timeout = parse_time("--timeout", text); }, "TIME",
      "send a buffer whose oldest message is older, such as 100us; or none [derived]");
  app.add_flag_callback(
      "--patient", [&] { options.flush_when_idle = false; }, patient_help);
  app.add_flag("--ordered", options.ordered, "first in, first out for each pair of PEs");
}

/// The same for a GlobalMemory, and --messages-only.
inline void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_flag_callback(
      "--messages-only", [&] { options.mapped = false; },
      "reach other PEs' memory by messages also on one host, where it could be mapped");
  add_aggregator_options(app, options.aggregation);
}

/// The counters' growth from `before` to `after`, on one PE. `buffer_bytes` weighs the fill.
inline FrameCounts growth(const AggregatorStatistics& before, const AggregatorStatistics& after) {
  FrameCounts counts;
  counts.frames = after.frames - before.frames;
  counts.frames_between_processes = after.frames_between_processes - before.frames_between_processes;
  counts.frames_between_hosts = after.frames_between_hosts - before.frames_between_hosts;
  counts.wire_bytes = after.wire_bytes - before.wire_bytes;
  counts.copies = after.copies - before.copies;
  counts.copied_bytes = after.copied_bytes - before.copied_bytes;
  if (counts.frames > 0) {
    const double filled = after.fill_mean * double(after.frames) - before.fill_mean * double(before.frames);
    counts.fill_mean = filled / double(counts.frames);
  }
  counts.full = after.flush_full - before.flush_full;
  counts.timeout = after.flush_timeout - before.flush_timeout;
  counts.idle = after.flush_idle - before.flush_idle;
  counts.explicitly = after.flush_explicit - before.flush_explicit;
  counts.peak_buffer_bytes = after.peak_buffer_bytes;
  return counts;
}

/// The frames of both; fills are weighed by frames. Peak bytes are summed: both may have had their peak at once.
inline FrameCounts joined(const FrameCounts& a, const FrameCounts& b) {
  FrameCounts sum;
  sum.frames = a.frames + b.frames;
  sum.frames_between_processes = a.frames_between_processes + b.frames_between_processes;
  sum.frames_between_hosts = a.frames_between_hosts + b.frames_between_hosts;
  sum.wire_bytes = a.wire_bytes + b.wire_bytes;
  sum.copies = a.copies + b.copies;
  sum.copied_bytes = a.copied_bytes + b.copied_bytes;
  if (sum.frames > 0) {
    sum.fill_mean = (a.fill_mean * double(a.frames) + b.fill_mean * double(b.frames)) / double(sum.frames);
  }
  sum.full = a.full + b.full;
  sum.timeout = a.timeout + b.timeout;
  sum.idle = a.idle + b.idle;
  sum.explicitly = a.explicitly + b.explicitly;
  sum.peak_buffer_bytes = a.peak_buffer_bytes + b.peak_buffer_bytes;
  return sum;
}

/// Of all kinds of a GlobalMemory's messages together.
template <std::size_t kinds>
FrameCounts growth(const std::array<AggregatorStatistics, kinds>& before,
                   const std::array<AggregatorStatistics, kinds>& after) {
  FrameCounts sum;
  for (std::size_t kind = 0; kind < kinds; ++kind) sum = joined(sum, growth(before[kind], after[kind]));
  return sum;
}

/// Collective: all PEs' counts as one; the peak is the largest of any PE.
inline FrameCounts sum_over_pes(Pe& pe, const FrameCounts& counts) {
  return allreduce(pe, counts, [](const FrameCounts& a, const FrameCounts& b) {
    FrameCounts sum = joined(a, b);
    sum.peak_buffer_bytes = std::max(a.peak_buffer_bytes, b.peak_buffer_bytes);
    return sum;
  });
}

/// The options that an aggregator settled on, as a record's "options".
inline Json options_record(const AggregatorOptions& effective) {
  Json options = {{"buffer_bytes", effective.buffer_bytes},
                  {"threshold", effective.threshold},
                  {"cutoff", effective.cutoff},
                  {"timeout_us", nullptr},
                  {"flush_when_idle", effective.flush_when_idle},
                  {"ordered", effective.ordered}};
  if (effective.timeout != std::chrono::nanoseconds::max()) {
    options["timeout_us"] = std::chrono::duration<double, std::micro>(effective.timeout).count();
  }
  return options;
}

inline double max_over_pes(Pe& pe, double value) {
  return allreduce(pe, value, [](double a, double b) { return a < b ? b : a; });
}
inline std::uint64_t sum_over_pes(Pe& pe, std::uint64_t value) {
  return allreduce(pe, value, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

/// The fields of a record that this run decides.
inline Case make_case(Pe& pe, const char* bench, const AggregatorOptions& options, std::size_t message_bytes,
                      std::uint64_t messages) {
  // The number of PEs is not from these settings: a PE bound to its core would derive a wrong default.
  const base::Settings settings = base::Settings::from_environment();
  return {.bench = bench,
          .mode = to_string(options.topology),
          .transport = settings.launcher && settings.launcher->simulated ? "smpi" : settings.transport,
          .pes = pe.size(),
          .processes = (pe.size() + settings.pes_per_process - 1) / settings.pes_per_process,
          .pes_per_process = settings.pes_per_process,
          .message_bytes = message_bytes,
          .messages = messages,
          .hosts = std::max<std::size_t>(pe.engine().endpoint().host_map().host_firsts.size(), 1)};
}

/// The record to `json` (a file, "-"), or without it one line for people.
inline void report(const Json& record, const std::string& json) {
  if (!json.empty()) {
    write_json(json, record);
    return;
  }
  const std::string line = fmt::format(
      "{} {}: {}, {} of {}, {:.3f} ms{}, {}, {}, {:.0f} % full, {}\n", record["bench"].get<std::string>(),
      record["mode"].get<std::string>(), base::counted(record["pes"].get<std::size_t>(), "PE"),
      base::counted(record["messages"].get<std::uint64_t>(), "message"),
      base::counted(record["message_bytes"].get<std::size_t>(), "byte"),
      record["seconds"]["median"].get<double>() * 1e3, record.contains("simulated_time") ? " of simulated time" : "",
      speed_of(record), base::counted(record["frames"].get<std::uint64_t>(), "frame"),
      record["fill_mean"].get<double>() * 100, record["verified"].get<bool>() ? "verified" : "WRONG");
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

}  // namespace headway::bench
