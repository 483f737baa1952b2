// SPDX-License-Identifier: BSD-3-Clause
// Computation on simulated clocks: charged by the program, and measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <headway/base/clock.hpp>
#include <headway/base/error.hpp>
#include <headway/transport/dial/endpoint.hpp>
#include <headway/transport/sim/world.hpp>
#include <headway/transport/simulated_clock.hpp>
#include <string>
#include <vector>

namespace headway::sim {
namespace {

constexpr std::int64_t second = 1'000'000'000;

void charge(transport::Endpoint& endpoint, std::int64_t ns) {
  dynamic_cast<transport::SimulatedClock&>(endpoint).charge(ns);
}

/// Posts a frame of 8 bytes by value.
void send(transport::Endpoint& endpoint, std::size_t target) {
  transport::SmallFrame small{};
  small.frame.header.payload_bytes = 8;
  small.frame.header.count = 1;
  small.frame.header.source = std::uint16_t(endpoint.id());
  const auto posted = endpoint.try_post(target, &small.frame, small.message + 8, false);
  ASSERT_EQ(posted, transport::Endpoint::Posted::copied);
}

/// Waits for a frame, and returns the time at which the PE has it.
std::int64_t receive(transport::Endpoint& endpoint) {
  transport::Arrival arrival;
  while (!endpoint.poll(arrival)) endpoint.sleep(second);
  endpoint.release(arrival);
  return endpoint.now();
}

using Body = std::function<void(transport::Endpoint&)>;

/// Returns the latest of the PEs' clocks.
std::int64_t run(std::size_t pes, const Conditions& conditions, const Body& body) {
  World world({.pes = pes, .conditions = conditions, .frame_memory_bytes = std::size_t(1) << 16});
  const World::End end = world.run([&](std::size_t pe) { body(world.endpoint(pe)); }, forever / 2, [] { return true; });
  EXPECT_EQ(end, World::End::finished);
  return world.now();
}

std::int64_t run_dialled(std::size_t pes, const base::DialSettings& dials, const Body& body) {
  World world({.pes = pes, .frame_memory_bytes = std::size_t(1) << 16});
  const World::End end = world.run(
      [&](std::size_t pe) {
        dial::DialledEndpoint endpoint(world.endpoint(pe),
                                       {dials, [&world, pe](std::int64_t ns) { world.pass_time(pe, ns); }});
        body(endpoint);
        endpoint.drain();
      },
      forever / 2, [] { return true; });
  EXPECT_EQ(end, World::End::finished);
  return world.now();
}

// --- charged

TEST(Charge, a_charge_takes_its_time_and_more_on_a_slow_pe) {
  Conditions conditions;
  conditions.slow = {{1, 3}};
  std::vector<std::int64_t> took(2);
  run(2, conditions, [&](transport::Endpoint& endpoint) {
    const std::int64_t begin = endpoint.now();
    charge(endpoint, 0);
    charge(endpoint, 1'000'000);
    took[endpoint.id()] = endpoint.now() - begin;
  });
  EXPECT_NEAR(double(took[0]), 1e6, 20);
  EXPECT_NEAR(double(took[1]), 3e6, 60);
}

TEST(Charge, the_clock_does_not_overflow) {
  Conditions conditions;
  conditions.slow = {{0, 1e6}};
  std::int64_t now = 0;
  run(1, conditions, [&](transport::Endpoint& endpoint) {
    for (int i = 0; i < 3; ++i) {
      charge(endpoint, 1'000'000'000'000'000);
      EXPECT_GE(endpoint.now(), now);
      now = endpoint.now();
    }
  });
  EXPECT_GE(now, forever / 4);
}

/// Each PE computes for `compute_ns`, sends to the next PE and receives from the one before, `rounds` times.
std::int64_t ring_ns(std::size_t pes, const Conditions& conditions, std::int64_t compute_ns, int rounds) {
  return run(pes, conditions, [&](transport::Endpoint& endpoint) {
    for (int round = 0; round < rounds; ++round) {
      charge(endpoint, compute_ns);
      send(endpoint, (endpoint.id() + 1) % endpoint.size());
      receive(endpoint);
    }
  });
}

/// A round by LogGP: t + 2 o + L + k G, where k is the frame with its header.
double ring_by_formula_ns(const Conditions& c, double compute_ns, int rounds) {
  const double bytes = 8 + sizeof(transport::FrameHeader);
  return rounds * (compute_ns + 2 * double(c.overhead_ns) + double(c.latency_ns) + c.gap_per_byte_ns * bytes);
}

TEST(Charge, a_ring_of_pes_that_compute_and_exchange_takes_the_time_of_the_formula) {
  for (const std::size_t pes : {2, 3, 16}) {
    for (const std::int64_t compute_ns : {0, 10'000, 1'000'000}) {
      for (const std::int64_t latency_ns : {1'000, 50'000}) {
        Conditions conditions;
        conditions.latency_ns = latency_ns;
        conditions.overhead_ns = 2'000;
        const double expected = ring_by_formula_ns(conditions, double(compute_ns), 20);
        EXPECT_NEAR(double(ring_ns(pes, conditions, compute_ns, 20)), expected, 0.02 * expected)
            << pes << " PEs, t = " << compute_ns << " ns, L = " << latency_ns << " ns";
      }
    }
  }
}

TEST(Charge, a_thousand_pes_compute_for_a_second) {
  const Conditions conditions;
  const double expected = ring_by_formula_ns(conditions, 10e6, 100);
  EXPECT_NEAR(double(ring_ns(1024, conditions, 10'000'000, 100)), expected, 0.001 * expected);
}

TEST(Charge, a_frame_that_arrives_meanwhile_is_handled_afterwards) {
  std::int64_t received_at = 0, free_at = 0, left_at = 0;
  run(2, {}, [&](transport::Endpoint& endpoint) {
    if (endpoint.id() == 0) {
      charge(endpoint, 100'000);
      left_at = endpoint.now();
      send(endpoint, 1);
    } else {
      charge(endpoint, 5'000'000);
      free_at = endpoint.now();
      received_at = receive(endpoint);
    }
  });
  EXPECT_GE(left_at, 100'000);
  EXPECT_LT(left_at, 101'000);
  EXPECT_GE(free_at, 5'000'000);
  EXPECT_GE(received_at, free_at);
  EXPECT_LT(received_at, free_at + 1'000);
}

TEST(Charge, the_same_seed_gives_the_same_run) {
  Conditions conditions;
  conditions.delay_ns_max = 100'000;
  conditions.jitter = 2;
  EXPECT_EQ(ring_ns(7, conditions, 3'000, 50), ring_ns(7, conditions, 3'000, 50));
}

TEST(Charge, a_pe_stops_in_the_middle_of_a_charge) {
  Conditions conditions;
  conditions.stops = {{0, 500'000, 2'000'000}};
  EXPECT_NEAR(double(run(1, conditions, [](transport::Endpoint& endpoint) { charge(endpoint, 1'000'000); })), 3e6, 100);
}

// --- with dials

TEST(Charge, with_dials_a_charge_takes_its_time) {
  for (const base::DialSettings& dials :
       {base::DialSettings{.overhead_ns = 5e3}, {.gap_ns = 50e3}, {.latency_ns = 100e3}, {.gap_per_byte_ns = 10}}) {
    for (const double ns : {1e3, 1e6, 1e9}) {
      run_dialled(1, dials, [&](transport::Endpoint& endpoint) {
        const std::int64_t begin = endpoint.now();
        charge(endpoint, std::int64_t(ns));
        EXPECT_NEAR(double(endpoint.now() - begin), ns, 0.02 * ns + 50) << ns << " ns";
      });
    }
  }
}

TEST(Charge, the_injector_sends_while_the_sender_is_charged) {
  std::vector<std::int64_t> at;
  run_dialled(2, {.gap_ns = 100e3}, [&](transport::Endpoint& endpoint) {
    constexpr int frames = 10;
    if (endpoint.id() == 0) {
      for (int i = 0; i < frames; ++i) send(endpoint, 1);
      charge(endpoint, 50'000'000);
    } else {
      for (int i = 0; i < frames; ++i) at.push_back(receive(endpoint));
    }
  });
  for (std::size_t i = 1; i < at.size(); ++i) EXPECT_NEAR(double(at[i] - at[i - 1]), 100e3, 2e3) << "frame " << i;
}

TEST(Charge, a_delayed_frame_is_visible_at_the_end_of_a_charge_that_is_longer_than_L) {
  std::int64_t received_ns = 0;
  run_dialled(2, {.latency_ns = 1e6}, [&](transport::Endpoint& endpoint) {
    if (endpoint.id() == 0) return send(endpoint, 1);
    charge(endpoint, 10'000'000);
    const std::int64_t begin = endpoint.now();
    received_ns = receive(endpoint) - begin;
  });
  EXPECT_LT(received_ns, 1'000);
}

TEST(Charge, a_ring_with_dials_takes_the_time_of_the_formula) {
  constexpr int rounds = 20;
  constexpr std::int64_t compute_ns = 200'000;
  const std::int64_t ns =
      run_dialled(8, {.overhead_ns = 20e3, .latency_ns = 300e3}, [&](transport::Endpoint& endpoint) {
        for (int round = 0; round < rounds; ++round) {
          charge(endpoint, compute_ns);
          send(endpoint, (endpoint.id() + 1) % endpoint.size());
          receive(endpoint);
        }
      });
  const double expected = ring_by_formula_ns({}, compute_ns + 2 * 20e3 + 300e3, rounds);
  EXPECT_NEAR(double(ns), expected, 0.02 * expected);
}

// --- measured

void spin(std::int64_t ns) {
  for (const std::int64_t end = base::thread_cpu_ns() + ns; base::thread_cpu_ns() < end;) continue;
}

TEST(MeasuredCompute, a_busy_loop_takes_its_time_on_the_threads_clock_times_the_factor) {
  for (const double factor : {0.5, 1.0, 4.0}) {
    Conditions conditions;
    conditions.compute = factor;
    run(1, conditions, [&](transport::Endpoint& endpoint) {
      static_cast<void>(endpoint.now());
      const std::int64_t outside = base::thread_cpu_ns(), begin = endpoint.now(), inside = base::thread_cpu_ns();
      spin(5'000'000);
      const double least = factor * double(base::thread_cpu_ns() - inside);
      const double took = double(endpoint.now() - begin);
      const double most = factor * double(base::thread_cpu_ns() - outside);
      EXPECT_GE(took, 0.99 * least) << factor;  // less the time of a read of the clock
      EXPECT_LE(took, most + 100) << factor;
      EXPECT_GE(took, 0.99 * factor * 5e6) << factor;
    });
  }
}

TEST(MeasuredCompute, time_of_other_pes_does_not_count) {
  Conditions conditions;
  conditions.compute = 1;
  std::vector<double> took(4), computed(4);
  run(4, conditions, [&](transport::Endpoint& endpoint) {
    const std::size_t pe = endpoint.id();
    const std::int64_t begin = endpoint.now();
    for (int turn = 0; turn < 20; ++turn) {
      const std::int64_t before = base::thread_cpu_ns();
      spin(std::int64_t(pe + 1) * 200'000);
      computed[pe] += double(base::thread_cpu_ns() - before);
      took[pe] = double(endpoint.now() - begin);  // other PEs run in this call
    }
  });
  for (std::size_t pe = 0; pe < 4; ++pe) {
    EXPECT_GE(took[pe], 0.95 * computed[pe]) << "PE " << pe;
    EXPECT_LE(took[pe], 1.2 * computed[pe]) << "PE " << pe;  // with others' time it would be at least 2.5 times
  }
}

TEST(MeasuredCompute, without_it_computation_takes_no_time) {
  EXPECT_LT(run(1, {},
                [](transport::Endpoint& endpoint) {
                  spin(5'000'000);
                  static_cast<void>(endpoint.now());
                }),
            1'000);
}

TEST(MeasuredCompute, the_factor_is_set_by_text) {
  Conditions conditions;
  conditions.parse("HEADWAY_SIM", "compute=2.5", 1);
  EXPECT_EQ(conditions.compute, 2.5);
  for (const char* text : {"compute=-1", "compute=", "compute=1x", "compute=1e7", "compute=nan"}) {
    try {
      conditions.parse("HEADWAY_SIM", text, 1);
      ADD_FAILURE() << text << " was taken";
    } catch (const SettingError& error) {
      EXPECT_EQ(std::string(error.what()),
                std::string("HEADWAY_SIM=") + text + ": '" + text + "': allowed is a number from 0 to 1000000");
    }
  }
}

}  // namespace
}  // namespace headway::sim
