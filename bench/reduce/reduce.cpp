// SPDX-License-Identifier: BSD-3-Clause
/// Reductions without waiting: processor time under skew, and latency without skew.
#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <headway/base/counted.hpp>
#include <headway/headway.hpp>
#include <iostream>
#include <optional>
#include <options.hpp>
#include <reduce/latency.hpp>
#include <reduce/skew.hpp>
#include <reduce/work.hpp>
#include <utility>

namespace headway::bench {
namespace {

struct Arguments {
  ReduceWork work;
  std::string way = reduce_ways.front();
  std::string json;  // a file, "-", or empty for a line on standard output

  bool bypasses() const { return way == reduce_ways.front(); }
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app("Processor time of reductions whose PEs come late, or the latency of collectives; verified.",
                  "headway-reduce");
  add_reduce_options(app, arguments.work);
  app.add_choice("--way", "NAME", "bypass (calls that return a future), blocking (each is waited for at once) [bypass]",
                 arguments.way, reduce_ways);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// For run_skewed(): PEs call and go on, and the root takes the sum at the iteration's end; or, blocking, each waits
/// until its part is done, as in MPI_Reduce.
class Reduction {
 public:
  static constexpr bool by_thread = false;
  Reduction(Pe& pe, bool bypass) : pe_(&pe), bypass_(bypass) {}

  void begin(std::span<const double> given) {
    auto future = headway::reduce_async(*pe_, given, std::plus<double>(), 0);
    if (!bypass_)
      sum_ = future.get();
    else if (pe_->id() == 0)
      future_.emplace(std::move(future));
  }
  void look() { pe_->progress(); }
  std::span<const double> end() {
    if (future_) {
      sum_ = future_->get();
      future_.reset();
    } else {
      pe_->progress();
    }
    return sum_;
  }

 private:
  Pe* pe_;
  bool bypass_;
  std::optional<Future<std::vector<double>>> future_;
  std::vector<double> sum_;
};

/// For measure_latency(): by calls that return a future, or by those that block.
class Calls {
 public:
  Calls(Pe& pe, bool bypass) : pe_(&pe), bypass_(bypass) {}

  double reduce(double given, std::size_t root) {
    auto future = headway::reduce_async(*pe_, given, std::plus<double>(), root);
    if (pe_->id() == root || !bypass_) return future.get().value_or(0);
    return 0;
  }
  double allreduce(double given) {
    if (bypass_) return headway::allreduce_async(*pe_, given, std::plus<double>()).get();
    return headway::allreduce(*pe_, given, std::plus<double>());
  }
  void barrier() {
    if (bypass_)
      headway::barrier_async(*pe_).get();
    else
      headway::barrier(*pe_);
  }

 private:
  Pe* pe_;
  bool bypass_;
};

ReduceWorld world_of(Pe& pe) {
  const std::size_t hosts = pe.engine().endpoint().host_map().host_firsts.size();
  return {.me = pe.id(),
          .pes = pe.size(),
          .pes_per_process = base::Settings::from_environment().pes_per_process,
          .one_clock = hosts <= 1 || time_is_simulated,
          .meet = [&pe] { barrier(pe); },
          .sum = [&pe](double value) { return allreduce(pe, value, std::plus<double>()); },
          .latest =
              [&pe](std::int64_t value) {
                return allreduce(pe, value, [](std::int64_t a, std::int64_t b) { return a < b ? b : a; });
              }};
}

void report_reduce(const Json& record, const std::string& json) {
  if (!json.empty()) return write_json(json, record);
  const std::string line = fmt::format("reduce {}: {}, {}, {}{}, {}\n", record["mode"].get<std::string>(),
                                       base::counted(record["pes"].get<std::size_t>(), "PE"), reduce_title(record),
                                       speed_of(record), record.contains("simulated_time") ? " of simulated time" : "",
                                       record["verified"].get<bool>() ? "verified" : "WRONG");
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

int measure(Pe& pe, const Arguments& arguments) {
  const ReduceWork& work = arguments.work;
  if (base::Settings::from_environment().simulated()) {
    if (pe.id() == 0) {
      std::cerr << "headway-reduce: HEADWAY_TRANSPORT=sim is not allowed: its PEs share a thread, and this program's "
                   "compute by sleeping; allowed are the others\n";
    }
    return exit_status::unusable_arguments;
  }
  const ReduceWorld world = world_of(pe);
  Json record;
  const auto begin_record = [&](double seconds, std::uint64_t errors) {
    const std::size_t bytes = sizeof(double) * reduce_elements(work);
    record =
        make_record(make_case(pe, "reduce", {}, bytes, work.iterations_or_default() * pe.size()), seconds, errors == 0);
    record["mode"] = arguments.way;
    record["errors"] = errors;
    add_reduce_work(record, work);
  };
  if (work.of_cpu()) {
    Reduction reduction(pe, arguments.bypasses());
    const SkewResult result = measure_skew(work, world, reduction, [&pe] { pe.quiesce(); });
    begin_record(result.seconds, result.errors);
    add_skew_result(record, result);
  } else {
    Calls calls(pe, arguments.bypasses());
    const LatencyResult result = measure_latency(work, world, calls);
    begin_record(result.seconds, result.errors);
    add_latency_result(record, result);
  }
  if (pe.id() == 0) report_reduce(record, arguments.json);
  return record["verified"].get<bool>() ? 0 : 1;
}

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
