// SPDX-License-Identifier: BSD-3-Clause
/// LogGP of the frames between two PEs, with 95 % intervals.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <headway/model/fit.hpp>
#include <headway/model/loggp.hpp>
#include <iostream>
#include <options.hpp>
#include <probe/exchange.hpp>
#include <string>
#include <vector>

namespace headway::bench {
namespace {

struct Arguments {
  std::size_t points = 200, bytes_max = 64 * 1024, messages = 32;
  std::string json;
};

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app("LogGP of the frames between two PEs: o, g, L, G, with 95 % intervals.", "headway-probe");
  app.add_count("--points", "N", "sizes that are measured, at random [200]", arguments.points, 20, 100'000);
  app.add_count("--bytes-max", "N", "the largest size [64K]", arguments.bytes_max, 64, 1 << 20);
  app.add_count("--messages", "N", "messages of a burst [32]", arguments.messages, 2, 256);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// The times of one size, in ns.
struct Sample {
  std::size_t bytes = 0;
  double one_ns = 0, burst_ns = 0, delayed_ns = 0, own_ns = 0;
  std::int64_t delay_ns = 0;
};

/// Log-uniform sizes in random order, the same on both PEs.
std::vector<std::size_t> sizes_of(const Arguments& arguments, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i != arguments.points; ++i)
    sizes.push_back(std::size_t(std::exp2(random.fraction() * std::log2(double(arguments.bytes_max)))));
  return sizes;
}

Sample measure(ProbedPair& pair, const Arguments& arguments, std::size_t bytes) {
  constexpr unsigned warm_up = 2, repeats = 5;
  const auto median_ns = [&](auto round_trip) {
    std::vector<double> ns;
    for (unsigned i = 0; i != warm_up + repeats; ++i) {
      const double one = round_trip();
      if (i >= warm_up) ns.push_back(one);
    }
    return spread_of(ns).median;
  };
  Sample sample{.bytes = bytes};
  sample.one_ns = median_ns([&] { return pair.round_trip_ns(1, 0, bytes); });
  sample.burst_ns = median_ns([&] { return pair.round_trip_ns(arguments.messages, 0, bytes); });
  const double interval = model::measured_interval_ns(double(arguments.messages), sample.burst_ns, sample.one_ns);
  sample.delay_ns = std::int64_t(2 * std::max(interval, 0.0)) + 1000;
  sample.delayed_ns = median_ns([&] { return pair.round_trip_ns(arguments.messages, sample.delay_ns, bytes); });
  sample.own_ns = median_ns([&] { return pair.own_cost_ns(std::int64_t(2 * sample.one_ns) + 1000, bytes); });
  pair.meet();
  return sample;
}

Json to_json(const model::Estimate& estimate) {
  return {{"value", estimate.value},
          {"low", estimate.low},
          {"high", estimate.high},
          {"includes_zero", estimate.includes_zero || estimate.is_below_zero}};
}

struct Found {
  model::SegmentedFit intervals;  // G_all over s - 1: g and G
  model::Estimate overhead_of_sender, overhead_of_receiver, latency;
};

/// Sizes above 64 bytes also cost copies, so o is that of shorter messages.
Found evaluate(const Arguments& arguments, const std::vector<Sample>& samples) {
  constexpr std::size_t short_bytes_max = 64;
  Found found;
  std::vector<model::Point> intervals;
  std::vector<double> sender, receiver, latency;
  for (const Sample& one : samples) {
    const auto n = double(arguments.messages);
    intervals.push_back({double(one.bytes - 1), model::measured_interval_ns(n, one.burst_ns, one.one_ns)});
    if (one.bytes > short_bytes_max) continue;
    sender.push_back(model::measured_overhead_ns(n, double(one.delay_ns), one.delayed_ns, one.one_ns));
    receiver.push_back(one.own_ns - sender.back());
    latency.push_back(model::measured_latency_ns(one.one_ns, sender.back(), receiver.back()));
  }
  found.intervals = model::fit_segments(intervals, {.relative = false});
  found.overhead_of_sender = model::median_of(sender);
  found.overhead_of_receiver = model::median_of(receiver);
  found.latency = model::median_of(latency);
  return found;
}

std::string line_of(const char* name, const model::Estimate& one, double scale, const char* unit) {
  return fmt::format("{:<12} {:>10.4g} {:<6} {:.4g} to {:.4g}{}\n", name, one.value * scale, unit, one.low * scale,
                     one.high * scale, one.includes_zero || one.is_below_zero ? ", not told from 0" : "");
}

int probe(Pe& pe, const Arguments& arguments) {
  if (pe.size() != 2) {
    if (pe.id() == 0) std::cerr << fmt::format("headway-probe: it has {} PEs; allowed is 2\n", pe.size());
    return exit_status::unusable_arguments;
  }
  ProbedPair pair(pe, arguments.bytes_max);
  std::vector<Sample> samples;
  for (const std::size_t bytes : sizes_of(arguments, base::Settings::from_environment().seed))
    samples.push_back(measure(pair, arguments, bytes));
  pe.quiesce();
  if (pe.id() != 0) return 0;
  const Found found = evaluate(arguments, samples);
  std::string text = line_of("o, sender", found.overhead_of_sender, 1, "ns") +
                     line_of("o, receiver", found.overhead_of_receiver, 1, "ns") +
                     line_of("L", found.latency, 1, "ns");
  Json segments = Json::array();
  for (const model::LineFit& one : found.intervals.segments) {
    text += fmt::format("{:.0f} to {:.0f} bytes\n", one.first_x + 1, one.last_x + 1);
    text += line_of("  g", one.intercept, 1, "ns") + line_of("  G", one.slope, 1, "ns/B");
    segments.push_back({{"first_bytes", one.first_x + 1},
                        {"last_bytes", one.last_x + 1},
                        {"g_ns", to_json(one.intercept)},
                        {"G_ns_per_byte", to_json(one.slope)},
                        {"points", one.points},
                        {"outliers", one.outliers}});
  }
  if (arguments.json.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return 0;
  }
  write_json(arguments.json, {{"bench", "probe"},
                              {"o_sender_ns", to_json(found.overhead_of_sender)},
                              {"o_receiver_ns", to_json(found.overhead_of_receiver)},
                              {"L_ns", to_json(found.latency)},
                              {"segments", segments}});
  return 0;
}

}  // namespace
}  // namespace headway::bench

int main(int argc, char** argv) {
  using namespace headway::bench;
  Arguments arguments;
  if (const auto status = parse(argc, argv, arguments)) return *status;
  return headway::run(argc, argv, [&](headway::Pe& pe) { return probe(pe, arguments); });
}
