// SPDX-License-Identifier: BSD-3-Clause
#include "machine_prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <headway/aggregate/defaults.hpp>
#include <headway/base/error.hpp>
#include <headway/base/machine.hpp>
#include <headway/model/prediction.hpp>
#include <headway/model/route_model.hpp>
#include <headway/transport/local/local.hpp>

namespace headway::tools {
namespace {

// Nearly all messages are alone in their frames.
constexpr double part_alone_of_direct = 0.99;
// docs/memory.md: 350 bytes for each other PE, and 100 more for each aggregator; here for one.
constexpr double table_bytes_of_pe = 450;
constexpr double threshold_variable = 0.9;  // the default for messages of variable size
constexpr std::size_t searched_pes_max = std::size_t(1) << 24;

model::Buffer buffer_of(const ProgramGrowth& program, double bytes) {
  return {bytes, program.fixed_size ? 1 : threshold_variable};
}

/// Frames of messages of a PE that posts its buffers `flushes` times. It sends to at most `receivers` PEs.
model::RouteLoad load_of(const ProgramGrowth& program, model::RouteModel route, double sent, double receivers,
                         double flushes, double buffer_bytes) {
  if (sent <= 0) return {};
  for (model::RouteLevel& level : route.levels) {
    level.next_pes = std::min(level.next_pes, std::size_t(std::ceil(std::max(receivers, 1.0))));
  }
  flushes = std::clamp(flushes, 1.0, std::max(sent, 1.0));
  const model::RouteLoad load =
      route_load(route, sent / flushes, std::max(program.message_bytes, 1.0), buffer_of(program, buffer_bytes));
  return {load.frames * flushes, load.bytes * flushes};
}

/// The flushes with which load_of() gives so many frames.
double flushes_for(const ProgramGrowth& program, const model::RouteModel& route, double sent, double receivers,
                   double buffer_bytes, double frames) {
  double low = 1, high = std::max(sent, 1.0);
  auto frames_with = [&](double flushes) {
    return load_of(program, route, sent, receivers, flushes, buffer_bytes).frames;
  };
  if (frames_with(low) >= frames) return low;
  for (unsigned step = 0; step < 60; ++step) {
    const double middle = std::sqrt(low * high);
    (frames_with(middle) < frames ? low : high) = middle;
  }
  return high;
}

transport::TransportCosts costs_on(const model::Machine& machine) {
  const model::AlphaBeta cost = costs_of(machine);
  return {.overhead_ns = cost.alpha_ns,
          .gap_per_byte_ns = cost.beta_ns_per_byte,
          .latency_ns = machine.loggp ? machine.loggp->latency_ns : cost.alpha_ns,
          .copied = true};
}

std::size_t pes_of_host(const model::Machine& machine) { return machine.cores.value_or(1); }

AggregatorOptions options_on(const ProgramGrowth& program, const model::Machine& machine, std::size_t pes,
                             std::size_t budget_bytes, const std::string& topology, bool with_hosts) {
  std::vector<std::size_t> hosts;
  if (with_hosts) {
    for (std::size_t first = 0; first < pes; first += pes_of_host(machine)) hosts.push_back(first);
  }
  AggregatorOptions given;
  if (!topology.empty()) given.topology = parse_topology(topology);
  return aggregate::resolve(given, {.pes = pes,
                                    .hosts = hosts,
                                    .budget_bytes = budget_bytes,
                                    .message_bytes = program.fixed_size ? std::size_t(program.message_bytes) : 0,
                                    .costs = costs_on(machine),
                                    .costs_within_host = local::costs,
                                    .settings = base::AggregationSettings::from_environment()});
}

/// The time that a PE computed: without its waits, or, where it shares its core, its processor time.
double compute_seconds_of(const MeasuredRun& run) {
  double most = 0;
  for (const PeRow& row : run.counts.rows) {
    most = std::max(most, run.has_core_for_each_pe ? row.run_ns - row.waiting_ns : row.cpu_ns);
  }
  return most * 1e-9;
}

double data_frames(const RunCounts& counts) {
  return counts.mean(&PeRow::frames_sent) - counts.mean(&PeRow::control_frames);
}

/// The route of a measured run: that of the setting, else the one that the library derives for few PEs.
std::string topology_of_measured(const ProgramGrowth& program) {
  if (program.is_direct) return "direct";
  return base::AggregationSettings::from_environment().topology.value_or("1d");
}

/// Flushes of all buffers with `pes` PEs. A PE that forwards posts its buffers when it has nothing to do. In a small
/// grid each frame is forwarded alone; in a larger one several arrive at a time. So their growth with the grid is not
/// carried on: a message has at most as many flushes for each hop as with the most measured PEs.
double flushes_at(const ProgramGrowth& program, double pes, const model::RouteModel& route) {
  const double grown = fit_growth(program.flushes).at(pes);
  if (program.hops <= 1) return grown;
  return std::min(grown, program.flushes.back().value * mean_hops(route) / program.hops);
}

/// The PE's with the most: first turns of its waits, where it does not wait for all messages.
double turns_of_program(const RunCounts& counts) {
  double most = 0;
  for (const PeRow& row : counts.rows) most = std::max(most, row.turns - row.turns_of_all - row.turns_of_handlers);
  return most;
}

/// How many turns of a wait follow one another. Handlers of a PE that waits have turns for other PEs, which overlap:
/// the more PEs, the more of them. So the run with the fewest PEs tells.
double turns_of_wait(const RunCounts& counts) {
  const double of_program = turns_of_program(counts);
  double most = 0;
  for (const PeRow& row : counts.rows) most = std::max(most, row.turns - row.turns_of_all);
  return of_program == 0 ? 1 : most / of_program;
}

}  // namespace

ProgramGrowth growth_of(std::span<const MeasuredRun> runs) {
  if (runs.empty()) throw UsageError("a prediction needs runs");
  ProgramGrowth program;
  program.cores = base::available_cores();
  const RunCounts& last = runs.back().counts;
  const double messages = last.mean(&PeRow::messages);
  program.is_direct = messages > 0 && last.mean(&PeRow::alone) >= part_alone_of_direct * messages;
  program.message_bytes = messages == 0 ? 0 : last.mean(&PeRow::payload_bytes) / messages;
  program.fixed_size =
      std::abs(program.message_bytes - std::round(program.message_bytes)) < 1e-9 && program.message_bytes >= 1;
  const double frames = last.mean(&PeRow::frames_sent);
  program.imbalance = frames == 0 ? 1 : last.max(&PeRow::frames_sent) / frames;
  for (const MeasuredRun& run : runs) {
    const RunCounts& counts = run.counts;
    const auto pes = double(counts.pes);
    const model::RouteModel route = model::route_model(topology_of_measured(program),
                                                       {.pes = counts.pes, .pes_per_process = counts.pes_per_process});
    program.hops = mean_hops(route);
    if (program.pes.empty()) program.turns_of_wait = turns_of_wait(counts) / program.hops;
    const double sent = counts.mean(&PeRow::messages_in_frames) / program.hops;
    const double receivers = counts.max(&PeRow::receivers);
    program.pes.push_back(pes);
    program.sent.push_back({pes, sent});
    program.receivers.push_back({pes, receivers});
    program.flushes.push_back(
        {pes, flushes_for(program, route, sent, receivers, counts.max(&PeRow::buffer_bytes), data_frames(counts))});
    program.control_frames.push_back({pes, counts.mean(&PeRow::control_frames)});
    program.turns.push_back({pes, turns_of_program(counts)});
    program.waves.push_back({pes, counts.min(&PeRow::control_frames)});
    program.reads.push_back({pes, counts.max(&PeRow::reads)});
    if (!counts.simulated) program.compute.push_back({pes, compute_seconds_of(run)});
  }
  return program;
}

MachinePrediction predict_machine(const ProgramGrowth& program, const model::Machine& machine, std::size_t pes,
                                  std::size_t budget_bytes, const std::string& topology) {
  const auto p = double(pes);
  const std::string wanted = !topology.empty() ? topology : program.is_direct ? "direct" : "";
  const AggregatorOptions options = options_on(program, machine, pes, budget_bytes, wanted, true);
  MachinePrediction result;
  result.pes = pes;
  result.topology = to_string(options.topology);
  result.buffer_bytes = double(options.buffer_bytes);
  const model::RouteModel route =
      model::route_model(result.topology, {.pes = pes, .pes_per_process = 1, .pes_per_host = pes_of_host(machine)});
  const double receivers = std::min(p - 1, fit_growth(program.receivers).at(p));
  for (const model::RouteLevel& level : route.levels) result.next_pes += std::min(double(level.next_pes), receivers);
  result.messages = program.sent_growth().at(p);
  const model::RouteLoad load =
      load_of(program, route, result.messages, receivers, flushes_at(program, p, route), result.buffer_bytes);
  result.frames = (load.frames + fit_growth(program.control_frames).at(p)) * program.imbalance;
  result.bytes = load.bytes * program.imbalance;
  result.open_buffer_bytes =
      route.is_direct ? 0 : std::min(result.next_pes * result.buffer_bytes, double(budget_bytes) / 2);
  result.frame_memory_bytes = double(budget_bytes);
  result.table_bytes = table_bytes_of_pe * p;
  if (!program.compute.empty()) result.compute_seconds = fit_growth(program.compute).at(p);

  if (!machine.loggp) {
    result.communication_seconds = load_ns(costs_of(machine), {result.frames, result.bytes}) * 1e-9;
    return result;
  }
  // The processor pays o for frames that it sends and gets. Meanwhile the network carries the sent ones.
  const model::LogGP& network = *machine.loggp;
  const double busy = model::time_with_overhead(result.compute_seconds.value_or(0), result.frames, network.overhead_ns);
  const double interval_ns =
      model::interval_ns(network, result.frames == 0 ? 1 : std::max(result.bytes / result.frames, 1.0));
  const double all = model::time_with_uniform_gap(busy, result.frames,
                                                  result.frames == 0 ? 0 : busy * 1e9 / result.frames, interval_ns);
  result.communication_seconds = all - result.compute_seconds.value_or(0);
  // A wave climbs the tree of all PEs, and its verdict comes down again: on each edge L, and o on both sides.
  const double edges = 2 * std::ceil(std::log2(p)) * fit_growth(program.waves).at(p);
  // Each hop of a message is a turn.
  const double turns = fit_growth(program.turns).at(p) * program.turns_of_wait * mean_hops(route);
  result.latency_seconds = model::time_with_latency_of_turns(
      edges * model::short_message_ns(network) * 1e-9, {.exposed = turns, .reads = fit_growth(program.reads).at(p)},
      network.latency_ns);
  return result;
}

std::optional<std::size_t> first_pes_with(unsigned dimensions, const ProgramGrowth& program,
                                          const model::Machine& machine, std::size_t budget_bytes) {
  auto has = [&](std::size_t pes) {
    return options_on(program, machine, pes, budget_bytes, "", false).topology.dimensions >= dimensions;
  };
  std::size_t high = 2;
  while (!has(high)) {
    if (high >= searched_pes_max) return std::nullopt;
    high *= 2;
  }
  std::size_t low = high / 2;  // without, or 1
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (has(middle) ? high : low) = middle;
  }
  return high;
}

std::optional<double> error_of_frames(std::span<const MeasuredRun> runs) {
  if (runs.size() < 2) return std::nullopt;
  const RunCounts& last = runs.back().counts;
  const double measured = last.mean(&PeRow::frames_sent);
  if (measured == 0) return std::nullopt;
  const ProgramGrowth program = growth_of(runs.first(runs.size() - 1));
  const auto p = double(last.pes);
  const model::RouteModel route =
      model::route_model(topology_of_measured(program), {.pes = last.pes, .pes_per_process = last.pes_per_process});
  const double frames =
      load_of(program, route, program.sent_growth().at(p), std::min(p - 1, fit_growth(program.receivers).at(p)),
              flushes_at(program, p, route), last.max(&PeRow::buffer_bytes))
          .frames +
      fit_growth(program.control_frames).at(p);
  return frames / measured - 1;
}

}  // namespace headway::tools
