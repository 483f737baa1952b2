// SPDX-License-Identifier: BSD-3-Clause
/// Measures the times from which LogGP of the frames between two PEs follows. `headway probe` starts it several times.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <headway/base/error.hpp>
#include <headway/base/random.hpp>
#include <headway/model/loggp.hpp>
#include <iostream>
#include <options.hpp>
#include <probe/exchange.hpp>
#include <probe/result.hpp>
#include <string>
#include <vector>

namespace headway::bench {
namespace {

struct Arguments {
  std::size_t points = 40, bytes_max = std::size_t(64) << 10, messages = 32;
  unsigned repeats = 7;  // of an exchange; 1 where time is simulated, and the same each time
  std::string json = "-";
};

constexpr unsigned repeats_of_long = 3;
constexpr double long_ns = 1e6;    // of a burst: fewer repeats
constexpr double burst_ns = 10e6;  // the longest, by the time of one message

std::optional<int> parse(int argc, char** argv, Arguments& arguments) {
  CommandLine app("Measures the times of frames between two PEs, for `headway probe`.", "headway-probe");
  app.add_count("--points", "N", "random sizes, beside the powers of two [40]", arguments.points, 4, 100'000);
  app.add_count("--bytes-max", "N", "the largest size [65536]", arguments.bytes_max, 64, 1 << 20);
  app.add_count("--messages", "N", "messages of a burst [32]", arguments.messages, 2, 256);
  app.add_count("--repeats", "N", "measurements of each exchange, of which the lower quartile counts [7]",
                arguments.repeats, 1, 1000);
  app.add_json(arguments.json);
  return app.parse(argc, argv);
}

/// Log-uniform sizes, the powers of two, and 1 byte as often as the median needs it; in random order, the same on both
/// PEs.
std::vector<std::size_t> sizes_of(const Arguments& arguments, std::uint64_t seed) {
  const std::size_t of_one_byte = std::min(arguments.repeats + 2, 9u);
  Random random(seed);
  std::vector<std::size_t> sizes(of_one_byte, 1);
  for (std::size_t i = 0; i != arguments.points; ++i)
    sizes.push_back(std::size_t(std::exp2(random.fraction() * std::log2(double(arguments.bytes_max)))));
  for (std::size_t bytes = 2; bytes <= arguments.bytes_max; bytes *= 2) sizes.push_back(bytes);
  for (std::size_t i = sizes.size(); i > 1; --i) std::swap(sizes[i - 1], sizes[random.below(i)]);
  return sizes;
}

/// The lower quartile of one of the times, after some exchanges without measurement. A disturbance only lengthens a
/// time, and on a busy machine half of the long exchanges are disturbed.
double undisturbed_ns(unsigned count, const std::function<double()>& time) {
  const unsigned warm_up = std::min(count, 2u);
  std::vector<double> ns;
  for (unsigned i = 0; i != warm_up + count; ++i) {
    const double one = time();
    if (i >= warm_up) ns.push_back(one);
  }
  std::ranges::sort(ns);
  return ns[ns.size() / 4];
}

/// As many as arguments ask for, but fewer if a burst would take too long.
std::uint32_t messages_of_burst(double round_trip_ns, const Arguments& arguments) {
  return std::uint32_t(std::clamp(2 * burst_ns / std::max(round_trip_ns, 1.0), 2.0, double(arguments.messages)));
}

ProbeSample measure(ProbedPair& pair, const Arguments& arguments, std::size_t bytes) {
  ProbeSample sample{.bytes = bytes};
  if (pair.begins()) {
    Exchange burst{.bytes = bytes};
    burst.messages = messages_of_burst(pair.run(burst).round_trip, arguments);
    burst.settle_ns = std::int64_t(2 * pair.run(burst).round_trip / burst.messages);
    const Exchange one{.bytes = bytes, .settle_ns = burst.settle_ns};
    sample.one_ns = undisturbed_ns(arguments.repeats, [&] { return pair.run(one).round_trip; });
    sample.messages = burst.messages;
    const bool is_long = sample.one_ns * double(burst.messages) > 2 * long_ns;
    const unsigned count = is_long ? std::min(repeats_of_long, arguments.repeats) : arguments.repeats;
    sample.burst_ns = undisturbed_ns(count, [&] { return pair.run(burst).round_trip; });
    if (bytes <= short_bytes_max) {
      const double interval = model::measured_interval_ns(double(sample.messages), sample.burst_ns, sample.one_ns);
      Exchange delayed = burst;
      delayed.delay_ns = std::int64_t(1.5 * std::max(interval, 0.0)) + 1000;
      std::vector<double> delays;
      sample.delayed_ns = undisturbed_ns(count, [&] {
        const ExchangeTimes times = pair.run(delayed);
        delays.push_back(times.delay);
        return times.round_trip - times.delay * double(delayed.messages - 1);
      });
      sample.delay_ns = spread_of(delays).median;
      sample.delayed_ns += sample.delay_ns * double(delayed.messages - 1);
    }
    sample.receive_ns = undisturbed_ns(arguments.repeats, [&] { return pair.run_to_receive({}).receive; });
  }
  pair.meet();
  return sample;
}

/// Of messages of one size, aggregated and direct.
void measure_costs(ProbedPair& direct, ProbedPair& aggregated, std::size_t bytes, unsigned count,
                   std::vector<CostSample>& costs) {
  if (direct.begins()) {
    constexpr std::size_t frame_bytes = std::size_t(32) << 10, header_bytes = 32;
    constexpr std::uint32_t posted = 8;
    const auto packed = std::uint32_t(std::clamp<std::size_t>(frame_bytes / (bytes + header_bytes), 2, 64));
    const auto receive_ns = [&](ProbedPair& pair, std::uint32_t replies) {
      return undisturbed_ns(count,
                            [&] { return pair.run_to_receive({.replies = replies, .reply_bytes = bytes}).receive; });
    };
    const auto pack_ns = [&](ProbedPair& pair, std::uint32_t messages, std::int64_t delay_ns) {
      const Exchange exchange{.messages = messages, .bytes = bytes, .delay_ns = delay_ns};
      return undisturbed_ns(count, [&] { return pair.run(exchange).pack; }) / messages;
    };
    // Frames in a row wait for one another, so the sender computes longer than a round trip between two.
    const double one_ns = undisturbed_ns(count, [&] { return direct.run({.bytes = bytes}).round_trip; });
    const double alone_ns = pack_ns(direct, posted, std::int64_t(one_ns) + 500);
    costs.push_back({bytes, false, std::max(alone_ns, 0.0), std::max(receive_ns(direct, 1), 0.0)});
    const double of_all = receive_ns(aggregated, packed), of_one = receive_ns(aggregated, 1);
    costs.push_back({bytes, true, std::max(pack_ns(aggregated, packed, 0), 0.0),
                     std::max((of_all - of_one) / double(packed - 1), 0.0)});
  }
  aggregated.meet();
}

/// Both PEs touch the frame memory of all sizes that are measured later: the first access to a page takes microseconds.
void warm_up(ProbedPair& pair, const Arguments& arguments) {
  if (pair.begins()) {
    constexpr std::size_t replies_bytes = std::size_t(512) << 10;
    // The step is the same factor as the excess, so the last size is no smaller than the largest message.
    for (std::size_t size = 64; size < arguments.bytes_max + arguments.bytes_max / 5; size += size / 5) {
      const std::size_t bytes = std::min(size, arguments.bytes_max);
      const double one_ns = pair.run({.bytes = bytes, .reply_bytes = bytes}).round_trip;
      const std::uint32_t messages = messages_of_burst(one_ns, arguments);
      const auto replies = std::uint32_t(std::clamp<std::size_t>(replies_bytes / bytes, 1, messages));
      pair.run({.messages = messages, .bytes = bytes, .replies = replies, .reply_bytes = bytes});
    }
  }
  pair.meet();
}

int probe(Pe& pe, const Arguments& arguments) {
  if (pe.size() != 2) {
    if (pe.id() == 0) std::cerr << fmt::format("headway-probe: --pes {} is not allowed; allowed is 2\n", pe.size());
    return exit_status::unusable_arguments;
  }
  ProbedPair direct(pe, ProbedPair::Framing::direct, arguments.bytes_max);
  ProbedPair aggregated(pe, ProbedPair::Framing::aggregated, arguments.bytes_max);
  ProbeLaunch launch;
  warm_up(direct, arguments);
  for (const std::size_t bytes : sizes_of(arguments, base::Settings::from_environment().seed)) {
    launch.samples.push_back(measure(direct, arguments, bytes));
  }
  constexpr std::size_t costs_bytes_max = 4096;
  for (const bool is_warm : {false, true}) {
    launch.costs.clear();
    for (std::size_t bytes = 8; bytes <= std::min(costs_bytes_max, arguments.bytes_max); bytes *= 2)
      measure_costs(direct, aggregated, bytes, is_warm ? arguments.repeats : 1, launch.costs);
  }
  pe.quiesce();
  if (pe.id() == 0) write_json(arguments.json, to_json(launch));
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
