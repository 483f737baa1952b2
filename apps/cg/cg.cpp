// SPDX-License-Identifier: BSD-3-Clause
/// Conjugate gradients on Poisson's equation in three variants. The first waits for each sum. The second needs fewer
/// sums. The third computes the next product while its sums travel. The program runs the first beside each of the
/// others and compares the results.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <headway/base/counted.hpp>
#include <headway/base/machine.hpp>
#include <headway/headway.hpp>
#include <options.hpp>

#include "solver.hpp"

namespace headway::cg {
namespace {

constexpr std::size_t grid_max = 1 << 15;
constexpr double memory_speed_min = 1 << 20;
constexpr std::size_t warm_iterations = 10;
// Methods differ in how they round, and the difference grows with each iteration: 1e-8 are seen at 1000 of them, and
// 7e-6 where residuals are never replaced.
constexpr double difference_max = 1e-3;
constexpr std::size_t iterations_apart_max = 2;

struct Arguments {
  std::size_t grid = 256;
  std::string method = "pipelined";
  SolverOptions solver;
  double bytes_per_second = 0;    // of memory that is simulated; 0: none is
  std::size_t product_words = 2;  // that a product passes for each cell, there
  AggregatorOptions aggregator;
  std::string json;  // a file, "-", or empty for a line on standard output
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  bench::CommandLine app("Conjugate gradients on Headway, whose sums nobody waits for; verified.", "headway-cg");
  app.add_value("--grid", "N", "N x N cells in all [256]", [&](const std::string& text) {
    arguments.grid = bench::parse_count("--grid", text, 1, grid_max);
    const std::uint64_t bytes = Solver::vectors * arguments.grid * arguments.grid * sizeof(double);
    if (bytes > base::available_memory_bytes() / 4 * 3) {
      throw SettingError(fmt::format("--grid: '{}' is not allowed; vectors of {} do not fit the {} here", text,
                                     base::format_bytes(bytes), base::format_bytes(base::available_memory_bytes())));
    }
  });
  app.add_choice("--method", "NAME",
                 "cg: two sums an iteration, waited for; merged: one; pipelined: one, beside the product [pipelined]",
                 arguments.method, methods);
  app.add_number("--tolerance", "FRACTION", "of the first residual, to be reached [1e-8]", arguments.solver.tolerance,
                 1e-12, 1);
  app.add_count("--iterations", "N", "after which it ends in any case [10000]", arguments.solver.iterations_max, 1,
                1'000'000);
  app.add_count("--looks", "N", "for messages, in each product of pipelined [16]", arguments.solver.looks, 0,
                1'000'000);
  app.add_count("--replace", "N", "iterations after which pipelined computes its residual anew; 0: never [100]",
                arguments.solver.replace, 0, 1'000'000);
  app.add_value("--memory-speed", "SIZE",
                "bytes a second, such as 8G: a PE sleeps as long as its vectors would take to pass [it does not]",
                [&](const std::string& text) {
                  arguments.bytes_per_second = double(base::parse_bytes("--memory-speed", text));
                  if (arguments.bytes_per_second < memory_speed_min) {
                    throw SettingError(fmt::format("--memory-speed: '{}' is not allowed; allowed is 1M or more", text));
                  }
                });
  app.add_count("--product-words", "N",
                "with --memory-speed, what a product passes for each cell: more for matrices that are stored [2]",
                arguments.product_words, 2, 1'000'000);
  bench::add_aggregator_options(app, arguments.aggregator);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// Why this run cannot be, or empty. The same on every PE.
std::string refusal(const Arguments& arguments, const Blocks& blocks, std::size_t pes, const std::string& transport) {
  if (arguments.grid < std::size_t(blocks.columns())) {
    return fmt::format("--grid: '{}' is not allowed; allowed for {}, with {} x {} blocks, is {} to {}", arguments.grid,
                       base::counted(pes, "PE"), blocks.rows(), blocks.columns(), blocks.columns(), grid_max);
  }
  if (arguments.bytes_per_second > 0 && transport == "sim") {
    return "--memory-speed is not allowed on the transport sim, whose PEs cannot sleep";
  }
  return {};
}

/// The largest difference of two histories over their common length, relative to the residual, or to `tolerance` where
/// the residual is smaller.
double difference(const History& a, const History& b, double tolerance) {
  double largest = 0;
  for (std::size_t i = 0; i <= std::min(a.iterations(), b.iterations()); ++i) {
    const double one = std::abs(a.residuals[i] - b.residuals[i]) / std::max(b.residuals[i], tolerance);
    if (!(one <= largest)) largest = one;  // not a number is never less
  }
  return largest;
}

bool is_right(const Found& found, double tolerance) { return found.gap <= tolerance && found.error <= found.error_max; }

/// For people.
void print(const bench::Json& record) {
  const auto number = [&record](const char* name) { return record[name].get<double>(); };
  const std::string line = fmt::format(
      "cg {} {}: {}, {} x {} cells, {} of {:.2f} us{}, {:.2f} times as fast as cg, residual {:.2e}, "
      "truly {:.2e}, {}, {}, {}\n",
      record["method"].get<std::string>(), record["mode"].get<std::string>(),
      base::counted(record["pes"].get<std::size_t>(), "PE"), record["grid"].get<std::size_t>(),
      record["grid"].get<std::size_t>(), base::counted(record["iterations"].get<std::size_t>(), "iteration"),
      number("iteration_us"), record.contains("simulated_time") ? " of simulated time" : "", number("times_cg"),
      number("residual"), number("true_residual"), base::counted(record["frames"].get<std::uint64_t>(), "frame"),
      record["converged"].get<bool>() ? "converged" : "not converged",
      record["verified"].get<bool>() ? "verified" : "WRONG");
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

int measure(Pe& pe, const Arguments& arguments) {
  const Blocks blocks(pe.size(), arguments.grid);
  const std::string transport = base::Settings::from_environment().transport;
  if (const std::string text = refusal(arguments, blocks, pe.size(), transport); !text.empty()) {
    if (pe.id() == 0) fmt::print(stderr, "headway-cg: {}\n", text);
    return exit_status::unusable_arguments;
  }
  const SolverOptions& options = arguments.solver;
  Processor processor(pe, arguments.bytes_per_second);
  Product product(pe, blocks, arguments.aggregator, processor, std::ptrdiff_t(arguments.product_words));
  Solver solver(pe, blocks, options, product, processor);
  // Both ways from here on begin with caches and frames warm.
  solver.run(arguments.method, std::min(warm_iterations, options.iterations_max));
  solver.run("cg", std::min(warm_iterations, options.iterations_max));

  const History blocking = solver.run("cg", options.iterations_max);
  bool verified = is_right(solver.found(), options.tolerance);
  pe.quiesce();
  const AggregatorStatistics before = product.halo().statistics();
  const std::uint64_t products_before = product.products();
  const History history = solver.run(arguments.method, options.iterations_max);
  pe.quiesce();
  const AggregatorStatistics after = product.halo().statistics();
  const std::uint64_t products = product.products() - products_before;
  const Found found = solver.found();
  const double apart = difference(history, blocking, options.tolerance);
  verified = verified && is_right(found, options.tolerance) &&
             apart <= (arguments.method == "cg" ? 0 : difference_max) &&
             history.iterations() <= blocking.iterations() + iterations_apart_max &&
             blocking.iterations() <= history.iterations() + iterations_apart_max;

  const double seconds = bench::max_over_pes(pe, history.seconds);
  const double seconds_blocking = bench::max_over_pes(pe, blocking.seconds);
  const bench::FrameCounts frames = bench::sum_over_pes(pe, bench::growth(before, after));
  const std::uint64_t handled = bench::sum_over_pes(pe, after.handled - before.handled);
  const std::uint64_t expected = bench::sum_over_pes(pe, products * product.partners());
  verified = verified && handled == expected;
  if (pe.id() == 0) {
    const AggregatorOptions& effective = product.halo().options();
    const auto largest_edge = std::size_t((blocks.n() + blocks.rows() - 1) / blocks.rows());
    bench::Json record = bench::make_record(
        bench::make_case(pe, "cg", effective, pe.size() == 1 ? 0 : largest_edge * sizeof(double), expected), seconds,
        verified);
    bench::add_frames(record, frames);
    const double iteration = seconds / double(std::max<std::size_t>(history.iterations(), 1));
    const double iteration_blocking = seconds_blocking / double(std::max<std::size_t>(blocking.iterations(), 1));
    record["method"] = arguments.method;
    record["grid"] = arguments.grid;
    record["iterations"] = history.iterations();
    record["iteration_us"] = iteration * 1e6;
    record["iteration_us_cg"] = iteration_blocking * 1e6;
    record["times_cg"] = iteration > 0 ? iteration_blocking / iteration : 0;
    record["converged"] = history.converged;
    record["residual"] = history.residuals.back();
    record["true_residual"] = found.residual;
    record["residual_gap"] = found.gap;
    record["residuals_differ"] = apart;
    record["error"] = found.error;
    record["error_max"] = found.error_max;
    record["options"] = bench::options_record(effective);
    record["options"]["tolerance"] = options.tolerance;
    record["options"]["looks"] = options.looks;
    record["options"]["replace"] = options.replace;
    record["options"]["memory_bytes_per_second"] = arguments.bytes_per_second;
    record["options"]["product_words"] = arguments.product_words;
    if (arguments.json.empty()) {
      print(record);
    } else {
      bench::report(record, arguments.json);
    }
  }
  return verified ? 0 : 1;
}

}  // namespace
}  // namespace headway::cg

int main(int argc, char** argv) {
  using namespace headway::cg;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return measure(pe, arguments); });
}
