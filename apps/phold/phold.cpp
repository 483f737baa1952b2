// SPDX-License-Identifier: BSD-3-Clause
/// PHOLD on an array of elements: conservative simulation in windows. The PEs handle all events before the earliest
/// one's time plus the lookahead at once, since new events come later than that; then they agree on the next window.
#include <fmt/format.h>

#include <algorithm>
#include <headway/base/counted.hpp>
#include <headway/headway.hpp>
#include <span>
#include <support/application.hpp>
#include <vector>

#include "simulation.hpp"

namespace headway::phold {
namespace {

struct Arguments {
  Options simulation;
  std::uint64_t each = 256, processes = 0;  // 0: each on every PE
  bool alone = true;                        // verify beside one processor
  apps::Common common;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("PHOLD, a discrete-event simulation, on Headway's objects; verified.", "headway-phold");
  Options& simulation = arguments.simulation;
  app.add_count("--processes-per-pe", "N", "simulated processes for each PE [256]", arguments.each, 1, 1 << 20);
  app.add_count("--processes", "N", "simulated processes in all, instead", arguments.processes, 1, 1 << 30);
  app.add_count("--events", "N", "events of each process at first [100]", simulation.events, 1, 100'000);
  app.add_count("--words", "N", "of 8 bytes, mean content of an event [8]", simulation.words, 0, 100'000);
  app.add_number("--lookahead", "T", "an event is at least so much later than what makes it [1]", simulation.lookahead,
                 1e-3, 1e6);
  app.add_number("--mean", "T", "and on average so much later than that [1]", simulation.mean, 0, 1e6);
  app.add_number("--end-time", "T", "events from then on are not handled [40]", simulation.end_time, 0, 1e9);
  app.add_flag("--no-serial", "verify contents and the number of events alone, not beside one processor",
               [&] { arguments.alone = false; });
  apps::add_common_options(app, arguments.common);
  return app.parse(argc, argv);
}

/// The same on every PE; what processes are made from.
Options simulation_of(const Arguments& arguments, std::size_t pes) {
  Options options = arguments.simulation;
  const std::uint64_t all = arguments.processes != 0 ? arguments.processes : arguments.each * pes;
  if (all > (1u << 30))
    throw SettingError(fmt::format("--processes-per-pe: {} in all are too many", base::counted(all, "process")));
  options.processes = std::uint32_t(all);
  options.seed = base::Settings::from_environment().seed;
  return options;
}

class Process : public Element<Process, Index<1>> {
 public:
  Process() = default;
  explicit Process(const Options& options) : state_(options, std::uint32_t(index()[0])) {}

  void receive(double time, std::uint32_t source, std::uint32_t number, std::span<const std::uint64_t> content) {
    state_.add({{time, source, number}, {content.begin(), content.end()}});
  }
  static constexpr auto aggregation = entries(entry<&Process::receive>{});

  /// Handles what happens before `end`, and sends what that makes: none of it is before `end`.
  void run_until(const Options& options, double end, std::vector<std::uint64_t>& content) {
    const auto self = std::uint32_t(index()[0]);
    while (state_.next_time() < end) {
      const Next next = state_.handle(options, self);
      content.resize(next.words);
      for (std::size_t i = 0; i < next.words; ++i) content[i] = word_of(next.when, i);
      all()[std::int32_t(next.destination)].send<&Process::receive>(next.when.time, self, next.when.number, content);
    }
  }
  const State& state() const { return state_; }

  template <class Archive>
  void serialize(Archive& archive) {
    state_.serialize(archive);
  }

 private:
  State state_;
};

int measure(Pe& pe, const Arguments& arguments) {
  const Options options = simulation_of(arguments, pe.size());
  const bool balances = arguments.common.balance != "none";
  Array<Process> processes(pe, {std::int32_t(options.processes)},
                           {.override_all = arguments.common.aggregation,
                            .measure_load = balances && arguments.common.balance != "rotate",
                            .name = "processes"},
                           options);
  pe.quiesce();
  const auto earlier = [](double a, double b) { return std::min(a, b); };
  const AggregatorStatistics before = processes.statistics<&Process::receive>();
  apps::Progress progress(pe, arguments.common, "phold: time", std::uint64_t(options.end_time));
  std::uint64_t windows = 0, moved = 0;
  std::vector<std::uint64_t> content;
  const std::int64_t begin = pe.engine().now();
  for (;; ++windows) {
    double next = never;
    processes.for_each_local([&](Process& process) { next = std::min(next, process.state().next_time()); });
    next = allreduce(pe, next, earlier);
    if (!(next < options.end_time)) break;
    progress.at(std::uint64_t(next));
    if (balances && windows % arguments.common.balance_every == 0) {
      moved += balance(processes, parse_balance(arguments.common.balance)).moved;
    }
    const double end = std::min(next + options.lookahead, options.end_time);
    processes.for_each_local([&](Process& process) { process.run_until(options, end, content); });
    pe.quiesce();
  }
  const double seconds = bench::max_over_pes(pe, double(pe.engine().now() - begin) * 1e-9);
  const AggregatorStatistics after = processes.statistics<&Process::receive>();
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));

  Outcome outcome;
  processes.for_each_local([&](Process& process) { outcome.add(std::uint32_t(process.index()[0]), process.state()); });
  outcome = allreduce(pe, outcome, [](const Outcome& a, const Outcome& b) {
    return Outcome{a.handled + b.handled, a.waiting + b.waiting, a.errors + b.errors, a.checksum + b.checksum};
  });
  std::uint64_t errors = outcome.errors;
  errors += outcome.waiting != std::uint64_t(options.processes) * options.events;  // each that is handled makes one
  errors += bench::sum_over_pes(pe, after.handled - before.handled) != outcome.handled;
  if (arguments.alone && pe.id() == 0) errors += outcome != simulate(options);
  errors = broadcast(pe, errors, 0);
  if (pe.id() == 0) {
    const std::size_t bytes = sizeof(double) + 2 * sizeof(std::uint32_t) + options.words * sizeof(std::uint64_t);
    const AggregatorOptions& effective = processes.options<&Process::receive>();
    bench::Json record =
        bench::make_record(bench::make_case(pe, "phold", effective, bytes, outcome.handled), seconds, errors == 0);
    bench::add_frames(record, frames);
    record["processes_simulated"] = options.processes;
    record["events"] = outcome.handled;
    record["windows"] = windows;
    record["checksum"] = fmt::format("{:016x}", outcome.checksum);
    record["errors"] = errors;
    record["balance"] = arguments.common.balance;
    record["moved"] = moved;
    record["options"] = bench::options_record(effective);
    record["options"]["beside_one_processor"] = arguments.alone;
    bench::report(record, arguments.common.json);
  }
  return errors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace headway::phold

int main(int argc, char** argv) {
  using namespace headway::phold;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
