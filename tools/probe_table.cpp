// SPDX-License-Identifier: BSD-3-Clause
#include "probe_table.hpp"

#include <fmt/format.h>

#include <headway/base/counted.hpp>

namespace headway::tools {
namespace {

/// A line of the table, indented.
std::string line_of(const std::string& name, const model::Estimate& estimate, const char* unit,
                    const std::string& remark = "") {
  return fmt::format("  {:<12} {}{}\n", name, shown(estimate, unit), remark);
}

std::string segments_of(const bench::ProbeResult& result) {
  std::string text;
  for (const bench::ProbeSegment& one : result.segments) {
    const std::string sizes = fmt::format("  ({} to {} bytes)", one.first_bytes, one.last_bytes);
    text += line_of("g", one.gap, "ns", sizes) + line_of("G", one.gap_per_byte, "ns/B", sizes);
  }
  return text;
}

std::string costs_of(const bench::ProbeResult& result) {
  std::string text = fmt::format("  {:>8}  {:>22}  {:>22}\n  {:>8}  {:>11} {:>10}  {:>11} {:>10}\n", "message",
                                 "direct", "aggregated", "bytes", "pack ns", "handle ns", "pack ns", "handle ns");
  for (const bench::ProbeCost& direct : result.costs) {
    if (direct.aggregated) continue;
    text += fmt::format("  {:>8}  {:>11.1f} {:>10.1f}", direct.bytes, direct.pack.value, direct.handle.value);
    for (const bench::ProbeCost& one : result.costs) {
      if (one.aggregated && one.bytes == direct.bytes)
        text += fmt::format("  {:>11.1f} {:>10.1f}", one.pack.value, one.handle.value);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string name_of_pair(const ProbeTarget& target) {
  std::string name = target.pair == "thread"    ? "threads of one process"
                     : target.pair == "process" ? "processes of one host"
                     : target.pair == "command" ? "PEs that --command starts"
                                                : "two hosts";
  if (!target.cores) return name;
  return fmt::format("{} on cores {} and {}, {}", name, target.cores->first, target.cores->second,
                     target.cores->shares_cache ? "which share a cache" : "which share no cache");
}

std::string shown(const model::Estimate& estimate, const char* unit) {
  const std::string interval = estimate.is_below_zero   ? "below 0: other parameters contain it"
                               : estimate.includes_zero ? fmt::format("0 to {:.4g}, includes 0", estimate.high)
                                                        : fmt::format("{:.4g} to {:.4g}", estimate.low, estimate.high);
  return fmt::format("{:>9.4g} {:<5} {}", estimate.value, unit, interval);
}

std::string probe_table(const ProbeTarget& target, const bench::ProbeResult& result, const std::string& dials) {
  std::string text =
      fmt::format("{}, {}: {}, 95 % intervals; distance from the lines {:.1f} %\n", target.transport,
                  name_of_pair(target), base::counted(result.launches, "launch", "launches"), 100 * result.residual);
  if (!dials.empty()) text += fmt::format("  {:<12} {}  (added to all launches)\n", "delays", dials);
  text += line_of("o, sender", result.overhead_of_sender, "ns") +
          line_of("o, receiver", result.overhead_of_receiver, "ns") + line_of("L", result.latency, "ns");
  std::string line;
  if (const auto& [median, least, most] = result.line_ns; median != 0) {
    constexpr double part_of_noise = 2;
    line = fmt::format(
        "  {:<12} {:>9.4g} {:<5} {:.4g} to {:.4g}  ({})\n", "cache line", median, "ns", least, most,
        most > part_of_noise * least ? "the machine changed its speed between launches" : "the machine kept its speed");
  }
  return text + segments_of(result) + line_of("item_o", result.item, "ns", "  (of a frame with many)") + line +
         costs_of(result);
}

std::string osu_blocks(const ProbeTarget& target, std::span<const bench::MeasuredSize> sizes) {
  const std::string place = fmt::format("{}, {}", target.transport, name_of_pair(target));
  std::string latency = fmt::format("# Headway Latency Test: {}\n# {:<16}{:>16}\n", place, "Size", "Latency (us)");
  std::string bandwidth =
      fmt::format("# Headway Bandwidth Test: {}\n# {:<16}{:>16}\n", place, "Size", "Bandwidth (MB/s)");
  for (const bench::MeasuredSize& one : sizes) {
    latency += fmt::format("{:<18}{:>16.3f}\n", one.bytes, one.one_way_us);
    bandwidth += fmt::format("{:<18}{:>16.2f}\n", one.bytes, one.megabytes_a_second);
  }
  return latency + bandwidth;
}

}  // namespace headway::tools
