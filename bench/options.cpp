// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <headway/base/bytes.hpp>
#include <headway/base/counted.hpp>
#include <headway/base/error.hpp>
#include <headway/base/settings.hpp>

namespace headway::bench {

void add_aggregator_options(CommandLine& app, AggregatorOptions& options) {
  app.add_value("--mode", "NAME",
                "direct (a frame per message), 1d, 2d, 3d, ...; of processes: wps (or pe-to-process), wps-2d, ..., "
                "pp (or process-to-process), ...; of hosts: whs (or pe-to-host), ..., hh (or host-to-host), ... [1d]",
                [&](const std::string& text) { options.topology = parse_topology(text); });
  app.add_value("--buffer-bytes", "SIZE", "bytes of a buffer, such as 16K [derived]", [&](const std::string& text) {
    options.buffer_bytes = base::parse_bytes("--buffer-bytes", text);
    if (options.buffer_bytes < base::buffer_bytes_min || options.buffer_bytes > base::buffer_bytes_max) {
      throw SettingError(fmt::format("--buffer-bytes: '{}' is not allowed; allowed is {} to {}", text,
                                     base::format_bytes(base::buffer_bytes_min),
                                     base::format_bytes(base::buffer_bytes_max)));
    }
  });
  app.add_fraction("--threshold", "FRACTION", "send a buffer filled beyond this fraction [derived]", options.threshold,
                   false);
  app.add_fraction("--cutoff", "FRACTION", "send a message above this fraction of a buffer by itself [derived]",
                   options.cutoff, true);
  app.add_value("--timeout", "TIME", "send a buffer whose oldest message is older, such as 100us; or none [derived]",
                [&](const std::string& text) { options.timeout = parse_time("--timeout", text); });
  app.add_flag("--patient", patient_help, [&] { options.flush_when_idle = false; });
  app.add_flag("--ordered", "first in, first out for each pair of PEs", options.ordered);
}

void add_global_options(CommandLine& app, GlobalOptions& options) {
  app.add_flag("--messages-only", "reach other PEs' memory by messages also on one host, where it could be mapped",
               [&] { options.mapped = false; });
  add_aggregator_options(app, options.aggregation);
}

FrameCounts growth(const AggregatorStatistics& before, const AggregatorStatistics& after) {
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

FrameCounts joined(const FrameCounts& a, const FrameCounts& b) {
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

FrameCounts growth(std::span<const AggregatorStatistics> before, std::span<const AggregatorStatistics> after) {
  FrameCounts sum;
  for (std::size_t i = 0; i < before.size(); ++i) sum = joined(sum, growth(before[i], after[i]));
  return sum;
}

FrameCounts sum_over_pes(Pe& pe, const FrameCounts& counts) {
  return allreduce(pe, counts, [](const FrameCounts& a, const FrameCounts& b) {
    FrameCounts sum = joined(a, b);
    sum.peak_buffer_bytes = std::max(a.peak_buffer_bytes, b.peak_buffer_bytes);
    return sum;
  });
}

Json options_record(const AggregatorOptions& effective) {
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

double max_over_pes(Pe& pe, double value) {
  return allreduce(pe, value, [](double a, double b) { return a < b ? b : a; });
}

std::uint64_t sum_over_pes(Pe& pe, std::uint64_t value) {
  return allreduce(pe, value, [](std::uint64_t a, std::uint64_t b) { return a + b; });
}

Case make_case(Pe& pe, const char* bench, const AggregatorOptions& options, std::size_t message_bytes,
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

void report(const Json& record, const std::string& json) {
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
