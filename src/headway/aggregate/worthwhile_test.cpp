// SPDX-License-Identifier: BSD-3-Clause
// The inequalities of the aggregation model against simulated run times: does aggregation pay?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <headway/aggregate/aggregator.hpp>
#include <headway/am/time.hpp>
#include <headway/base/random.hpp>
#include <headway/launch/simulation.hpp>
#include <headway/model/aggregation.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headway {
namespace {

constexpr std::int64_t overhead_ns = 500;       // o of the simulated network
constexpr double alpha_ns = 2.0 * overhead_ns;  // a frame costs its sender o, and its receiver o
constexpr std::size_t entry_bytes = 2;          // in a frame, of a message of variable size
constexpr std::size_t cases = 500;
constexpr double band = 0.1;

struct Case {
  model::MessageStream stream;  // S with the entry
  model::Buffer buffer;
  double timeout_ns = 0;
  model::LinearDelay delay;
  std::uint64_t seed = 0;

  bool is_filled_first() const { return model::fill_ns(stream, buffer) < timeout_ns; }
  double period_ns() const { return model::period_ns(stream, buffer, timeout_ns); }
  std::size_t payload_bytes() const { return std::size_t(stream.bytes) - entry_bytes; }
  std::size_t messages() const { return std::size_t(std::clamp(20 * stream.per_ns * period_ns(), 400.0, 4'000.0)); }
  std::string text() const {
    return fmt::format("seed {}: b = {} B, f_t = {:.3f}, tau = {:.0f} ns, S = {} B, 1/Q = {:.0f} ns, kappa = {:.2g}",
                       seed, buffer.bytes, buffer.threshold, timeout_ns, stream.bytes, 1 / stream.per_ns, delay.kappa);
  }
};

double log_uniform(Random& random, double low, double high) { return low * std::pow(high / low, random.fraction()); }

/// All values are log-uniform. These are drawn again:
/// - The aggregator would give a message a frame of its own.
/// - Q tau < 1: the model has frames with less than one message. A buffer's time begins with its first message, so that
///   its frame has 1 + Q tau messages.
/// - Delays cost more than 15 % of the computation: messages that wait for a busy receiver cost still more, and
/// receivers
///   fall behind. Where aggregation is about to pay, delays cost up to 5 %.
Case random_case(std::uint64_t seed) {
  Random random(seed);
  for (;;) {
    Case drawn;
    drawn.seed = seed;
    drawn.buffer = {std::floor(log_uniform(random, 256, 8'192)), 0.5 + 0.45 * random.fraction()};
    drawn.timeout_ns = std::floor(log_uniform(random, 20e3, 10e6));
    drawn.stream = {1 / log_uniform(random, 20e3, 200e3), std::floor(log_uniform(random, 10, 512))};
    drawn.delay.kappa = log_uniform(random, 1e-4, 0.2);
    if (drawn.stream.bytes > (1 - drawn.buffer.threshold) * drawn.buffer.bytes) continue;
    if (drawn.stream.per_ns * drawn.timeout_ns < 1) continue;
    if (drawn.delay.kappa * drawn.stream.per_ns * drawn.period_ns() > 0.3) continue;
    return drawn;
  }
}

/// Simulated run time of a program of two PEs. Each computes for 1 / Q on average, sends a message to the other, and so
/// on. A message that arrives after a delay of t costs its receiver kappa t. While it computes, the PE makes progress
/// often enough for the timeout.
double run_ns(const Case& given, Topology topology) {
  launch::SimulateOptions options{.pes = 2, .seed = given.seed};
  options.conditions.overhead_ns = overhead_ns;
  options.conditions.latency_ns = 1'000;
  const launch::SimulateResult result = launch::simulate(options, [&](Pe& pe) {
    Aggregator<std::string_view> messages(pe, {.buffer_bytes = std::size_t(given.buffer.bytes),
                                               .threshold = given.buffer.threshold,
                                               .cutoff = 1 - given.buffer.threshold,
                                               .timeout = std::chrono::nanoseconds(std::int64_t(given.timeout_ns)),
                                               .topology = topology,
                                               .flush_when_idle = false});
    messages.on([&](std::string_view message) {
      double made_at;
      std::memcpy(&made_at, message.data(), sizeof made_at);
      charge(pe, given.delay.kappa * (wtime(pe) - made_at));
    });
    Random random(given.seed * 2 + pe.id());
    std::string message(given.payload_bytes(), 'x');
    for (std::size_t i = 0; i < given.messages(); ++i) {
      const double compute_ns = (0.5 + random.fraction()) / given.stream.per_ns;
      const auto parts = int(std::ceil(compute_ns / (given.timeout_ns / 8)));
      for (int part = 0; part < parts; ++part) {
        charge(pe, 1e-9 * compute_ns / parts);
        pe.progress();
      }
      const double now = wtime(pe);
      std::memcpy(message.data(), &now, sizeof now);
      messages.send(1 - pe.id(), message);
    }
    pe.quiesce();
    return 0;
  });
  EXPECT_EQ(result.status, 0) << given.text() << ": " << result.text;
  return double(result.simulated_ns);
}

/// Cases outside the band that one inequality predicts.
struct Score {
  std::size_t right = 0, wrong = 0, pay = 0;

  std::string wrong_cases;

  void count(const Case& given, bool predicted, bool measured) {
    ++(predicted == measured ? right : wrong);
    pay += measured;
    if (predicted != measured) {
      wrong_cases += fmt::format("\n  {}: it {}", given.text(), measured ? "pays" : "does not pay");
    }
  }
  std::size_t all() const { return right + wrong; }
  double share() const { return double(right) / double(all()); }
};

/// True if the left side of an inequality differs from its right side, which is left - margin, by more than the band.
bool is_outside(double left, double margin) { return std::abs(margin) > band * std::max(left, left - margin); }

TEST(Worthwhile, the_inequalities_predict_whether_aggregation_pays) {
  Score by_timeout, by_fill, by_linear;
  std::size_t inside = 0;
  for (std::uint64_t seed = 1; seed <= cases; ++seed) {
    const Case given = random_case(seed);
    const bool pays = run_ns(given, grid(1)) < run_ns(given, direct());
    if (given.is_filled_first()) {
      const double fill = model::fill_margin_ns_with(alpha_ns, given.stream, given.buffer, given.delay);
      const double linear = model::linear_margin_bytes(alpha_ns, given.stream, given.buffer, given.delay);
      const double fill_left = alpha_ns * (1 - given.stream.bytes / model::effective_bytes(given.buffer));
      const double linear_left = 2 * given.stream.per_ns * given.stream.bytes * alpha_ns / given.delay.kappa;
      inside += !is_outside(fill_left, fill);
      if (is_outside(fill_left, fill)) by_fill.count(given, fill > 0, pays);
      if (is_outside(linear_left, linear)) by_linear.count(given, linear > 0, pays);
      EXPECT_EQ(fill > 0, linear > 0) << given.text();
      if (model::linear_bound_bytes(alpha_ns, given.stream, given.buffer, given.delay) < 0) {
        EXPECT_LE(linear, 0) << given.text();
      }
    } else {
      const double margin = model::timeout_margin_ns_with(alpha_ns, given.stream, given.timeout_ns, given.delay);
      const double left = alpha_ns * std::max(0.0, given.stream.per_ns * given.timeout_ns - 1);
      if (!is_outside(left, margin)) {
        ++inside;
        continue;
      }
      by_timeout.count(given, margin > 0, pays);
    }
  }
  for (const auto& [name, score] : {std::pair("4.4", by_timeout), {"4.9", by_fill}, {"4.13", by_linear}}) {
    fmt::print("inequality {}: {} of {} right; aggregation pays in {}\n", name, score.right, score.all(), score.pay);
    EXPECT_GE(score.share(), 0.95) << name << score.wrong_cases;
    EXPECT_GE(score.all(), 100u) << name;
    EXPECT_GE(score.pay, 30u) << name;
    EXPECT_GE(score.all() - score.pay, 30u) << name;
  }
  EXPECT_EQ(by_timeout.all() + by_fill.all() + inside, cases);
}

}  // namespace
}  // namespace headway
