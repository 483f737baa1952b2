// SPDX-License-Identifier: BSD-3-Clause
#include "predict_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/base/bytes.hpp>
#include <headway/base/settings.hpp>

#include "dial_prediction.hpp"

namespace headway::tools {
namespace {

using bench::Json;

/// Three digits, with the unit that suits.
std::string time_text(double seconds) {
  if (seconds == 0) return "0";
  for (const auto& [unit, scale] : {std::pair("s", 1.0), std::pair("ms", 1e-3), std::pair("us", 1e-6)}) {
    if (seconds >= scale) return fmt::format("{:.3g} {}", seconds / scale, unit);
  }
  return fmt::format("{:.3g} ns", seconds * 1e9);
}

std::string bytes_text(double bytes) {
  for (const auto& [unit, scale] : {std::pair("GiB", 0x1p30), std::pair("MiB", 0x1p20), std::pair("KiB", 0x1p10)}) {
    if (bytes >= 1000 * scale) return fmt::format("{:.0f} {}", bytes / scale, unit);
    if (bytes >= scale) return fmt::format("{:.3g} {}", bytes / scale, unit);
  }
  return fmt::format("{:.0f} B", bytes);
}

std::string count_text(double count) {
  return count < 1e7 ? fmt::format("{:.0f}", count) : fmt::format("{:.3g}", count);
}

std::string error_text(std::optional<double> error) { return error ? fmt::format("{:+.1f} %", *error * 100) : "-"; }

std::string measured_table(const Prediction& prediction) {
  std::string text = fmt::format("{:>5} {:>9} {:>19} {:>12} {:>12} {:>9} {:>9} {:>11} {:>8} {:>6} {:>6} {:>11}\n",
                                 "PEs", "time", "from - to", "messages/PE", "most", "frames/PE", "most", "bytes/PE",
                                 "turns", "reads", "bulk", "buffers/PE");
  for (const MeasuredRun& run : prediction.runs) {
    const RunCounts& c = run.counts;
    text += fmt::format("{:>5} {:>9} {:>19} {:>12} {:>12} {:>9} {:>9} {:>11} {:>8} {:>6} {:>6} {:>11}{}\n", c.pes,
                        time_text(run.seconds), time_text(run.of_all.min) + " - " + time_text(run.of_all.max),
                        count_text(c.mean(&PeRow::messages)), count_text(c.max(&PeRow::messages)),
                        count_text(c.mean(&PeRow::frames_sent)), count_text(c.max(&PeRow::frames_sent)),
                        bytes_text(c.mean(&PeRow::bytes_sent)), count_text(c.max(&PeRow::turns)),
                        count_text(c.max(&PeRow::reads)), count_text(c.max(&PeRow::bulk)),
                        bytes_text(c.max(&PeRow::peak_buffer_bytes)),
                        c.simulated                ? "  simulated"
                        : run.has_core_for_each_pe ? ""
                                                   : "  more PEs than cores");
  }
  return text;
}

/// Communicates at least every 100 us.
bool is_frequent(const DialResult& dial) { return dial.frames > 0 && dial.baseline_seconds / dial.frames < 100e-6; }

std::string dial_table(const Prediction& prediction) {
  const RunCounts& counts = prediction.runs.front().counts;
  std::string text = fmt::format("\nwith dials, {} PEs; T0 is the time with the same dials at 1 ns\n", counts.pes);
  text += fmt::format("{:>22} {:>9} {:>9}", "dial", "T0", "measured");
  for (const Method method : all_methods) text += fmt::format(" {:>9} {:>8}", name_of(method), "error");
  const bool has_simulations = prediction.simulated_seconds.has_value();
  if (has_simulations) text += fmt::format(" {:>9} {:>8}", "sim", "error");
  text += '\n';
  std::vector<double> worst(all_methods.size());
  for (const DialResult& dial : prediction.dials) {
    text += fmt::format("{:>22} {:>9} {:>9}", dial.dials, time_text(dial.baseline_seconds),
                        time_text(dial.measured.seconds));
    for (std::size_t m = 0; m < all_methods.size(); ++m) {
      const double error = dial.predicted[m] / dial.measured.seconds - 1;
      worst[m] = std::max(worst[m], std::abs(error));
      text += fmt::format(" {:>9} {:>8}", time_text(dial.predicted[m]), error_text(error));
    }
    if (dial.simulated_seconds) {
      text += fmt::format(" {:>9} {:>8}", time_text(*dial.simulated_seconds),
                          error_text(*dial.simulated_seconds / dial.measured.seconds - 1));
    }
    text += is_frequent(dial) ? "\n" : "  fewer than a frame in 100 us\n";
  }
  text += fmt::format("{:>42}", "largest error");
  for (std::size_t m = 0; m < all_methods.size(); ++m) text += fmt::format(" {:>9} {:>6.1f} %", "", worst[m] * 100);
  return text + '\n';
}

struct Quantity {
  const char* name;
  const std::vector<Sample>* samples;
};

std::vector<Quantity> quantities(const ProgramGrowth& program) {
  return {{"messages to others", &program.sent},
          {"PEs that get frames", &program.receivers},
          {"flushes of all buffers", &program.flushes},
          {"control frames", &program.control_frames},
          {"turns", &program.turns},
          {"waves of quiescence", &program.waves},
          {"reads", &program.reads},
          {"computation, s", &program.compute}};
}

std::string growth_table(const Prediction& prediction) {
  std::string text =
      fmt::format("\ngrowth for each PE, from {} measured; error: the last one predicted from the others\n",
                  prediction.runs.size() == 1 ? "1 run" : fmt::format("{} runs", prediction.runs.size()));
  for (const Quantity& quantity : quantities(prediction.program)) {
    if (quantity.samples->empty()) continue;
    text += fmt::format("{:>24}  {:<28} {:>9}\n", quantity.name, fit_growth(*quantity.samples).text(),
                        error_text(error_of_last(*quantity.samples)));
  }
  text += fmt::format("{:>24}  {:<28} {:>9}\n", "frames", "by the route", error_text(error_of_frames(prediction.runs)));
  if (prediction.runs.size() == 1)
    text += "one number of PEs shows no growth: each quantity counts as constant; give several with --measure\n";
  return text;
}

std::string machine_table(const Prediction& prediction) {
  const model::Machine& machine = *prediction.machine;
  std::string text =
      fmt::format("\non {} ({})\n", machine.name, machine.title.empty() ? machine.source : machine.title);
  text += fmt::format("{:>8} {:>8} {:>9} {:>8} {:>11} {:>11} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "PEs",
                      "route", "buffer", "next PEs", "messages/PE", "frames/PE", "bytes/PE", "buffers/PE", "frame mem",
                      "tables", "compute", "commun.", "latency", "time");
  for (const MachinePrediction& p : prediction.machines) {
    text += fmt::format("{:>8} {:>8} {:>9} {:>8} {:>11} {:>11} {:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n",
                        p.pes, p.topology, bytes_text(p.buffer_bytes), count_text(p.next_pes), count_text(p.messages),
                        count_text(p.frames), bytes_text(p.bytes), bytes_text(p.open_buffer_bytes),
                        bytes_text(p.frame_memory_bytes), bytes_text(p.table_bytes),
                        p.compute_seconds ? time_text(*p.compute_seconds) : "-", time_text(p.communication_seconds),
                        p.latency_seconds ? time_text(*p.latency_seconds) : "-", time_text(p.seconds()));
  }
  for (const MachinePrediction& p : prediction.machines) {
    if (!p.simulated_seconds) continue;
    text += fmt::format("simulation of {} PEs: {}, the formulas say {}\n", p.pes, time_text(*p.simulated_seconds),
                        time_text(p.seconds()));
  }
  const bool leaves_out =
      std::ranges::any_of(prediction.machines, [](const MachinePrediction& p) { return p.pes > simulated_pes_max; });
  if (prediction.simulated_seconds && leaves_out)
    text += fmt::format("more than {} PEs are not simulated\n", simulated_pes_max);
  if (!prediction.alternatives.empty()) {
    text += "communication of other routes, with frames and buffers of a PE:\n";
    for (const MachinePrediction& p : prediction.alternatives) {
      text += fmt::format("{:>8} {:>8}  {:>9}, {} frames, buffers of {}, {} in all\n", p.pes, p.topology,
                          time_text(p.communication_seconds + p.latency_seconds.value_or(0)), count_text(p.frames),
                          bytes_text(p.buffer_bytes), bytes_text(p.open_buffer_bytes));
    }
  }
  for (std::size_t i = 0; i < prediction.necessary.size() && !prediction.program.is_direct; ++i) {
    const auto& pes = prediction.necessary[i];
    text += pes ? fmt::format(
                      "{}d is necessary from {} PEs on: with fewer dimensions a buffer's share of the {} of frame "
                      "memory is so small that a frame costs more than its bytes\n",
                      i + 2, *pes, bytes_text(prediction.machines.front().frame_memory_bytes))
                : fmt::format("{}d is not necessary\n", i + 2);
  }
  if (!machine.loggp) text += "this machine file has no L: waits are not in the time\n";
  if (std::ranges::any_of(prediction.machines, [](const auto& p) { return !p.compute_seconds; }))
    text += "only simulations were measured: computation is not in the time\n";
  if (!prediction.machines.empty() && prediction.machines.back().pes > base::pes_max)
    text += fmt::format("the library allows {} PEs today; a frame header has 16 bits for its source\n", base::pes_max);
  return text;
}

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json to_json(const MachinePrediction& p, const model::Machine& machine) {
  return {{"bench", "predict"},
          {"kind", "machine"},
          {"machine", machine.name},
          {"pes", p.pes},
          {"mode", p.topology},
          {"buffer_bytes", p.buffer_bytes},
          {"next_pes", p.next_pes},
          {"messages", p.messages},
          {"frames", p.frames},
          {"wire_bytes", p.bytes},
          {"open_buffer_bytes", p.open_buffer_bytes},
          {"frame_memory_bytes", p.frame_memory_bytes},
          {"table_bytes", p.table_bytes},
          {"compute_seconds", optional(p.compute_seconds)},
          {"communication_seconds", p.communication_seconds},
          {"latency_seconds", optional(p.latency_seconds)},
          {"predicted_seconds", p.seconds()},
          {"simulated_seconds", optional(p.simulated_seconds)}};
}

}  // namespace

std::string to_text(const Prediction& prediction) {
  std::string text = measured_table(prediction);
  if (prediction.simulated_seconds) {
    text += fmt::format("simulation of {} PEs: {} ({})\n", prediction.runs.front().counts.pes,
                        time_text(*prediction.simulated_seconds),
                        error_text(*prediction.simulated_seconds / prediction.runs.front().seconds - 1));
  }
  if (!prediction.dials.empty()) text += dial_table(prediction);
  text += growth_table(prediction);
  if (prediction.machine) text += machine_table(prediction);
  return text;
}

Json to_json(const Prediction& prediction) {
  std::vector<Json> records;
  for (const MeasuredRun& run : prediction.runs) {
    const RunCounts& c = run.counts;
    records.push_back({{"bench", "predict"},
                       {"kind", "measured"},
                       {"transport", prediction.transport},
                       {"pes", c.pes},
                       {"pes_per_process", c.pes_per_process},
                       {"seconds", bench::to_json(run.of_all)},
                       {"communication", c.communication},
                       {"frames_mean", c.mean(&PeRow::frames_sent)},
                       {"frames_max", c.max(&PeRow::frames_sent)},
                       {"wire_bytes_mean", c.mean(&PeRow::bytes_sent)},
                       {"turns_max", c.max(&PeRow::turns)},
                       {"bursts_max", c.max(&PeRow::bursts)},
                       {"peak_buffer_bytes", c.max(&PeRow::peak_buffer_bytes)}});
  }
  if (prediction.simulated_seconds) {
    records.push_back({{"bench", "predict"},
                       {"kind", "simulation"},
                       {"pes", prediction.runs.front().counts.pes},
                       {"predicted_seconds", *prediction.simulated_seconds},
                       {"error", *prediction.simulated_seconds / prediction.runs.front().seconds - 1}});
  }
  for (const DialResult& dial : prediction.dials) {
    Json predicted = Json::object(), errors = Json::object();
    for (std::size_t m = 0; m < all_methods.size(); ++m) {
      predicted[name_of(all_methods[m])] = dial.predicted[m];
      errors[name_of(all_methods[m])] = dial.predicted[m] / dial.measured.seconds - 1;
    }
    if (dial.simulated_seconds) {
      predicted["sim"] = *dial.simulated_seconds;
      errors["sim"] = *dial.simulated_seconds / dial.measured.seconds - 1;
    }
    records.push_back({{"bench", "predict"},
                       {"kind", "dial"},
                       {"pes", dial.measured.counts.pes},
                       {"dial", dial.dials},
                       {"baseline_seconds", dial.baseline_seconds},
                       {"seconds", bench::to_json(dial.measured.of_all)},
                       {"predicted_seconds", predicted},
                       {"error", errors},
                       {"frames", dial.frames},
                       {"frequent", is_frequent(dial)}});
  }
  for (const Quantity& quantity : quantities(prediction.program)) {
    if (quantity.samples->empty()) continue;
    const Growth growth = fit_growth(*quantity.samples);
    records.push_back({{"bench", "predict"},
                       {"kind", "growth"},
                       {"quantity", quantity.name},
                       {"factor", growth.factor},
                       {"exponent", growth.exponent},
                       {"law", growth.text()},
                       {"runs", quantity.samples->size()},
                       {"error", optional(error_of_last(*quantity.samples))}});
  }
  records.push_back({{"bench", "predict"},
                     {"kind", "growth"},
                     {"quantity", "frames"},
                     {"law", "by the route"},
                     {"error", optional(error_of_frames(prediction.runs))}});
  if (prediction.machine) {
    for (const MachinePrediction& p : prediction.machines) records.push_back(to_json(p, *prediction.machine));
    for (const MachinePrediction& p : prediction.alternatives) {
      records.push_back(to_json(p, *prediction.machine));
      records.back()["kind"] = "route";
    }
    for (std::size_t i = 0; i < prediction.necessary.size(); ++i) {
      records.push_back({{"bench", "predict"},
                         {"kind", "necessary"},
                         {"mode", fmt::format("{}d", i + 2)},
                         {"pes", prediction.necessary[i] ? Json(*prediction.necessary[i]) : Json()}});
    }
  }
  return bench::result_file(prediction.command, records);
}

}  // namespace headway::tools
